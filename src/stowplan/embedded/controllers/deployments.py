"""Deployments: a ReplicaSet for each template, and pods moved from the old ones to the new one, a few at a time.

Never more than `replicas + maxSurge` pods, never fewer than `replicas - maxUnavailable` of them available.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import (
    Action,
    CheckAgain,
    CreateObject,
    DeleteObject,
    EventNote,
    SetStatus,
    UpdateObject,
)
from stowplan.embedded.controllers.deployment_scaling import grown, shrunk, surge
from stowplan.embedded.controllers.deployment_status import reported
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.embedded.timestamps import seconds

Document: TypeAlias = dict[str, Any]

DEPLOYMENTS, REPLICA_SETS = "deployments.apps", "replicasets.apps"
HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_DESIRED, _MOST = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = ("kubectl.kubernetes.io/last-applied-configuration", REVISION, _DESIRED, _MOST)
_COMPONENT = "deployment-controller"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class DeploymentController:
    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def concerns(self, happened: StoreChange) -> Iterable[str]:
        if happened.collection == DEPLOYMENTS:
            return (happened.key,)
        if happened.collection == REPLICA_SETS:
            key = queries.owner_key(happened.document, "Deployment")
            return (key,) if key else ()
        if happened.collection == "pods" and happened.now is None:  # a Recreate waits for the last one
            owner = queries.owner_key(happened.document, "ReplicaSet")
            found = self._store.get(REPLICA_SETS, owner) if owner else None
            key = queries.owner_key(found, "Deployment")
            return (key,) if key else ()
        return ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        deployment = self._store.get(DEPLOYMENTS, key)
        if deployment is None or queries.leaving(deployment):
            return
        if not deployment["spec"].get("paused"):
            yield from self._ensure_new(deployment)
            yield from self._move(key)
            yield from self._forget_old(key)
        else:
            yield from self._scale_paused(key)
        yield from self._report(key, now)

    # -- which ReplicaSets there are

    def _sets(self, deployment: Document) -> tuple[Document | None, list[Document]]:
        """The one of the present template, and the others, oldest first."""
        found = queries.owned(self._store, deployment, REPLICA_SETS)
        found.sort(key=lambda each: (seconds(each["metadata"]["creationTimestamp"]), each["metadata"]["name"]))
        template = _bare(deployment["spec"]["template"])
        new = next((each for each in found if _bare(each["spec"]["template"]) == template), None)
        return new, [each for each in found if each is not new]

    def _ensure_new(self, deployment: Document) -> Iterator[Action]:
        new, old = self._sets(deployment)
        last = max((_revision(each) for each in old), default=0)
        if new is None:
            yield self._creation(deployment, old, last + 1)
            revision = last + 1
        else:
            revision = max(_revision(new), last + 1) if _revision(new) <= last else _revision(new)
            annotations = {**_copied(deployment), **_counts(deployment), REVISION: str(revision)}
            present = new["metadata"].get("annotations", {})
            if {**present, **annotations} != present:
                metadata = {**new["metadata"], "annotations": {**present, **annotations}}
                yield UpdateObject(REPLICA_SETS, {**new, "metadata": metadata})
        present = deployment["metadata"].get("annotations", {})
        if present.get(REVISION) != str(revision):
            metadata = {**deployment["metadata"], "annotations": {**present, REVISION: str(revision)}}
            yield UpdateObject(DEPLOYMENTS, {**deployment, "metadata": metadata})

    def _creation(self, deployment: Document, old: list[Document], revision: int) -> Action:
        metadata, spec = deployment["metadata"], deployment["spec"]
        digest = _digest(spec["template"])
        template = spec["template"]
        labels = {**template["metadata"].get("labels", {}), HASH: digest}
        selector = {**spec["selector"], "matchLabels": {**spec["selector"].get("matchLabels", {}), HASH: digest}}
        replicas = grown(deployment, None, old)
        name = f"{metadata['name']}-{digest}"
        document = {
            "metadata": {
                "name": name, "labels": labels, "ownerReferences": [queries.owner_reference(deployment)],
                "annotations": {**_copied(deployment), **_counts(deployment), REVISION: str(revision)},
            },
            "spec": {
                "replicas": replicas, "selector": selector, "minReadySeconds": spec.get("minReadySeconds", 0),
                "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
            },
        }  # fmt: skip
        if not document["spec"]["minReadySeconds"]:
            del document["spec"]["minReadySeconds"]
        note = _scaling(deployment, name, 0, replicas) if replicas else None
        return CreateObject(REPLICA_SETS, metadata["namespace"], document, note)

    # -- how many pods each of them has

    def _move(self, key: str) -> Iterator[Action]:
        deployment = self._store.get(DEPLOYMENTS, key)
        if deployment is None:
            return
        new, old = self._sets(deployment)
        if new is None:
            return
        if deployment["spec"]["strategy"]["type"] == "Recreate":
            yield from self._recreate(deployment, new, old)
            return
        yield from _scaled(deployment, new, grown(deployment, new, old))
        new, old = self._sets(deployment)
        if new is not None:
            for each, wanted in shrunk(deployment, new, old):
                yield from _scaled(deployment, each, wanted)

    def _recreate(self, deployment: Document, new: Document, old: list[Document]) -> Iterator[Action]:
        for each in old:
            yield from _scaled(deployment, each, 0)
        if not any(queries.owned(self._store, each, "pods") for each in old):
            yield from _scaled(deployment, new, deployment["spec"]["replicas"])

    def _scale_paused(self, key: str) -> Iterator[Action]:
        """The youngest set takes the difference; nothing is moved."""
        deployment = self._store.get(DEPLOYMENTS, key)
        assert deployment is not None
        new, old = self._sets(deployment)
        target = new or (old[-1] if old else None)
        if target is not None:
            others = sum(each["spec"]["replicas"] for each in old if each is not target)
            yield from _scaled(deployment, target, max(deployment["spec"]["replicas"] - others, 0))

    def _forget_old(self, key: str) -> Iterator[Action]:
        deployment = self._store.get(DEPLOYMENTS, key)
        if deployment is None:
            return
        _, old = self._sets(deployment)
        idle = [each for each in old if not each["spec"]["replicas"] and not each.get("status", {}).get("replicas")]
        keep = deployment["spec"].get("revisionHistoryLimit", 10)
        for each in sorted(idle, key=_revision)[: max(len(idle) - keep, 0)]:
            yield DeleteObject(REPLICA_SETS, queries.key_of(each), each["metadata"]["uid"])

    def _report(self, key: str, now: float) -> Iterator[Action]:
        deployment = self._store.get(DEPLOYMENTS, key)
        if deployment is None:
            return
        new, old = self._sets(deployment)
        status, again = reported(deployment, new, old, now)
        if status != deployment.get("status"):
            yield SetStatus(DEPLOYMENTS, key, deployment["metadata"]["uid"], status)
        if again is not None:
            yield CheckAgain(again)


def _bare(template: Document) -> Document:
    metadata = template.get("metadata", {})
    labels = {key: value for key, value in metadata.get("labels", {}).items() if key != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _digest(template: Document) -> str:
    number = int.from_bytes(hashlib.sha256(msgspec.json.encode(template, order="sorted")).digest()[:7], "big")
    letters = ""
    while len(letters) < 10:
        number, rest = divmod(number, len(_LETTERS))
        letters += _LETTERS[rest]
    return letters


def _revision(document: Document) -> int:
    text = document["metadata"].get("annotations", {}).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def _copied(deployment: Document) -> dict[str, str]:
    found = deployment["metadata"].get("annotations", {})
    return {key: value for key, value in found.items() if key not in _NOT_COPIED}


def _counts(deployment: Document) -> dict[str, str]:
    replicas = deployment["spec"]["replicas"]
    return {_DESIRED: str(replicas), _MOST: str(replicas + surge(deployment))}


def _scaled(deployment: Document, replica_set: Document, wanted: int) -> Iterator[Action]:
    present = replica_set["spec"]["replicas"]
    if present == wanted:
        return
    metadata = replica_set["metadata"]
    annotations = {**metadata.get("annotations", {}), **_counts(deployment)}
    document = {
        **replica_set, "metadata": {**metadata, "annotations": annotations},
        "spec": {**replica_set["spec"], "replicas": wanted},
    }  # fmt: skip
    yield UpdateObject(REPLICA_SETS, document, _scaling(deployment, metadata["name"], present, wanted))


def _scaling(deployment: Document, name: str, present: int, wanted: int) -> EventNote:
    word = "up" if wanted > present else "down"
    message = f"Scaled {word} replica set {name} from {present} to {wanted}"
    return EventNote(deployment, "ScalingReplicaSet", message, _COMPONENT)
