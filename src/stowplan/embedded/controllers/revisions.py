"""ControllerRevisions: the templates that a StatefulSet or a DaemonSet had, for `kubectl rollout history` and `undo`.

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
REVISION_LABEL = "controller-revision-hash"  # of pods, and of the revisions of DaemonSets
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
    used = {name, owner.get("status", {}).get("currentRevision", ""), *_of_pods(store, owner)}
    unused = [each for each in found if each["metadata"]["name"] not in used]
    for each in unused[: max(len(unused) - owner["spec"].get("revisionHistoryLimit", 10), 0)]:
        yield DeleteDocument(REVISIONS, queries.key_of(each), each["metadata"]["uid"])


def _of_pods(store: DocumentStore, owner: Document) -> set[str]:
    labels = [pod["metadata"].get("labels", {}).get(REVISION_LABEL, "") for pod in queries.owned(store, owner, "pods")]
    return {label if "-" in label else f"{owner['metadata']['name']}-{label}" for label in labels}


def current(store: DocumentStore, owner: Document) -> tuple[str, Document]:
    """The name and the template of the revision that a rolling update comes from."""
    name = owner.get("status", {}).get("currentRevision", "")
    for each in queries.owned(store, owner, REVISIONS):
        data = each.get("data")
        template = data.get("spec", {}).get("template") if isinstance(data, dict) else None
        if each["metadata"]["name"] == name and isinstance(template, dict):
            return name, {key: value for key, value in template.items() if key != "$patch"}
    return revision(owner), owner["spec"]["template"]


def _document(owner: Document, name: str, number: int) -> Document:
    template = owner["spec"]["template"]
    label = REVISION_LABEL if owner["kind"] == "DaemonSet" else _HASH
    labels = {**template.get("metadata", {}).get("labels", {}), label: name.rpartition("-")[2]}
    metadata: Document = {"name": name, "labels": labels, "ownerReferences": [queries.owner_reference(owner)]}
    if annotations := owner["metadata"].get("annotations"):
        metadata["annotations"] = annotations
    data = {"spec": {"template": {**template, "$patch": "replace"}}}
    return {"metadata": metadata, "data": data, "revision": number}
