"""All controllers together: who has to look at what, and when.

    store changes ──► handle ──► keys to look at ──► step ──► actions ──► done by the caller ──► store changes

A key is looked at once, however often it was named meanwhile. What failed is looked at again, later each time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias

from stowplan.embedded.controllers.actions import Action, CheckAgain
from stowplan.embedded.store import DocumentStore, StoreChange

Perform: TypeAlias = Callable[[Action, float], bool]

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 60.0


class Controller(Protocol):
    def concerns(self, happened: StoreChange, /) -> Iterable[str]:
        """The keys that have to be looked at because of a change."""

    def reconcile(self, key: str, now: float, /) -> Iterator[Action]:
        """What is to be done about a key; the store may change between two actions."""


class ControllerManager:
    """`perform` carries out an action and says whether that worked."""

    def __init__(self, store: DocumentStore, controllers: Iterable[Controller], perform: Perform) -> None:
        self._controllers = list(controllers)
        self._perform = perform
        self._waiting: list[dict[str, None]] = [{} for _ in self._controllers]
        self._later: list[tuple[float, int, str]] = []
        self._failures: dict[tuple[int, str], int] = {}
        self._now = 0.0
        store.listeners.append(self.handle)
        for collection in store.collections():
            for key, stored in list(collection.items.items()):
                self.handle(StoreChange(collection.name, key, None, stored.document))

    def handle(self, happened: StoreChange) -> None:
        for number, controller in enumerate(self._controllers):
            for key in controller.concerns(happened):
                self._waiting[number][key] = None

    def next_deadline(self) -> float | None:
        """When time alone will make a step worth taking; 0 if one is worth taking now."""
        if any(self._waiting):
            return 0.0
        return self._later[0][0] if self._later else None

    def step(self, now: float) -> bool:
        """Looks at one key; False if there was none to look at."""
        while self._later and self._later[0][0] <= now:
            _, number, key = heapq.heappop(self._later)
            self._waiting[number][key] = None
        for number, waiting in enumerate(self._waiting):
            if waiting:
                key = next(iter(waiting))
                del waiting[key]
                self._look(number, key, now)
                return True
        return False

    def settle(self, now: float, most: int = 1_000_000) -> int:
        """Steps until there is nothing left to do at this time; how many there were."""
        steps = 0
        while steps < most and self.step(now):
            steps += 1
        return steps

    def _look(self, number: int, key: str, now: float) -> None:
        for action in self._controllers[number].reconcile(key, now):
            if isinstance(action, CheckAgain):
                heapq.heappush(self._later, (now + action.after, number, key))
            elif not self._perform(action, now):
                failures = self._failures[number, key] = self._failures.get((number, key), 0) + 1
                wait = min(_FIRST_WAIT * 2 ** min(failures, 10), _LONGEST_WAIT)
                heapq.heappush(self._later, (now + wait, number, key))
                return
        self._failures.pop((number, key), None)
