"""The claims of a StatefulSet: one for each ordinal and template, kept when their pod goes.

`persistentVolumeClaimRetentionPolicy` says otherwise through owners, and garbage collection does the rest: with
`whenDeleted: Delete` the set owns its claims, with `whenScaled: Delete` a pod that is scaled away owns its claims.
"""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import Action, CreateDocument, RecordEvent, UpdateObject
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore

CLAIMS = "persistentvolumeclaims"
COMPONENT = "statefulset-controller"


def volumes(owner: Document, pod_name: str) -> list[Document]:
    """The volumes that a pod has for its claims."""
    templates = owner["spec"].get("volumeClaimTemplates", ())
    names = [template["metadata"].get("name", "") for template in templates]
    return [{"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod_name}"}} for name in names]


def missing(store: DocumentStore, owner: Document, pod_name: str) -> Iterator[Action]:
    """Create the claims of a pod that do not exist yet."""
    namespace, about = owner["metadata"]["namespace"], owner["metadata"]["name"]
    for template in owner["spec"].get("volumeClaimTemplates", ()):
        name = f"{template['metadata'].get('name', '')}-{pod_name}"
        if store.get(CLAIMS, f"{namespace}/{name}") is not None:
            continue
        labels = {**template["metadata"].get("labels", {}), **owner["spec"]["selector"].get("matchLabels", {})}
        metadata: Document = {**template["metadata"], "name": name, "labels": labels}
        if _policy(owner, "whenDeleted") == "Delete":
            metadata["ownerReferences"] = [queries.owner_reference(owner)]
        message = f"Create Claim {name} Pod {pod_name} in StatefulSet {about} success"
        event = RecordEvent(owner, "SuccessfulCreate", message, COMPONENT)
        refusals = (
            failure(owner, f"Create Claim {name} for Pod {pod_name} in StatefulSet {about}"),
            failure(owner, f"Create Pod {pod_name} in StatefulSet {about}", f"failed to create PVC {name}: "),
        )
        yield CreateDocument(CLAIMS, namespace, {"metadata": metadata, "spec": template["spec"]}, event, refusals)


def failure(owner: Document, attempt: str, why: str = "") -> RecordEvent:
    """What is told of an attempt that the API refuses."""
    return RecordEvent(owner, "FailedCreate", f"{attempt} failed error: {why}{{error}}", COMPONENT, "Warning")


def owned_as_retained(store: DocumentStore, owner: Document, pod: Document, *, condemned: bool) -> Iterator[Action]:
    """Give the claims of a pod the owners that the retention policy wants."""
    desired: list[Document] = []
    if condemned and _policy(owner, "whenScaled") == "Delete":
        reference = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        desired = [reference]
    elif _policy(owner, "whenDeleted") == "Delete":
        desired = [queries.owner_reference(owner)]
    for volume in volumes(owner, pod["metadata"]["name"]):
        name = volume["persistentVolumeClaim"]["claimName"]
        claim = store.get(CLAIMS, f"{owner['metadata']['namespace']}/{name}")
        if claim is None or queries.terminating(claim):
            continue
        before = claim["metadata"].get("ownerReferences", [])
        after = [each for each in before if not _ours(each, owner)] + desired
        if [each["uid"] for each in after] != [each["uid"] for each in before]:
            yield UpdateObject(CLAIMS, {**claim, "metadata": {**claim["metadata"], "ownerReferences": after}})


def _policy(owner: Document, when: str) -> str:
    found = owner["spec"].get("persistentVolumeClaimRetentionPolicy", {}).get(when, "Retain")
    return str(found)


def _ours(reference: Document, owner: Document) -> bool:
    """True for a reference to the set, or to one of its pods."""
    name = str(owner["metadata"]["name"])
    is_pod = reference["kind"] == "Pod" and str(reference["name"]).rpartition("-")[0] == name
    return is_pod or reference["uid"] == owner["metadata"]["uid"]
