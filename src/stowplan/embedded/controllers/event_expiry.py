"""Deletes events after an hour, as Kubernetes does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.embedded.controllers.actions import Action, DeleteDocument, RequeueAfter
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.embedded.timestamps import seconds

LIFETIME = 3600.0
_INTERVAL = 60.0  # seconds between two passes over the events


class EventExpiry:
    """Events share one key, which is reconciled once a minute while there are events."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._scheduled = False

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection != "events" or change.now is None or self._scheduled:
            return ()
        self._scheduled = True
        return ("events",)

    def reconcile(self, _key: str, now: float) -> Iterator[Action]:
        for stored in self._store.all("events"):
            event = stored.document
            metadata = event["metadata"]
            last = event.get("lastTimestamp") or event.get("eventTime") or metadata["creationTimestamp"]
            if now - max(seconds(last), seconds(metadata["creationTimestamp"])) > LIFETIME:
                yield DeleteDocument("events", f"{metadata['namespace']}/{metadata['name']}", metadata["uid"])
        self._scheduled = bool(self._store.collection("events").items)
        if self._scheduled:
            yield RequeueAfter(_INTERVAL)
