"""Functions on the store and on pods that several controllers share."""

from __future__ import annotations

from typing import Any

from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore
from stowplan.embedded.timestamps import seconds, stamp


def key_of(document: Document) -> str:
    metadata = document["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])


def controller_of(document: Document | None) -> Document | None:
    """The owner reference of the controller."""
    for owner in document["metadata"].get("ownerReferences", ()) if document else ():
        if owner.get("controller"):
            found: Document = owner
            return found
    return None


def owner_key(document: Document | None, kind: str) -> str | None:
    """The key of the controller of an object, if it is of this kind."""
    owner = controller_of(document)
    if owner is None or owner["kind"] != kind or document is None:
        return None
    return f"{document['metadata']['namespace']}/{owner['name']}"


def owned(store: DocumentStore, owner: Document, collection: str) -> list[Document]:
    """The objects that an owner controls."""
    uid = owner["metadata"]["uid"]
    found = (store.get(*pair) for pair in store.owned_by(uid, collection))
    return [each for each in found if each is not None and (controller_of(each) or {}).get("uid") == uid]


def owner_reference(owner: Document) -> Document:
    return {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


def pod_from(template: Document, owner: Document, *, name: str = "") -> Document:
    """A pod of a template. Without a name, its name is generated from the owner's."""
    found = template.get("metadata", {})
    metadata: Document = {part: dict(found[part]) for part in ("labels", "annotations") if found.get(part)}
    if found.get("finalizers"):
        metadata["finalizers"] = list(found["finalizers"])
    metadata |= {"name": name} if name else {"generateName": f"{owner['metadata']['name']}-"}
    metadata["ownerReferences"] = [owner_reference(owner)]
    return {"metadata": metadata, "spec": template["spec"]}


def terminating(document: Document) -> bool:
    return "deletionTimestamp" in document["metadata"]


def phase(pod: Document) -> str:
    return str(pod.get("status", {}).get("phase", ""))


def active(pod: Document) -> bool:
    return phase(pod) not in ("Succeeded", "Failed") and not terminating(pod)


def condition(document: Document, kind: str) -> Document | None:
    found = document.get("status", {}).get("conditions", ())
    return next((each for each in found if each["type"] == kind), None)


def ready(pod: Document) -> bool:
    found = condition(pod, "Ready")
    return found is not None and found.get("status") == "True"


def available(pod: Document, least: int, now: float) -> bool:
    """True if the pod has been ready for at least so many seconds."""
    found = condition(pod, "Ready")
    if found is None or found.get("status") != "True":
        return False
    return least == 0 or now - seconds(found.get("lastTransitionTime", "")) >= least


def with_condition(
    conditions: list[Document], kind: str, status: str, now: float, reason: str = "", message: str | None = None,
    **more: Any,
) -> list[Document]:  # fmt: skip
    """The conditions with one of them set. While its status stays the same, so does lastTransitionTime."""
    old = next((each for each in conditions if each["type"] == kind), None)
    new: Document = {"type": kind, "status": status, "lastTransitionTime": stamp(now), **more}
    new |= {"reason": reason} if reason else {}
    new |= {"message": message} if message is not None else {}
    if old is not None and old["status"] == status:
        new["lastTransitionTime"] = old.get("lastTransitionTime", new["lastTransitionTime"])
    return [new if each is old else each for each in conditions] if old is not None else [*conditions, new]


def int_or_percent(value: int | str, of: int, *, up: bool) -> int:
    """A number, or a percentage of another number, rounded up or down."""
    if isinstance(value, int):
        return value
    percent = int(value.rstrip("%"))
    return -(-of * percent // 100) if up else of * percent // 100
