"""Deployments: one ReplicaSet for each template, and rolling updates between them.

There are never more than `replicas + maxSurge` pods, and never fewer than `replicas - maxUnavailable` available ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import msgspec

from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import (
    Action,
    CreateDocument,
    DeleteDocument,
    RecordEvent,
    RequeueAfter,
    SetStatus,
    UpdateObject,
)
from stowplan.embedded.controllers.deployment_scaling import new_set_replicas, old_set_replicas, surge
from stowplan.embedded.controllers.deployment_status import SET_REFUSED, refused_status, status_of
from stowplan.embedded.documents import Document
from stowplan.embedded.numbers import natural
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.embedded.timestamps import seconds

DEPLOYMENTS, REPLICA_SETS = "deployments.apps", "replicasets.apps"
HASH = "pod-template-hash"
REVISION, _HISTORY = "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"
_DESIRED_REPLICAS, _MAX_REPLICAS = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = ("kubectl.kubernetes.io/last-applied-configuration", REVISION, _HISTORY, _DESIRED_REPLICAS, _MAX_REPLICAS)
_COMPONENT = "deployment-controller"
_NOT_CREATED = "Failed to create new replica set"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class DeploymentController:
    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == DEPLOYMENTS:
            return (change.key,)
        if change.collection == REPLICA_SETS:
            key = queries.owner_key(change.document, "Deployment")
            return (key,) if key else ()
        if change.collection == "pods" and change.now is None:  # Recreate waits for the last old pod
            owner = queries.owner_key(change.document, "ReplicaSet")
            found = self._store.get(REPLICA_SETS, owner) if owner else None
            key = queries.owner_key(found, "Deployment")
            return (key,) if key else ()
        return ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        deployment = self._store.get(DEPLOYMENTS, key)
        if deployment is None or queries.terminating(deployment):
            return
        if not deployment["spec"].get("paused"):
            yield from self._ensure_new_set(deployment)
            yield from self._roll_out(key)
            yield from self._delete_old_sets(key)
        else:
            yield from self._scale_paused(key)
        yield from self._update_status(key, now)

    def refused(self, key: str, error: str, now: float) -> Iterator[Action]:
        """Tell that a ReplicaSet was refused."""
        deployment = self._store.get(DEPLOYMENTS, key)
        if deployment is not None:
            name = f"{deployment['metadata']['name']}-{_template_hash(deployment['spec']['template'])}"
            status = refused_status(deployment, f'{_NOT_CREATED} "{name}": {error}', now)
            yield SetStatus(DEPLOYMENTS, key, deployment["metadata"]["uid"], status)

    # -- the ReplicaSets

    def _sets(self, deployment: Document) -> tuple[Document | None, list[Document]]:
        """The ReplicaSet of the current template, and the others, oldest first."""
        found = queries.owned(self._store, deployment, REPLICA_SETS)
        found.sort(key=lambda each: (seconds(each["metadata"]["creationTimestamp"]), each["metadata"]["name"]))
        template = _without_hash(deployment["spec"]["template"])
        new = next((each for each in found if _without_hash(each["spec"]["template"]) == template), None)
        return new, [each for each in found if each is not new]

    def _ensure_new_set(self, deployment: Document) -> Iterator[Action]:
        new, old = self._sets(deployment)
        last = max((_revision(each) for each in old), default=0)
        if new is None:
            yield self._new_set(deployment, old, last + 1)
            revision = last + 1
        else:
            revision = max(_revision(new), last + 1) if _revision(new) <= last else _revision(new)
            annotations = {
                **_copied_annotations(deployment),
                **_replica_annotations(deployment),
                **_revision_annotations(new, revision),
            }
            current = new["metadata"].get("annotations", {})
            if {**current, **annotations} != current:
                metadata = {**new["metadata"], "annotations": {**current, **annotations}}
                yield UpdateObject(REPLICA_SETS, {**new, "metadata": metadata})
        current = deployment["metadata"].get("annotations", {})
        if current.get(REVISION) != str(revision):
            metadata = {**deployment["metadata"], "annotations": {**current, REVISION: str(revision)}}
            yield UpdateObject(DEPLOYMENTS, {**deployment, "metadata": metadata})

    def _new_set(self, deployment: Document, old: list[Document], revision: int) -> Action:
        metadata, spec = deployment["metadata"], deployment["spec"]
        template_hash = _template_hash(spec["template"])
        template = spec["template"]
        labels = {**template["metadata"].get("labels", {}), HASH: template_hash}
        selector = {**spec["selector"], "matchLabels": {**spec["selector"].get("matchLabels", {}), HASH: template_hash}}
        replicas = new_set_replicas(deployment, None, old)
        name = f"{metadata['name']}-{template_hash}"
        annotations = {**_copied_annotations(deployment), **_replica_annotations(deployment), REVISION: str(revision)}
        document = {
            "metadata": {
                "name": name, "labels": labels, "ownerReferences": [queries.owner_reference(deployment)],
                "annotations": annotations,
            },
            "spec": {
                "replicas": replicas, "selector": selector, "minReadySeconds": spec.get("minReadySeconds", 0),
                "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
            },
        }  # fmt: skip
        if not document["spec"]["minReadySeconds"]:
            del document["spec"]["minReadySeconds"]
        event = _scaling_event(deployment, name, 0, replicas) if replicas else None
        refusal = RecordEvent(deployment, SET_REFUSED, f'{_NOT_CREATED} "{name}": {{error}}', _COMPONENT, "Warning")
        return CreateDocument(REPLICA_SETS, metadata["namespace"], document, event, (refusal,))

    # -- the replicas of each of them

    def _roll_out(self, key: str) -> Iterator[Action]:
        deployment = self._store.get(DEPLOYMENTS, key)
        if deployment is None:
            return
        new, old = self._sets(deployment)
        if new is None:
            return
        if deployment["spec"]["strategy"]["type"] == "Recreate":
            yield from self._recreate(deployment, new, old)
            return
        yield from _scale(deployment, new, new_set_replicas(deployment, new, old))
        new, old = self._sets(deployment)
        if new is not None:
            for each, desired in old_set_replicas(deployment, new, old):
                yield from _scale(deployment, each, desired)

    def _recreate(self, deployment: Document, new: Document, old: list[Document]) -> Iterator[Action]:
        for each in old:
            yield from _scale(deployment, each, 0)
        if not any(queries.owned(self._store, each, "pods") for each in old):
            yield from _scale(deployment, new, deployment["spec"]["replicas"])

    def _scale_paused(self, key: str) -> Iterator[Action]:
        """Scale the newest ReplicaSet only; nothing is rolled out."""
        deployment = self._store.get(DEPLOYMENTS, key)
        assert deployment is not None
        new, old = self._sets(deployment)
        target = new or (old[-1] if old else None)
        if target is not None:
            others = sum(each["spec"]["replicas"] for each in old if each is not target)
            yield from _scale(deployment, target, max(deployment["spec"]["replicas"] - others, 0))

    def _delete_old_sets(self, key: str) -> Iterator[Action]:
        deployment = self._store.get(DEPLOYMENTS, key)
        if deployment is None:
            return
        _, old = self._sets(deployment)
        idle = [each for each in old if not each["spec"]["replicas"] and not each.get("status", {}).get("replicas")]
        keep = deployment["spec"].get("revisionHistoryLimit", 10)
        for each in sorted(idle, key=_revision)[: max(len(idle) - keep, 0)]:
            yield DeleteDocument(REPLICA_SETS, queries.key_of(each), each["metadata"]["uid"])

    def _update_status(self, key: str, now: float) -> Iterator[Action]:
        deployment = self._store.get(DEPLOYMENTS, key)
        if deployment is None:
            return
        new, old = self._sets(deployment)
        status, requeue_after = status_of(deployment, new, old, now)
        if status != deployment.get("status"):
            yield SetStatus(DEPLOYMENTS, key, deployment["metadata"]["uid"], status)
        if requeue_after is not None:
            yield RequeueAfter(requeue_after)


def _without_hash(template: Document) -> Document:
    metadata = template.get("metadata", {})
    labels = {key: value for key, value in metadata.get("labels", {}).items() if key != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _template_hash(template: Document) -> str:
    number = int.from_bytes(hashlib.sha256(msgspec.json.encode(template, order="sorted")).digest()[:7], "big")
    letters = ""
    while len(letters) < 10:
        number, rest = divmod(number, len(_LETTERS))
        letters += _LETTERS[rest]
    return letters


def _revision_annotations(replica_set: Document, revision: int) -> Document:
    """The revision of a ReplicaSet, and those that it had before, if it gets another one."""
    found = replica_set["metadata"].get("annotations", {})
    if found.get(REVISION) in (None, str(revision)):
        return {REVISION: str(revision)}
    history = [*filter(None, found.get(_HISTORY, "").split(",")), found[REVISION]]
    return {REVISION: str(revision), _HISTORY: ",".join(history)}


def _revision(document: Document) -> int:
    text = document["metadata"].get("annotations", {}).get(REVISION, "0")
    return natural(text, 0)


def _copied_annotations(deployment: Document) -> dict[str, str]:
    found = deployment["metadata"].get("annotations", {})
    return {key: value for key, value in found.items() if key not in _NOT_COPIED}


def _replica_annotations(deployment: Document) -> dict[str, str]:
    replicas = deployment["spec"]["replicas"]
    return {_DESIRED_REPLICAS: str(replicas), _MAX_REPLICAS: str(replicas + surge(deployment))}


def _scale(deployment: Document, replica_set: Document, desired: int) -> Iterator[Action]:
    current = replica_set["spec"]["replicas"]
    if current == desired:
        return
    metadata = replica_set["metadata"]
    annotations = {**metadata.get("annotations", {}), **_replica_annotations(deployment)}
    document = {
        **replica_set, "metadata": {**metadata, "annotations": annotations},
        "spec": {**replica_set["spec"], "replicas": desired},
    }  # fmt: skip
    yield UpdateObject(REPLICA_SETS, document, _scaling_event(deployment, metadata["name"], current, desired))


def _scaling_event(deployment: Document, name: str, current: int, desired: int) -> RecordEvent:
    direction = "up" if desired > current else "down"
    message = f"Scaled {direction} replica set {name} from {current} to {desired}"
    return RecordEvent(deployment, "ScalingReplicaSet", message, _COMPONENT)
