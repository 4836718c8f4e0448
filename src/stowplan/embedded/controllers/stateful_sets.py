"""StatefulSets: pods with stable names, created in order, each with its own claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.embedded.controllers import queries, revisions, stateful_claims
from stowplan.embedded.controllers.actions import Action, CreateDocument, DeleteDocument, RecordEvent, SetStatus
from stowplan.embedded.controllers.revisions import revision
from stowplan.embedded.controllers.stateful_claims import COMPONENT
from stowplan.embedded.documents import Document
from stowplan.embedded.numbers import natural
from stowplan.embedded.store import DocumentStore, StoreChange

STATEFUL_SETS = "statefulsets.apps"
_REVISION, _NAME, _INDEX = (
    "controller-revision-hash",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
)


class StatefulSetController:
    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == STATEFUL_SETS:
            return (change.key,)
        key = queries.owner_key(change.document, "StatefulSet") if change.collection == "pods" else None
        return (key,) if key else ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        owner = self._store.get(STATEFUL_SETS, key)
        if owner is None:
            return
        if not queries.terminating(owner):
            yield from revisions.recorded(self._store, owner)
            yield from self._sync_claims(owner)
            yield from self._sync_pods(owner)
        yield from self._update_status(key, now)

    def refused(self, key: str, _error: str, now: float) -> Iterator[Action]:
        """Count the pods that were created before one was refused."""
        yield from self._update_status(key, now)

    def _sync_claims(self, owner: Document) -> Iterator[Action]:
        desired = _desired(owner)
        for pod in queries.owned(self._store, owner, "pods"):
            condemned = _ordinal(pod, owner) not in desired
            yield from stateful_claims.owned_as_retained(self._store, owner, pod, condemned=condemned)

    def _sync_pods(self, owner: Document) -> Iterator[Action]:
        """One step: create a missing pod, delete a surplus pod, or update one."""
        pods = {_ordinal(pod, owner): pod for pod in queries.owned(self._store, owner, "pods")}
        desired = _desired(owner)
        one_by_one = owner["spec"]["podManagementPolicy"] == "OrderedReady"
        for ordinal in desired:
            pod = pods.get(ordinal)
            if pod is None:
                yield from self._create(owner, ordinal)
            elif queries.phase(pod) in ("Failed", "Succeeded") and not queries.terminating(pod):
                yield self._delete(owner, pod)
            if one_by_one and (pod is None or not _healthy(pod)):
                return
        surplus = sorted((ordinal for ordinal in pods if ordinal not in desired), reverse=True)
        for ordinal in surplus:
            if not queries.terminating(pods[ordinal]):
                yield self._delete(owner, pods[ordinal])
            if one_by_one:
                return
        yield from self._update_pods(owner, pods, desired)

    def _update_pods(self, owner: Document, pods: dict[int, Document], desired: range) -> Iterator[Action]:
        """Delete outdated pods, from the last to the first, each only when all later ones are healthy."""
        if owner["spec"]["updateStrategy"]["type"] != "RollingUpdate":
            return
        for ordinal in reversed(desired):
            pod = pods.get(ordinal)
            if pod is None or _keeps_its_revision(owner, ordinal):
                continue
            if pod["metadata"].get("labels", {}).get(_REVISION) != revision(owner):
                if not queries.terminating(pod):
                    yield self._delete(owner, pod)
                return
            if not _healthy(pod):
                return

    def _create(self, owner: Document, ordinal: int) -> Iterator[Action]:
        metadata, spec = owner["metadata"], owner["spec"]
        name = f"{metadata['name']}-{ordinal}"
        latest, template = revision(owner), spec["template"]
        if _keeps_its_revision(owner, ordinal):
            latest, template = revisions.current(self._store, owner)
        pod = queries.pod_from(template, owner, name=name)
        pod["metadata"]["labels"] = {
            **pod["metadata"].get("labels", {}), _REVISION: latest, _NAME: name, _INDEX: str(ordinal),
        }  # fmt: skip
        pod["metadata"]["generateName"] = f"{metadata['name']}-"
        pod["spec"] = {**pod["spec"], "hostname": name}
        if spec.get("serviceName"):
            pod["spec"]["subdomain"] = spec["serviceName"]
        yield from stateful_claims.missing(self._store, owner, name)
        if volumes := stateful_claims.volumes(owner, name):
            named = {volume["name"] for volume in volumes}
            others = [volume for volume in pod["spec"].get("volumes", ()) if volume["name"] not in named]
            pod["spec"]["volumes"] = [*volumes, *others]
        message = f"Create Pod {name} in StatefulSet {metadata['name']}"
        event = RecordEvent(owner, "SuccessfulCreate", f"{message} successful", COMPONENT)
        yield CreateDocument("pods", metadata["namespace"], pod, event, (stateful_claims.failure(owner, message),))

    def _delete(self, owner: Document, pod: Document) -> Action:
        message = f"Delete Pod {{name}} in StatefulSet {owner['metadata']['name']} successful"
        event = RecordEvent(owner, "SuccessfulDelete", message, COMPONENT)
        return DeleteDocument("pods", queries.key_of(pod), pod["metadata"]["uid"], event=event)

    def _update_status(self, key: str, now: float) -> Iterator[Action]:
        owner = self._store.get(STATEFUL_SETS, key)
        if owner is None:
            return
        pods = [pod for pod in queries.owned(self._store, owner, "pods") if not queries.terminating(pod)]
        latest, before = revision(owner), owner.get("status", {})
        least = owner["spec"].get("minReadySeconds", 0)
        updated = sum(pod["metadata"].get("labels", {}).get(_REVISION) == latest for pod in pods)
        current = before.get("currentRevision", latest)
        if updated == len(pods) == owner["spec"]["replicas"] and all(_healthy(pod) for pod in pods):
            current = latest
        counts = {
            "readyReplicas": sum(queries.ready(pod) for pod in pods),
            "currentReplicas": sum(pod["metadata"].get("labels", {}).get(_REVISION) == current for pod in pods),
            "updatedReplicas": updated,
        }
        status: Document = {name: count for name, count in counts.items() if count}
        status |= {
            "replicas": len(pods), "availableReplicas": sum(queries.available(pod, least, now) for pod in pods),
            "currentRevision": current, "updateRevision": latest, "collisionCount": 0,
            "observedGeneration": owner["metadata"]["generation"],
        }  # fmt: skip
        if status != before:
            yield SetStatus(STATEFUL_SETS, key, owner["metadata"]["uid"], status)


def _desired(owner: Document) -> range:
    """The ordinals that a set should have."""
    first = owner["spec"].get("ordinals", {}).get("start", 0)
    return range(first, first + owner["spec"]["replicas"])


def _keeps_its_revision(owner: Document, ordinal: int) -> bool:
    """True below the partition of a rolling update, which counts from the first ordinal."""
    strategy = owner["spec"]["updateStrategy"]
    partition: int = strategy.get("rollingUpdate", {}).get("partition", 0)
    return strategy["type"] == "RollingUpdate" and ordinal < _desired(owner).start + partition


def _ordinal(pod: Document, owner: Document) -> int:
    text = pod["metadata"]["name"].removeprefix(f"{owner['metadata']['name']}-")
    return natural(text, -1)


def _healthy(pod: Document) -> bool:
    return queries.phase(pod) == "Running" and queries.ready(pod) and not queries.terminating(pod)
