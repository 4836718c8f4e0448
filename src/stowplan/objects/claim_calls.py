"""The API calls that write resource claims, in kube-scheduler's order, as a conversation without I/O.

    conversation = calls(action, known, now)
    call = next(conversation)                     # a ClaimCall: carry it out
    call = conversation.send(ClaimAnswer(…))      # … until StopIteration, whose value is the ClaimOutcome

To be allocated, a claim gets the finalizer, by an update of its own, and then its new status: the allocation and the
pod that uses it are written at once, so no claim is ever allocated without a user. If the server says that the claim
has changed, it is read again, and what still has to be written is written to that version.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from stowplan.objects.actions import AllocateClaims, ClaimAction, ClaimWrite, DeallocateClaim, PodRef, ReleaseClaims
from stowplan.objects.resource_claims import FINALIZER, ClaimConsumer, ResourceClaim, ResourceClaimStatus

MOST_TRIES = 5
CONFLICT, NOT_FOUND = 409, 404
Document: TypeAlias = dict[str, Any]
Known: TypeAlias = Callable[[str], ResourceClaim | None]  # the claim that is known by a key


class ClaimCall(msgspec.Struct, frozen=True):
    """One call. `verb`: get, create, update, patch or delete. An update is refused if the claim is not at `version`."""

    verb: str
    resource: str
    namespace: str
    name: str = ""
    subresource: str = ""
    body: Document | None = None
    version: str = ""


class ClaimAnswer(msgspec.Struct, frozen=True):
    """The server's answer: a status code, the claim as it is now, the message if it refused."""

    status: int
    claim: ResourceClaim | None = None
    message: str = ""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class ClaimOutcome(msgspec.Struct, frozen=True):
    status: int = 200
    message: str = ""


Conversation: TypeAlias = Generator[ClaimCall, ClaimAnswer, ClaimOutcome]
Writing: TypeAlias = Generator[ClaimCall, ClaimAnswer, "ResourceClaim | ClaimOutcome"]
DONE = ClaimOutcome()


def calls(action: ClaimAction, known: Known, now: datetime) -> Conversation:
    """Return the calls of an action. `now` becomes the time of new allocations."""
    match action:
        case AllocateClaims():
            return _allocate(action, known, now)
        case DeallocateClaim():
            return _deallocate(action, known)
        case ReleaseClaims():
            return _release(action, known)


def carried_out(
    action: ClaimAction, known: Known, now: datetime, respond: Callable[[ClaimCall], ClaimAnswer]
) -> ClaimOutcome:
    """Make the calls of an action one after the other, where an answer can be had at once."""
    conversation = calls(action, known, now)
    answer: ClaimAnswer | None = None
    while True:
        try:
            call = next(conversation) if answer is None else conversation.send(answer)
        except StopIteration as end:
            outcome: ClaimOutcome = end.value
            return outcome
        answer = respond(call)


# -- allocations


def _allocate(action: AllocateClaims, known: Known, now: datetime) -> Conversation:
    for write in action.claims:
        claim: ResourceClaim | ClaimOutcome | None
        claim = known(write.key) if write.made is None else (yield from _create(write.made))
        if claim is None:
            claim = yield from _get(write.key, f"get claim {write.key}")
        if isinstance(claim, ResourceClaim):
            claim = yield from _reserve(write, claim, action.pod, now)
        if isinstance(claim, ClaimOutcome):
            return claim
        if write.made is not None:
            outcome = yield from _name_in_status(write, claim, action.pod)
            if outcome is not DONE:
                return outcome
    return DONE


def _create(made: ResourceClaim) -> Writing:
    document = _plain(made)
    document["metadata"].pop("name", None)
    requests = document.get("spec", {}).get("devices", {}).get("requests")
    body = {"metadata": document["metadata"], "spec": {"devices": {"requests": requests}}, "status": {}}
    answer = yield ClaimCall("create", "resourceclaims", made.namespace, body=body)
    if not answer.ok or answer.claim is None:
        return ClaimOutcome(answer.status, f"create claim for extended resources {made.namespace}/: {answer.message}")
    return answer.claim


def _reserve(write: ClaimWrite, claim: ResourceClaim, pod: PodRef, now: datetime) -> Writing:
    answer = ClaimAnswer(0)
    doing = f"add {'reservation' if write.allocation is None else 'allocation and reservation'} to claim {claim.key}"
    for tries in range(MOST_TRIES):
        if tries:
            again = yield from _get(claim.key, f"get updated claim {claim.key} after conflict")
            if isinstance(again, ClaimOutcome):
                return again
            claim = again
        if _is_done(write, claim, pod):
            return claim  # an earlier try was carried out, though its answer was lost
        problem = _problem(write, claim)
        if problem:
            return ClaimOutcome(CONFLICT, problem)
        if write.allocation is not None and FINALIZER not in claim.metadata.finalizers:
            answer = yield _finalizers(claim, (*claim.metadata.finalizers, FINALIZER))
            if answer.status == CONFLICT:
                continue
            if not answer.ok or answer.claim is None:
                return ClaimOutcome(answer.status, f"add finalizer to claim {claim.key}: {answer.message}")
            claim = answer.claim
        answer = yield _status(claim, _reserved(write, claim, pod, now))
        if answer.ok and answer.claim is not None:
            return answer.claim
        if answer.status != CONFLICT:
            break
    return ClaimOutcome(answer.status, f"{doing}: {answer.message}")


def _is_done(write: ClaimWrite, claim: ResourceClaim, pod: PodRef) -> bool:
    if claim.terminating or claim.allocation is None or not claim.reserved_by(pod.uid):
        return False
    return write.allocation is None or claim.allocation.devices == write.allocation.devices


def _problem(write: ClaimWrite, claim: ResourceClaim) -> str:
    """Return why the claim cannot be written any more."""
    if claim.terminating or (write.uid and claim.uid != write.uid):
        return f"claim {claim.key} got deleted in the meantime"
    if write.allocation is None or claim.allocation is None:
        return ""
    if claim.allocation.devices == write.allocation.devices and write.together:
        return ""
    return f"claim {claim.key} got allocated elsewhere in the meantime"


def _reserved(write: ClaimWrite, claim: ResourceClaim, pod: PodRef, now: datetime) -> ResourceClaimStatus:
    allocation = claim.allocation or write.allocation
    if allocation is not None and allocation.allocation_timestamp is None:
        stamp = now.replace(microsecond=0)
        allocation = msgspec.structs.replace(allocation, allocation_timestamp=stamp)
    user = ClaimConsumer(resource="pods", name=pod.name, uid=pod.uid)
    users = (*claim.status.reserved_for, user)
    return msgspec.structs.replace(claim.status, allocation=allocation, reserved_for=users)


def _name_in_status(write: ClaimWrite, claim: ResourceClaim, pod: PodRef) -> Conversation:
    """Tell the kubelet, in the pod's status, which claim provides the extended resources."""
    where = f"pod {pod.namespace}/{pod.name} ExtendedResourceClaimStatus"
    if not write.mappings:
        return ClaimOutcome(400, f"nil or empty request mappings, no update of {where}")
    status = {"requestMappings": [_plain(each) for each in write.mappings], "resourceClaimName": claim.name}
    body = {"status": {"extendedResourceClaimStatus": status}}
    answer = yield ClaimCall("patch", "pods", pod.namespace, pod.name, "status", body)
    return DONE if answer.ok else ClaimOutcome(answer.status, f"update {where}: {answer.message}")


# -- the way back


def _deallocate(action: DeallocateClaim, known: Known) -> Conversation:
    claim = known(action.key)
    if claim is None or claim.uid != action.uid:
        return DONE
    if any(user.uid != action.pod.uid for user in claim.status.reserved_for):
        return ClaimOutcome(CONFLICT, f"claim {claim.key} got reserved in the meantime")
    if action.delete:
        return (yield from _delete(claim))
    answer = yield _status(claim, ResourceClaimStatus())
    return DONE if answer.ok else ClaimOutcome(answer.status, answer.message)


def _release(action: ReleaseClaims, known: Known) -> Conversation:
    for key, uid in action.claims.items():
        if key in action.delete:
            claim = known(key)
            if claim is not None:
                yield from _delete(claim)
            continue
        namespace, _, name = key.partition("/")
        users = {"reservedFor": [{"$patch": "delete", "uid": action.pod.uid}]}
        body = {"metadata": {"uid": uid}, "status": users}
        yield ClaimCall("patch", "resourceclaims", namespace, name, "status", body)
    return DONE


def _delete(claim: ResourceClaim) -> Conversation:
    """Take the finalizer from a claim, so that nothing keeps it, and delete it."""
    answer = ClaimAnswer(0)
    for tries in range(MOST_TRIES):
        if tries:
            again = yield from _get(claim.key, f"get resourceclaim {claim.key}")
            if isinstance(again, ClaimOutcome):
                return again
            claim = again
        kept = tuple(each for each in claim.metadata.finalizers if each != FINALIZER)
        answer = yield _finalizers(claim, kept)
        if answer.status != CONFLICT:
            break
    if not answer.ok:
        return ClaimOutcome(answer.status, f"update resourceclaim {claim.key}: {answer.message}")
    answer = yield ClaimCall("delete", "resourceclaims", claim.namespace, claim.name)
    return DONE if answer.ok or answer.status == NOT_FOUND else ClaimOutcome(answer.status, answer.message)


# -- single calls


def _get(key: str, doing: str) -> Writing:
    namespace, _, name = key.partition("/")
    answer = yield ClaimCall("get", "resourceclaims", namespace, name)
    if not answer.ok or answer.claim is None:
        return ClaimOutcome(answer.status, f"{doing}: {answer.message}")
    return answer.claim


def _finalizers(claim: ResourceClaim, finalizers: tuple[str, ...]) -> ClaimCall:
    body = {"metadata": {"finalizers": list(finalizers)}}
    return ClaimCall("update", "resourceclaims", claim.namespace, claim.name, "", body, _version(claim))


def _status(claim: ResourceClaim, status: ResourceClaimStatus) -> ClaimCall:
    body = {"status": _plain(status)}
    return ClaimCall("update", "resourceclaims", claim.namespace, claim.name, "status", body, _version(claim))


def _version(claim: ResourceClaim) -> str:
    return claim.metadata.resource_version


def _plain(value: object) -> Document:
    """Return a value as the JSON of the API has it."""
    found: Document = msgspec.json.decode(msgspec.json.encode(value, enc_hook=str))
    return found
