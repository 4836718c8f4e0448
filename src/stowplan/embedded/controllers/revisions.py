"""ControllerRevisions: the templates that a StatefulSet had, for `kubectl rollout history` and `undo`.

The newest revision has the highest number. A template that was used before keeps its object and gets a new number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import Action, CreateDocument, DeleteDocument, UpdateObject
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore

REVISIONS = "controllerrevisions.apps"
_HASH = "controller.kubernetes.io/hash"


def revision(owner: Document) -> str:
    """The name of the revision of a template."""
    text = msgspec.json.encode(owner["spec"]["template"], order="sorted")
    return f"{owner['metadata']['name']}-{hashlib.sha256(text).hexdigest()[:10]}"


def recorded(store: DocumentStore, owner: Document) -> Iterator[Action]:
    """Record the current template as the newest revision, and forget the oldest that no pod uses."""
    found = sorted(queries.owned(store, owner, REVISIONS), key=lambda each: int(each["revision"]))
    newest, name = found[-1]["revision"] if found else 0, revision(owner)
    current = next((each for each in found if each["metadata"]["name"] == name), None)
    if current is None:
        yield CreateDocument(REVISIONS, owner["metadata"]["namespace"], _document(owner, name, newest + 1))
    elif current["revision"] != newest:
        yield UpdateObject(REVISIONS, {**current, "revision": newest + 1})
    used = {name, owner.get("status", {}).get("currentRevision", "")}
    unused = [each for each in found if each["metadata"]["name"] not in used]
    for each in unused[: max(len(unused) - owner["spec"].get("revisionHistoryLimit", 10), 0)]:
        yield DeleteDocument(REVISIONS, queries.key_of(each), each["metadata"]["uid"])


def _document(owner: Document, name: str, number: int) -> Document:
    template = owner["spec"]["template"]
    labels = {**template.get("metadata", {}).get("labels", {}), _HASH: name.rpartition("-")[2]}
    metadata: Document = {"name": name, "labels": labels, "ownerReferences": [queries.owner_reference(owner)]}
    if annotations := owner["metadata"].get("annotations"):
        metadata["annotations"] = annotations
    data = {"spec": {"template": {**template, "$patch": "replace"}}}
    return {"metadata": metadata, "data": data, "revision": number}
