"""ReplicaSets and ReplicationControllers: the desired number of pods."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import (
    Action,
    CreateDocument,
    DeleteDocument,
    RecordEvent,
    RequeueAfter,
    SetStatus,
)
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.embedded.timestamps import seconds, stamp

_MAX_PER_SYNC = 500  # pods created or deleted before other keys are reconciled
_COST, _NUMBER = "controller.kubernetes.io/pod-deletion-cost", re.compile(r"0|-?[1-9]\d{0,9}", re.ASCII)
_FAILURE = "ReplicaFailure"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSetController:
    """`kind` is ReplicaSet or ReplicationController."""

    def __init__(self, store: DocumentStore, collection: str, kind: str, component: str) -> None:
        self._store, self._collection, self._kind, self._component = store, collection, kind, component

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == self._collection:
            return (change.key,)
        if change.collection == "pods":
            key = queries.owner_key(change.document, self._kind)
            return (key,) if key else ()
        return ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        owner = self._store.get(self._collection, key)
        if owner is None:
            return
        pods = queries.owned(self._store, owner, "pods")
        version = self._store.version
        if not queries.terminating(owner):
            yield from self._sync_pods(owner, [pod for pod in pods if queries.active(pod)])
        if self._store.version != version:
            owner = self._store.get(self._collection, key)
            if owner is None:
                return
            pods = queries.owned(self._store, owner, "pods")
        yield from self._update_status(key, owner, pods, now)

    def refused(self, key: str, error: str, now: float) -> Iterator[Action]:
        """Tell that a pod was refused. The first refusal stays until no pod is missing."""
        owner = self._store.get(self._collection, key)
        if owner is None:
            return
        failure = queries.condition(owner, _FAILURE) or {
            "type": _FAILURE, "status": "True", "reason": "FailedCreate", "message": error,
            "lastTransitionTime": stamp(now),
        }  # fmt: skip
        yield from self._update_status(key, owner, queries.owned(self._store, owner, "pods"), now, failure)

    def _sync_pods(self, owner: Document, pods: list[Document]) -> Iterator[Action]:
        missing = owner["spec"].get("replicas", 1) - len(pods)
        namespace = owner["metadata"]["namespace"]
        for _ in range(min(missing, _MAX_PER_SYNC)):
            event = RecordEvent(owner, "SuccessfulCreate", "Created pod: {name}", self._component)
            yield CreateDocument("pods", namespace, queries.pod_from(owner["spec"]["template"], owner), event)
        for pod in self._deletion_order(pods)[: min(-missing, _MAX_PER_SYNC)] if missing < 0 else ():
            event = RecordEvent(owner, "SuccessfulDelete", "Deleted pod: {name}", self._component)
            yield DeleteDocument("pods", queries.key_of(pod), pod["metadata"]["uid"], event=event)
        if abs(missing) > _MAX_PER_SYNC:
            yield RequeueAfter(0.0)

    def _deletion_order(self, pods: list[Document]) -> list[Document]:
        """Pods in the order of deletion: first without a node, not running, not ready, of low cost, on crowded nodes,
        new.
        """
        pods_per_node: dict[str, int] = {}
        for pod in pods:
            node = pod["spec"].get("nodeName", "")
            pods_per_node[node] = pods_per_node.get(node, 0) + 1

        def rank(pod: Document) -> tuple[Any, ...]:
            node = pod["spec"].get("nodeName", "")
            since = -seconds(pod["metadata"]["creationTimestamp"])
            started = _PHASES.get(queries.phase(pod), 3), queries.ready(pod)
            return bool(node), *started, _deletion_cost(pod), -pods_per_node[node], since

        return sorted(pods, key=rank)

    def _update_status(
        self, key: str, owner: Document, pods: list[Document], now: float, failure: Document | None = None
    ) -> Iterator[Action]:
        running = [pod for pod in pods if queries.active(pod)]
        least = owner["spec"].get("minReadySeconds", 0)
        ready = sum(queries.ready(pod) for pod in running)
        available = sum(queries.available(pod, least, now) for pod in running)
        counts = {
            "replicas": len(running), "fullyLabeledReplicas": len(running), "readyReplicas": ready,
            "availableReplicas": available,
        }  # fmt: skip
        status: Document = {name: count for name, count in counts.items() if count or name == "replicas"}
        if self._kind == "ReplicaSet":
            status["terminatingReplicas"] = sum(queries.terminating(pod) for pod in pods)
        status["observedGeneration"] = owner["metadata"]["generation"]
        if failure is not None:
            status["conditions"] = [failure]
        if owner.get("status") != status:
            yield SetStatus(self._collection, key, owner["metadata"]["uid"], status)
        if ready > available:
            yield RequeueAfter(float(least))


def _deletion_cost(pod: Document) -> int:
    """The cost that an annotation gives the pod; 0 if there is none, or no number that Kubernetes would take."""
    text = str(pod["metadata"].get("annotations", {}).get(_COST, "0"))
    return int(text) if _NUMBER.fullmatch(text) and -(2**31) <= int(text) < 2**31 else 0
