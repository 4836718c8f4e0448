"""Runs all controllers: which keys must be reconciled, and when.

    store changes ──► handle ──► queued keys ──► step ──► actions ──► carried out by the caller ──► store changes

A key is queued once, however many changes name it. A key whose action failed is requeued with a growing delay.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias

from stowplan.embedded.controllers.actions import Action, RequeueAfter
from stowplan.embedded.store import DocumentStore, StoreChange

Perform: TypeAlias = Callable[[Action, float], bool]

_MIN_BACKOFF, _MAX_BACKOFF = 0.5, 60.0


class Controller(Protocol):
    def keys_for(self, change: StoreChange, /) -> Iterable[str]:
        """The keys that must be reconciled because of a change."""

    def reconcile(self, key: str, now: float, /) -> Iterator[Action]:
        """The actions for a key. The store may change between two actions."""


class ControllerManager:
    """`perform` carries out an action and returns whether it succeeded."""

    def __init__(self, store: DocumentStore, controllers: Iterable[Controller], perform: Perform) -> None:
        self._controllers = list(controllers)
        self._perform = perform
        self._queued: list[dict[str, None]] = [{} for _ in self._controllers]
        self._delayed: list[tuple[float, int, str]] = []
        self._failures: dict[tuple[int, str], int] = {}
        store.listeners.append(self.handle)
        for collection in store.collections():
            for key, stored in list(collection.items.items()):
                self.handle(StoreChange(collection.name, key, None, stored.document))

    def handle(self, change: StoreChange) -> None:
        for number, controller in enumerate(self._controllers):
            for key in controller.keys_for(change):
                self._queued[number][key] = None

    def next_deadline(self) -> float | None:
        """When the next step is due; 0 if it is due now, None if no key is queued."""
        if any(self._queued):
            return 0.0
        return self._delayed[0][0] if self._delayed else None

    def step(self, now: float) -> bool:
        """Reconcile one key. Return False if no key was due."""
        while self._delayed and self._delayed[0][0] <= now:
            _, number, key = heapq.heappop(self._delayed)
            self._queued[number][key] = None
        for number, queued in enumerate(self._queued):
            if queued:
                key = next(iter(queued))
                del queued[key]
                self._reconcile(number, key, now)
                return True
        return False

    def settle(self, now: float, most: int = 1_000_000) -> int:
        """Step until no key is due, and return the number of steps."""
        steps = 0
        while steps < most and self.step(now):
            steps += 1
        return steps

    def _reconcile(self, number: int, key: str, now: float) -> None:
        for action in self._controllers[number].reconcile(key, now):
            if isinstance(action, RequeueAfter):
                heapq.heappush(self._delayed, (now + action.after, number, key))
            elif not self._perform(action, now):
                failures = self._failures[number, key] = self._failures.get((number, key), 0) + 1
                wait = min(_MIN_BACKOFF * 2 ** min(failures, 10), _MAX_BACKOFF)
                heapq.heappush(self._delayed, (now + wait, number, key))
                return
        self._failures.pop((number, key), None)
