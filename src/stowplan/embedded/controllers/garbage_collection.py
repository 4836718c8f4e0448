"""Garbage collection: what belongs to somebody goes when the last of its owners is gone.

Background   the owner goes, then what it owned
Foreground   the owner waits (finalizer `foregroundDeletion`) for those that block it
Orphan       the owner waits (finalizer `orphan`) until nobody names it any longer
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from stowplan.embedded.api.lifecycle import FOREGROUND, ORPHAN
from stowplan.embedded.controllers.actions import Action, DeleteObject, UpdateObject
from stowplan.embedded.controllers.queries import leaving
from stowplan.embedded.store import DocumentStore, StoreChange

Document: TypeAlias = dict[str, Any]


class GarbageCollector:
    """Keys are "collection key" of an object to look at."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._alive: dict[str, tuple[str, str]] = {}  # where an object is, by uid

    def concerns(self, happened: StoreChange) -> Iterable[str]:
        metadata = happened.document["metadata"]
        if happened.now is None:
            self._alive.pop(metadata["uid"], None)
            return [*self._dependents(metadata["uid"]), *self._waiting_owners(happened)]
        if happened.before is None:
            self._alive[metadata["uid"]] = happened.collection, happened.key
        here = f"{happened.collection} {happened.key}"
        if metadata.get("ownerReferences") and (happened.before is None or not leaving(happened.now)):
            before = happened.before["metadata"].get("ownerReferences") if happened.before else None
            return [here] if before != metadata["ownerReferences"] else ()
        if "deletionTimestamp" in metadata and {ORPHAN, FOREGROUND} & set(metadata.get("finalizers", ())):
            return [here]
        return ()

    def _dependents(self, uid: str) -> list[str]:
        return [f"{collection} {key}" for collection, key in self._store.owned_by(uid)]

    def _waiting_owners(self, happened: StoreChange) -> Iterator[str]:
        for owner in happened.document["metadata"].get("ownerReferences", ()):
            place = self._alive.get(owner["uid"])
            if place is not None:
                yield f"{place[0]} {place[1]}"

    def reconcile(self, key: str, _now: float) -> Iterator[Action]:
        collection, _, key = key.partition(" ")
        document = self._store.get(collection, key)
        if document is None:
            return
        finalizers = document["metadata"].get("finalizers", ())
        if leaving(document) and ORPHAN in finalizers:
            yield from self._orphan(document)
            yield from self._release(collection, key, ORPHAN)
        elif leaving(document) and FOREGROUND in finalizers:
            yield from self._foreground(collection, key, document)
        elif document["metadata"].get("ownerReferences") and not leaving(document):
            yield from self._judge(collection, key, document)

    def _orphan(self, owner: Document) -> Iterator[Action]:
        uid = owner["metadata"]["uid"]
        for collection, key in self._store.owned_by(uid):
            found = self._store.get(collection, key)
            if found is not None:
                left = [each for each in found["metadata"]["ownerReferences"] if each["uid"] != uid]
                yield UpdateObject(collection, {**found, "metadata": {**found["metadata"], "ownerReferences": left}})

    def _release(self, collection: str, key: str, finalizer: str) -> Iterator[Action]:
        found = self._store.get(collection, key)
        if found is not None:
            left = [each for each in found["metadata"].get("finalizers", ()) if each != finalizer]
            yield UpdateObject(collection, {**found, "metadata": {**found["metadata"], "finalizers": left}})

    def _foreground(self, collection: str, key: str, owner: Document) -> Iterator[Action]:
        uid = owner["metadata"]["uid"]
        blocked = False
        for place in self._store.owned_by(uid):
            found = self._store.get(*place)
            if found is None:
                continue
            references = [each for each in found["metadata"]["ownerReferences"] if each["uid"] == uid]
            blocked = blocked or any(each.get("blockOwnerDeletion") for each in references)
            if not leaving(found):
                yield DeleteObject(*place, found["metadata"]["uid"], policy="Foreground")
        if not blocked or not self._store.owned_by(uid):
            yield from self._release(collection, key, FOREGROUND)

    def _judge(self, collection: str, key: str, document: Document) -> Iterator[Action]:
        """An object stays while one of its owners is there."""
        owners = document["metadata"]["ownerReferences"]
        if not any(owner["uid"] in self._alive for owner in owners):
            yield DeleteObject(collection, key, document["metadata"]["uid"])
