"""Runs all controllers: which keys must be reconciled, and when.

    store changes ──► handle ──► queued keys ──► step ──► actions ──► carried out by the caller ──► store changes

A key is queued once, however many changes name it. A key whose action failed is requeued with a growing delay, and when
the quotas of its namespace leave more room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias, runtime_checkable

from stowplan.embedded.controllers.actions import Action, CreateDocument, RequeueAfter
from stowplan.embedded.controllers.delayed_keys import DelayedKeys
from stowplan.embedded.controllers.refused_keys import RefusedKeys
from stowplan.embedded.errors import ApiError
from stowplan.embedded.store import DocumentStore, StoreChange

Perform: TypeAlias = Callable[[Action, float], ApiError | None]

_MIN_BACKOFF, _MAX_BACKOFF = 0.5, 60.0


class Controller(Protocol):
    def keys_for(self, change: StoreChange, /) -> Iterable[str]:
        """The keys that must be reconciled because of a change."""

    def reconcile(self, key: str, now: float, /) -> Iterator[Action]:
        """The actions for a key. The store may change between two actions."""


@runtime_checkable
class RefusalReporter(Protocol):
    """A controller that tells in a status what it could not create."""

    def refused(self, key: str, error: str, now: float, /) -> Iterator[Action]:
        """The actions after the API refused to create something for a key."""


class ControllerManager:
    """`perform` carries out an action and returns why it failed, if it did."""

    def __init__(self, store: DocumentStore, controllers: Iterable[Controller], perform: Perform) -> None:
        self._controllers = list(controllers)
        self._perform = perform
        self._queued: list[dict[str, None]] = [{} for _ in self._controllers]
        self._delayed = DelayedKeys()
        self._failures: dict[tuple[int, str], int] = {}
        self._refused = RefusedKeys()
        store.listeners.append(self.handle)
        for collection in store.collections():
            for key, stored in list(collection.items.items()):
                self.handle(StoreChange(collection.name, key, None, stored.document))

    def handle(self, change: StoreChange) -> None:
        for number, key in self._refused.freed_by(change):
            self._queued[number][key] = None
        for number, controller in enumerate(self._controllers):
            for key in controller.keys_for(change):
                self._queued[number][key] = None

    def next_deadline(self) -> float | None:
        """When the next step is due; 0 if it is due now, None if no key is queued."""
        if any(self._queued):
            return 0.0
        return self._delayed.next()

    def step(self, now: float) -> bool:
        """Reconcile one key. Return False if no key was due."""
        for number, key in self._delayed.due(now):
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
                self._delayed.add(number, key, now + action.after)
            elif (error := self._perform(action, now)) is not None:
                self._fail(number, key, now)
                if isinstance(action, CreateDocument) and not error.is_transient:
                    self._report(number, key, error, now)
                return
        self._failures.pop((number, key), None)
        self._refused.discard(number, key)

    def _fail(self, number: int, key: str, now: float) -> None:
        failures = self._failures[number, key] = self._failures.get((number, key), 0) + 1
        wait = min(_MIN_BACKOFF * 2 ** min(failures, 10), _MAX_BACKOFF)
        self._delayed.add(number, key, now + wait)

    def _report(self, number: int, key: str, error: ApiError, now: float) -> None:
        self._refused.add(number, key)
        controller = self._controllers[number]
        if isinstance(controller, RefusalReporter):
            for action in controller.refused(key, error.message, now):
                if not isinstance(action, RequeueAfter):
                    self._perform(action, now)
