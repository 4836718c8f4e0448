"""ReplicaSets and ReplicationControllers: as many pods as they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import Action, CheckAgain, CreateObject, DeleteObject, EventNote, SetStatus
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.embedded.timestamps import seconds

Document: TypeAlias = dict[str, Any]

_AT_ONCE = 500  # pods made or deleted before others have their turn
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSetController:
    """`kind` is ReplicaSet or ReplicationController."""

    def __init__(self, store: DocumentStore, collection: str, kind: str, component: str) -> None:
        self._store, self._collection, self._kind, self._component = store, collection, kind, component

    def concerns(self, happened: StoreChange) -> Iterable[str]:
        if happened.collection == self._collection:
            return (happened.key,)
        if happened.collection == "pods":
            key = queries.owner_key(happened.document, self._kind)
            return (key,) if key else ()
        return ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        owner = self._store.get(self._collection, key)
        if owner is None:
            return
        pods = queries.owned(self._store, owner, "pods")
        version = self._store.version
        if not queries.leaving(owner):
            yield from self._adjust(owner, [pod for pod in pods if queries.active(pod)])
        if self._store.version != version:
            owner = self._store.get(self._collection, key)
            if owner is None:
                return
            pods = queries.owned(self._store, owner, "pods")
        yield from self._report(key, owner, pods, now)

    def _adjust(self, owner: Document, pods: list[Document]) -> Iterator[Action]:
        missing = owner["spec"].get("replicas", 1) - len(pods)
        namespace = owner["metadata"]["namespace"]
        for _ in range(min(missing, _AT_ONCE)):
            note = EventNote(owner, "SuccessfulCreate", "Created pod: {name}", self._component)
            yield CreateObject("pods", namespace, queries.pod_from(owner["spec"]["template"], owner), note)
        for pod in self._least_wanted(pods)[: min(-missing, _AT_ONCE)] if missing < 0 else ():
            note = EventNote(owner, "SuccessfulDelete", "Deleted pod: {name}", self._component)
            yield DeleteObject("pods", queries.key_of(pod), pod["metadata"]["uid"], note=note)
        if abs(missing) > _AT_ONCE:
            yield CheckAgain(0.0)

    def _least_wanted(self, pods: list[Document]) -> list[Document]:
        """Those that do least good first: without a node, not running, not ready, crowded, young."""
        crowd: dict[str, int] = {}
        for pod in pods:
            node = pod["spec"].get("nodeName", "")
            crowd[node] = crowd.get(node, 0) + 1

        def rank(pod: Document) -> tuple[Any, ...]:
            node = pod["spec"].get("nodeName", "")
            since = -seconds(pod["metadata"]["creationTimestamp"])
            return bool(node), _PHASES.get(queries.phase(pod), 3), queries.ready(pod), -crowd[node], since

        return sorted(pods, key=rank)

    def _report(self, key: str, owner: Document, pods: list[Document], now: float) -> Iterator[Action]:
        running = [pod for pod in pods if queries.active(pod)]
        least = owner["spec"].get("minReadySeconds", 0)
        ready = sum(queries.ready(pod) for pod in running)
        available = sum(queries.available(pod, least, now) for pod in running)
        counts = {
            "replicas": len(running), "fullyLabeledReplicas": len(running), "readyReplicas": ready,
            "availableReplicas": available,
        }  # fmt: skip
        status = {name: count for name, count in counts.items() if count or name == "replicas"}
        if self._kind == "ReplicaSet":
            status["terminatingReplicas"] = sum(queries.leaving(pod) for pod in pods)
        status["observedGeneration"] = owner["metadata"]["generation"]
        if owner.get("status") != status:
            yield SetStatus(self._collection, key, owner["metadata"]["uid"], status)
        if ready > available:
            yield CheckAgain(float(least))
