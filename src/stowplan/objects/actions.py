"""Actions: requests of the engine that the caller carries out. The caller reports each outcome as a `changes.Result`.

Each action has an id, which its result carries, and a deadline. An action without a result by then counts as lost, and
the object is read again. Plugins make actions without id and deadline; the engine adds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from stowplan.objects.meta import Object
from stowplan.objects.resource_claims import AllocationResult, ResourceClaim


class PodRef(msgspec.Struct, frozen=True):
    """One pod, by uid: not a later pod of the same name."""

    namespace: str
    name: str
    uid: str


class ObjectRef(PodRef, frozen=True):
    """One object of another kind, for events that are not about pods."""

    kind: str = ""
    api_version: str = ""


class AnyAction(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="does"):
    """The fields of all actions."""

    id: int = 0
    deadline: float | None = None


class Bind(AnyAction, frozen=True):
    """Bind the pod to a node. The pod gets the annotations with it: both are written, or neither is."""

    pod: PodRef
    node_name: str
    annotations: dict[str, str] = {}


class Evict(AnyAction, frozen=True):
    """Mark the pod as disrupted (`condition` of type DisruptionTarget), then delete it."""

    pod: PodRef
    reason: str
    message: str


class SetCondition(AnyAction, frozen=True):
    """Set the pod's PodScheduled condition and, if given, its nominated node ("" clears it)."""

    pod: PodRef
    status: str
    reason: str
    message: str
    nominated_node: str | None = None


class Nominate(AnyAction, frozen=True):
    """Set the pod's nominated node; "" clears it."""

    pod: PodRef
    node_name: str


class Record(AnyAction, frozen=True):
    """Write an event about a pod, or by an ObjectRef about another object, in the terms of events.k8s.io.

    Events that differ in their note only become one series, with the first note. `by_note`: those whose notes differ in
    more than numbers are another series, so that each can be read.
    """

    pod: PodRef
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str
    related: PodRef | None = None
    by_note: bool = False


class Patch(AnyAction, frozen=True):
    """Patch an object for a plugin: a merge patch, or (a list of operations) a JSON patch.

        yield Patch(kind="TeamBudget", key=budget.key, body={"metadata": {"labels": {"full": "true"}}})

    A patch of the status alone goes to the status subresource. The server refuses a merge patch with
    metadata.resourceVersion, and a JSON patch that begins with a test, if the object has changed since. The writer sets
    lastTransitionTime of conditions that have none.
    """

    kind: str
    key: str
    body: dict[str, Any] | list[dict[str, Any]]


def status_patch(found: Object, status: Mapping[str, Any]) -> Patch:
    """Return the action that merges these fields into the status of an object.

        yield status_patch(budget, {"usedPods": 3})

    If the object has changed since the plugin read it, the server refuses the patch. `reconcile` is then called again.
    """
    version = {"resourceVersion": found.metadata.resource_version} if found.metadata.resource_version else {}
    return Patch(kind=type(found).__name__, key=found.key, body={"metadata": version, "status": dict(status)})


class Create(AnyAction, frozen=True):
    """Create an object for a plugin; the result is 409 if the name exists.

    yield Create(kind="TeamBudget", key="default/web", body={"apiVersion": "example.com/v1", "kind": "TeamBudget",
                 "metadata": {"name": "web", "namespace": "default"}, "spec": {"pods": 3}})
    """

    kind: str
    key: str
    body: dict[str, Any]


class Delete(AnyAction, frozen=True):
    """Delete an object for a plugin, if its uid and resourceVersion are still the same.

    meta = budget.metadata
    yield Delete(kind="TeamBudget", key=budget.key, uid=meta.uid, resource_version=meta.resource_version)
    """

    kind: str
    key: str
    uid: str
    resource_version: str


class RequestEviction(AnyAction, frozen=True):
    """Ask the eviction API to evict a pod for a plugin, which keeps disruption budgets.

    yield RequestEviction(pod=PodRef(pod.namespace, pod.name, pod.uid), message="zone a has 7 of 5 pods, b 1 of 3")

    The result is 429 if a budget does not allow it now. It is not tried again then, unless the plugin asks again. A pod
    that is evicted gets an event with the message.
    """

    pod: PodRef
    message: str
    reporting_controller: str = "stowplan"

    @property
    def kind(self) -> str:
        return "Pod"

    @property
    def key(self) -> str:
        return f"{self.pod.namespace}/{self.pod.name}"


class Read(AnyAction, frozen=True):
    """Read a pod whose state is not known. The caller also reports the pod as a Put, unless the result is 404."""

    pod: PodRef


class ReadObject(AnyAction, frozen=True):
    """Read an object whose state is not known. The caller also reports it as a Put; if the result is 404, as a Gone."""

    kind: str
    key: str


class Victims(msgspec.Struct, frozen=True):
    """The victims on a node, and how many of them a disruption budget protects."""

    pods: tuple[PodRef, ...]
    violations: int = 0


class Ask(AnyAction, frozen=True):
    """Call an HTTP extender; its reply is the result's `body`."""

    extender: int  # its index in the configuration
    verb: str  # "filter", "prioritize", "preempt" or "bind"
    pod: PodRef
    nodes: tuple[str, ...] = ()  # to filter or to score; for "bind" the one node
    victims: dict[str, Victims] = {}  # per node, for "preempt"
    labels: dict[str, dict[str, str]] = {}  # that replace the pods' own labels, by uid


class RequestMapping(msgspec.Struct, frozen=True, rename="camel"):
    """Which request of a claim provides an extended resource of a container."""

    container_name: str
    request_name: str
    resource_name: str


class ClaimWrite(msgspec.Struct, frozen=True):
    """What is written to one resource claim: its allocation, unless it has one, and that the pod uses it.

    made       the claim is made for extended resources of the pod: it is created first, and named in the pod's status
    together   other pods of the pod's group write the same allocation
    """

    key: str
    uid: str
    allocation: AllocationResult | None = None
    made: ResourceClaim | None = None
    mappings: tuple[RequestMapping, ...] = ()
    together: bool = False


class AllocateClaims(AnyAction, frozen=True):
    """Write the pod's resource claims, one after the other, each in several requests (`claim_calls`)."""

    pod: PodRef
    claims: tuple[ClaimWrite, ...]


class DeallocateClaim(AnyAction, frozen=True):
    """Take the devices from a claim that no other pod uses. `delete`: it was made for the pod's extended resources."""

    pod: PodRef
    key: str
    uid: str
    delete: bool = False


class ReleaseClaims(AnyAction, frozen=True):
    """The pod does not use these claims after all. The result does not matter. `delete`: as above, by key."""

    pod: PodRef
    claims: dict[str, str]  # uids by key
    delete: tuple[str, ...] = ()


ClaimAction: TypeAlias = AllocateClaims | DeallocateClaim | ReleaseClaims
Write: TypeAlias = Patch | Create | Delete | RequestEviction


def written_part(action: Write) -> str:
    """What a write needs the right to do: "create", "delete", "patch", "evict", or "status" for the status alone."""
    if isinstance(action, RequestEviction):
        return "evict"
    if not isinstance(action, Patch):
        return "create" if isinstance(action, Create) else "delete"
    body = action.body
    of_status = isinstance(body, dict) and "status" in body and body.keys() <= {"metadata", "status"}
    return "status" if of_status else "patch"


Action: TypeAlias = Bind | Evict | SetCondition | Nominate | Record | Write | Read | ReadObject | Ask | ClaimAction
