"""ResourceClaims: made from templates for pods, freed of pods that are gone, and deallocated when nobody uses them.

    pod with a template ──► claim, owned by the pod ──► its name in the pod's status
    last user of a claim gone ──► allocation and finalizer removed ──► claim of a finished pod deleted

A scheduler allocates claims and reserves them for pods. A pod that was bound by somebody else is reserved here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import (
    Action,
    CreateDocument,
    DeleteDocument,
    RecordEvent,
    SetStatus,
    UpdateObject,
)
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange

CLAIMS, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"  # an annotation: for which entry of its pod a claim was made
_LONGEST_BASE, _MOST_USERS = 57, 256
_COMPONENT = "resource-claim-controller"


class PodClaimController:
    """Makes the claims of pods. The keys are those of pods."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._waiting: dict[str, set[str]] = {}  # pods by the key of the template that they wait for

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == "pods":
            return (change.key,) if change.now is not None and change.now["spec"].get("resourceClaims") else ()
        if change.collection == TEMPLATES and change.now is not None:
            return sorted(self._waiting.pop(change.key, ()))
        if change.collection == CLAIMS and change.now is None:
            owner = queries.owner_key(change.document, "Pod")
            return (owner,) if owner is not None else ()
        return ()

    def reconcile(self, key: str, _now: float) -> Iterator[Action]:
        pod = self._store.get("pods", key)
        if pod is None or queries.terminating(pod) or _done(pod):
            return
        for entry in pod["spec"].get("resourceClaims", ()):
            if "resourceClaimTemplateName" in entry and self._claim_of(pod, entry) is None:
                yield from self._make(pod, entry)
        yield from self._name_in_status(pod)
        if pod["spec"].get("nodeName"):
            yield from self._reserve(pod)

    def _claim_of(self, pod: Document, entry: Document) -> Document | None:
        """The claim that was made for an entry of the pod."""
        for claim in queries.owned(self._store, pod, CLAIMS):
            if claim["metadata"].get("annotations", {}).get(POD_CLAIM) == entry["name"]:
                return claim
        return None

    def _make(self, pod: Document, entry: Document) -> Iterator[Action]:
        namespace, name = pod["metadata"]["namespace"], entry["resourceClaimTemplateName"]
        template = self._store.get(TEMPLATES, f"{namespace}/{name}")
        if template is None:
            self._waiting.setdefault(f"{namespace}/{name}", set()).add(queries.key_of(pod))
            why = f'resource claim template "{name}": resourceclaimtemplate.resource.k8s.io "{name}" not found'
            yield _failure(pod, entry, why)
            return
        found = template["spec"].get("metadata", {})
        owner = {name: each for name, each in queries.owner_reference(pod).items() if name != "blockOwnerDeletion"}
        metadata: Document = {
            "generateName": _base(pod["metadata"]["name"], entry["name"]), "ownerReferences": [owner],
            "annotations": {**found.get("annotations", {}), POD_CLAIM: entry["name"]},
        }  # fmt: skip
        if found.get("labels"):
            metadata["labels"] = dict(found["labels"])
        refusals = (_failure(pod, entry, "create ResourceClaim : {error}"),)
        yield CreateDocument(
            CLAIMS, namespace, {"metadata": metadata, "spec": template["spec"]["spec"]}, None, refusals
        )

    def _name_in_status(self, pod: Document) -> Iterator[Action]:
        status = pod.get("status", {})
        known = {each["name"]: each for each in status.get("resourceClaimStatuses", ())}
        named = dict(known)
        for entry in pod["spec"].get("resourceClaims", ()):
            claim = self._claim_of(pod, entry) if "resourceClaimTemplateName" in entry else None
            if claim is not None:
                named[entry["name"]] = {"name": entry["name"], "resourceClaimName": claim["metadata"]["name"]}
        if named != known:
            status = {**status, "resourceClaimStatuses": list(named.values())}
            yield SetStatus("pods", queries.key_of(pod), pod["metadata"]["uid"], status)

    def _reserve(self, pod: Document) -> Iterator[Action]:
        """Reserve allocated claims for a pod that was bound without a scheduler."""
        names = claim_names(pod)
        for name in names:
            claim = self._store.get(CLAIMS, f"{pod['metadata']['namespace']}/{name}")
            status = claim.get("status", {}) if claim is not None else {}
            users = status.get("reservedFor", [])
            if claim is None or "allocation" not in status or len(users) >= _MOST_USERS or _uses(users, pod):
                continue
            user = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
            new = {**status, "reservedFor": [*users, user]}
            yield SetStatus(CLAIMS, queries.key_of(claim), claim["metadata"]["uid"], new)


class ResourceClaimController:
    """Frees claims of pods that are gone. The keys are those of claims."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == CLAIMS:
            return (change.key,) if change.now is not None else ()
        if change.collection == "pods" and (change.now is None or _done(change.now)):
            namespace = change.document["metadata"]["namespace"]
            owned = (key for _, key in self._store.owned_by(change.document["metadata"]["uid"], CLAIMS))
            return {*owned, *(f"{namespace}/{name}" for name in claim_names(change.document))}
        return ()

    def reconcile(self, key: str, _now: float) -> Iterator[Action]:
        claim = self._store.get(CLAIMS, key)
        if claim is None:
            return
        status = claim.get("status", {})
        users = status.get("reservedFor", [])
        left = [user for user in users if self._remains(user, claim)]
        if len(left) < len(users) or (queries.terminating(claim) and not left and "allocation" in status):
            status = {name: each for name, each in status.items() if name != "reservedFor"}
            status |= {"reservedFor": left} if left else {}
            if not left and FINALIZER in claim["metadata"].get("finalizers", ()):
                status = {}
            yield SetStatus(CLAIMS, key, claim["metadata"]["uid"], status)
        yield from self._release(key, freed=len(left) < len(users))

    def _release(self, key: str, *, freed: bool) -> Iterator[Action]:
        """Remove the finalizer of a claim that is not allocated any more, and delete the claim of a finished pod."""
        claim = self._store.get(CLAIMS, key)
        if claim is None or claim.get("status", {}).get("reservedFor"):
            return
        finalizers = claim["metadata"].get("finalizers", [])
        unused = "allocation" not in claim.get("status", {}) and (freed or queries.terminating(claim))
        if unused and FINALIZER in finalizers:
            metadata = {**claim["metadata"], "finalizers": [each for each in finalizers if each != FINALIZER]}
            yield UpdateObject(CLAIMS, {**claim, "metadata": metadata})
        owner = queries.controller_of(claim)
        if owner is None or owner["kind"] != "Pod" or queries.terminating(claim):
            return
        pod = self._store.get("pods", f"{claim['metadata']['namespace']}/{owner['name']}")
        if pod is not None and (pod["metadata"]["uid"] != owner["uid"] or _done(pod)):
            yield DeleteDocument(CLAIMS, key, claim["metadata"]["uid"])

    def _remains(self, user: Document, claim: Document) -> bool:
        """True if a user of a claim still needs it."""
        if user.get("apiGroup") or user.get("resource") != "pods":
            return True  # nobody here knows when it is gone
        pod = self._store.get("pods", f"{claim['metadata']['namespace']}/{user['name']}")
        return pod is not None and pod["metadata"]["uid"] == user["uid"] and not _done(pod)


def claim_names(pod: Document) -> list[str]:
    """The names of the claims that a pod uses, as far as they are known."""
    status = pod.get("status", {})
    made = {each["name"]: each.get("resourceClaimName", "") for each in status.get("resourceClaimStatuses", ())}
    names = [
        each.get("resourceClaimName") or made.get(each["name"], "") for each in pod["spec"].get("resourceClaims", ())
    ]
    names.append(status.get("extendedResourceClaimStatus", {}).get("resourceClaimName", ""))
    return [name for name in names if name]


def _uses(users: list[Document], pod: Document) -> bool:
    return any(user.get("uid") == pod["metadata"]["uid"] for user in users)


def _done(pod: Document) -> bool:
    """True for a pod that does not run any more, or was deleted before it was bound."""
    ended = queries.phase(pod) in ("Succeeded", "Failed")
    return ended or (queries.terminating(pod) and not pod["spec"].get("nodeName"))


def _base(pod: str, entry: str) -> str:
    """The start of a generated name: both names, each cut in proportion if they are too long together."""
    whole = f"{pod}-{entry}-"
    if len(whole) <= _LONGEST_BASE:
        return whole
    first = pod[: len(pod) * _LONGEST_BASE // len(whole)]
    start = f"{first}-"
    return start + entry[: len(entry) * _LONGEST_BASE // len(whole)]


def _failure(pod: Document, entry: Document, why: str) -> RecordEvent:
    message = f"PodResourceClaim {entry['name']}: {why}"
    return RecordEvent(pod, "FailedResourceClaimCreation", message, _COMPONENT, "Warning")
