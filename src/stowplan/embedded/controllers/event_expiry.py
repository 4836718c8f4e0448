"""Deletes events an hour after they were last written, as Kubernetes does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.embedded.controllers.actions import Action, DeleteDocument, RequeueAfter
from stowplan.embedded.controllers.controller_events import EVENTS
from stowplan.embedded.store import DocumentStore, StoreChange

LIFETIME = 3600.0


class EventExpiry:
    """All events share one key. They wait in the order in which they were written: only those that are due are met."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._new: dict[str, None] = {}  # written since the last time
        self._written: dict[str, float] = {}  # the first one is the oldest

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection != EVENTS:
            return ()
        if change.now is None:
            self._new.pop(change.key, None)
            self._written.pop(change.key, None)
            return ()
        self._new[change.key] = None
        return (EVENTS,)

    def reconcile(self, _key: str, now: float) -> Iterator[Action]:
        for key in self._new:
            self._written.pop(key, None)
            self._written[key] = now
        self._new.clear()
        while self._written:
            key, written = next(iter(self._written.items()))
            if now - written < LIFETIME:
                yield RequeueAfter(written + LIFETIME - now)
                return
            del self._written[key]
            event = self._store.get(EVENTS, key)
            if event is not None:
                yield DeleteDocument(EVENTS, key, event["metadata"]["uid"])
