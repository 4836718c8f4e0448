"""A hub in memory: it carries out the scheduler's actions and reports the results, in an order that a test may choose.

Each write is recorded with the clusters that all PlacementDecisions list after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from stowplan.framework.placement.policy import ClusterPolicy
from stowplan.objects import kinds
from stowplan.objects.actions import Action, Create, Delete, Patch, ReadObject, Record
from stowplan.objects.changes import Gone, Put, Result
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement, PlacementDecision
from stowplan.placement.scheduler import PlacementScheduler
from stowplan.plugins import clusters
from tests.placement.fleets import BOUND, NOW


class Hub:
    def __init__(
        self, *objects: Object, ocm: bool = False, policy: ClusterPolicy | None = None, **settings: Any
    ) -> None:
        self.now = NOW
        self.engine = PlacementScheduler(policy or clusters.policy(ocm=ocm), ocm=ocm, **settings)
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.writes: list[Action] = []
        self.reads: list[str] = []  # the keys of objects that were read
        self.events: list[Record] = []
        self.seen: list[dict[str, tuple[str, ...]]] = []  # the clusters of each decision, after every write
        self.refuse: Callable[[Action], int] = lambda _: (
            0
        )  # a status other than 0 is the result, and nothing is written
        self.shuffle: Callable[[list[Action]], list[Action]] = lambda actions: actions
        self.deaf = False  # writes are not shown to the scheduler
        self.lose: Callable[[Action], bool] = lambda _: False  # the action is carried out, and its answer is lost
        self._version = 0
        for found in (*BOUND, *objects):
            self.put(found)

    # -- what other clients do

    def put(self, found: Object) -> None:
        """Write an object; of a placement everything except its status."""
        kind = type(found).__name__
        document = msgspec.json.decode(msgspec.json.encode(found, enc_hook=str))
        old = self.objects.get((kind, found.key))
        if kind == "Placement" and old is not None:
            document["status"] = old.get("status", {})
        self._store(kind, found.key, document)

    def show(self, kind: str, document: dict[str, Any]) -> None:
        """Have an object as another hub has it, with its status."""
        self._store(kind, f"{document['metadata']['namespace']}/{document['metadata']['name']}", document)

    def gone(self, kind: str, key: str) -> None:
        document = self.objects.pop((kind, key))
        self.engine.handle(Gone(kinds.convert(kinds.KINDS[kind], document)), self.now)

    def _store(self, kind: str, key: str, document: dict[str, Any], *, shown: bool = True) -> None:
        self._version += 1
        document = {**document, "metadata": {**document["metadata"], "resourceVersion": str(self._version)}}
        document["metadata"].setdefault("uid", f"uid-of-{key}")
        self.objects[kind, key] = document
        if shown:
            self.engine.handle(Put(kinds.convert(kinds.KINDS[kind], document)), self.now)

    # -- what the scheduler does

    def settle(self) -> int:
        """Take steps while one is due now. Return how many placements were decided."""
        before = self.engine.decisions
        while (deadline := self.engine.next_deadline()) is not None and deadline <= self.now:
            self.perform(self.engine.step(self.now))
        return self.engine.decisions - before

    def later(self, seconds: float) -> int:
        """Let time pass, with a step whenever one is due. Return how many placements were decided."""
        until, before = self.now + seconds, self.engine.decisions
        while (deadline := self.engine.next_deadline()) is not None and deadline <= until:
            self.now = max(self.now, deadline)
            self.perform(self.engine.step(self.now))
        self.now = until
        return self.engine.decisions - before

    def perform(self, actions: Iterable[Action]) -> None:
        queue = self.shuffle(list(actions))
        while queue:
            action = queue.pop(0)
            if isinstance(action, Record):
                self.events.append(action)
                continue
            status = self.refuse(action)
            if not status and isinstance(action, ReadObject):
                status = self._read(action)
                self.reads.append(action.key)
            elif not status:
                status = self._apply(action)
                self.writes.append(action)
                self.seen.append(self.held())
                status = 503 if self.lose(action) else status
            queue += self.shuffle(
                self.engine.handle(Result(action.id, status, "no" if status >= 300 else ""), self.now)
            )

    def catch_up(self) -> None:
        """The watch goes on: the scheduler sees the decisions as they are."""
        self.deaf = False
        for key in self.engine.decision_cache.of("test/test").keys() - {key for _, key in self.objects}:
            gone = kinds.convert(PlacementDecision, {"metadata": {"namespace": "test", "name": key.partition("/")[2]}})
            self.engine.handle(Gone(gone), self.now)
        for (kind, _), document in list(self.objects.items()):
            if kind == "PlacementDecision":
                self.engine.handle(Put(kinds.convert(PlacementDecision, document)), self.now)

    def _read(self, action: ReadObject) -> int:
        document = self.objects.get((action.kind, action.key))
        if document is None:
            gone = {"metadata": {"namespace": "test", "name": action.key.partition("/")[2]}}
            self.engine.handle(Gone(kinds.convert(PlacementDecision, gone)), self.now)
            return 404
        self.engine.handle(Put(kinds.convert(kinds.KINDS[action.kind], document)), self.now)
        return 200

    def _apply(self, action: Action) -> int:
        match action:
            case Create(kind=kind, key=key):
                if (kind, key) in self.objects:
                    return 409
                self._store(kind, key, {**action.body, "status": {}}, shown=not self.deaf)
                return 201
            case Patch(kind=kind, key=key, body=dict()):
                if (kind, key) not in self.objects:
                    return 404
                self._store(kind, key, merged(self.objects[kind, key], action.body), shown=not self.deaf)
                return 200
            case Delete(kind=kind, key=key):
                if (kind, key) not in self.objects:
                    return 404
                if self.deaf:
                    del self.objects[kind, key]
                else:
                    self.gone(kind, key)
                return 200
        raise NotImplementedError(action)

    # -- reading

    def decisions(self, placement: str = "test/test") -> dict[str, list[str]]:
        """Return the clusters of each of a placement's decisions, by name."""
        found = (kinds.convert(PlacementDecision, each) for each in self._all("PlacementDecision"))
        return {each.name: list(each.cluster_names) for each in found if each.placement == placement}

    def chosen(self, placement: str = "test/test") -> list[str]:
        return sorted(name for names in self.decisions(placement).values() for name in names)

    def placement(self, key: str = "test/test") -> Placement:
        return kinds.convert(Placement, self.objects["Placement", key])

    def condition(self, kind: str, key: str = "test/test") -> tuple[str, str]:
        found = self.placement(key).condition(kind)
        assert found is not None
        return found.status, found.reason

    def held(self) -> dict[str, tuple[str, ...]]:
        return {
            each["metadata"]["name"]: tuple(one["clusterName"] for one in each.get("status", {}).get("decisions", ()))
            for each in self._all("PlacementDecision")
        }

    def _all(self, kind: str) -> list[dict[str, Any]]:
        return [document for (of, _), document in sorted(self.objects.items()) if of == kind]

    def forget(self) -> None:
        """Forget what was recorded so far."""
        self.writes.clear()
        self.events.clear()
        self.seen.clear()


def merged(old: Any, patch: Any) -> Any:
    """Apply a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    found = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def sorts(hub: Hub) -> list[str]:
    return [f"{type(each).__name__} {each.kind}" for each in hub.writes]  # type: ignore[union-attr]


def reasons(hub: Hub) -> list[str]:
    return [each.reason for each in hub.events]
