"""Events are forgotten after an hour, as in Kubernetes; a cluster that runs for days would drown in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.embedded.controllers.actions import Action, CheckAgain, DeleteObject
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.embedded.timestamps import seconds

LIFETIME = 3600.0
_CROWD = 60.0  # seconds: what is due within the next minute goes together


class EventExpiry:
    """All events have one key: somebody looks through them once a minute while there are any."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._awake = False

    def concerns(self, happened: StoreChange) -> Iterable[str]:
        if happened.collection != "events" or happened.now is None or self._awake:
            return ()
        self._awake = True
        return ("events",)

    def reconcile(self, _key: str, now: float) -> Iterator[Action]:
        for stored in self._store.all("events"):
            event = stored.document
            metadata = event["metadata"]
            last = event.get("lastTimestamp") or event.get("eventTime") or metadata["creationTimestamp"]
            if now - max(seconds(last), seconds(metadata["creationTimestamp"])) > LIFETIME:
                yield DeleteObject("events", f"{metadata['namespace']}/{metadata['name']}", metadata["uid"])
        self._awake = bool(self._store.collection("events").items)
        if self._awake:
            yield CheckAgain(_CROWD)
