"""Garbage collection: an object is deleted after the last of its owners.

Background   the owner is removed first, then its dependents
Foreground   the owner waits (finalizer `foregroundDeletion`) for the dependents that block it
Orphan       the owner waits (finalizer `orphan`) until its dependents no longer refer to it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.embedded.api.lifecycle import FOREGROUND, ORPHAN
from stowplan.embedded.controllers.actions import Action, DeleteDocument, UpdateObject
from stowplan.embedded.controllers.queries import terminating
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange


class GarbageCollector:
    """A key is "collection key" of an object."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._by_uid: dict[str, tuple[str, str]] = {}  # collection and key of each object, by uid

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        metadata = change.document["metadata"]
        if change.now is None:
            self._by_uid.pop(metadata["uid"], None)
            return [*self._dependents(metadata["uid"]), *self._waiting_owners(change)]
        if change.before is None:
            self._by_uid[metadata["uid"]] = change.collection, change.key
        here = f"{change.collection} {change.key}"
        if metadata.get("ownerReferences") and (change.before is None or not terminating(change.now)):
            before = change.before["metadata"].get("ownerReferences") if change.before else None
            return [here] if before != metadata["ownerReferences"] else ()
        if "deletionTimestamp" in metadata and {ORPHAN, FOREGROUND} & set(metadata.get("finalizers", ())):
            return [here]
        return ()

    def _dependents(self, uid: str) -> list[str]:
        return [f"{collection} {key}" for collection, key in self._store.owned_by(uid)]

    def _waiting_owners(self, change: StoreChange) -> Iterator[str]:
        for owner in change.document["metadata"].get("ownerReferences", ()):
            location = self._by_uid.get(owner["uid"])
            if location is not None:
                yield f"{location[0]} {location[1]}"

    def reconcile(self, key: str, _now: float) -> Iterator[Action]:
        collection, _, key = key.partition(" ")
        document = self._store.get(collection, key)
        if document is None:
            return
        finalizers = document["metadata"].get("finalizers", ())
        if terminating(document) and ORPHAN in finalizers:
            yield from self._orphan(document)
            yield from self._remove_finalizer(collection, key, ORPHAN)
        elif terminating(document) and FOREGROUND in finalizers:
            yield from self._foreground(collection, key, document)
        elif document["metadata"].get("ownerReferences") and not terminating(document):
            yield from self._delete_if_orphaned(collection, key, document)

    def _orphan(self, owner: Document) -> Iterator[Action]:
        uid = owner["metadata"]["uid"]
        for collection, key in self._store.owned_by(uid):
            found = self._store.get(collection, key)
            if found is not None:
                left = [each for each in found["metadata"]["ownerReferences"] if each["uid"] != uid]
                yield UpdateObject(collection, {**found, "metadata": {**found["metadata"], "ownerReferences": left}})

    def _remove_finalizer(self, collection: str, key: str, finalizer: str) -> Iterator[Action]:
        found = self._store.get(collection, key)
        if found is not None:
            left = [each for each in found["metadata"].get("finalizers", ()) if each != finalizer]
            yield UpdateObject(collection, {**found, "metadata": {**found["metadata"], "finalizers": left}})

    def _foreground(self, collection: str, key: str, owner: Document) -> Iterator[Action]:
        uid = owner["metadata"]["uid"]
        blocked = False
        for location in self._store.owned_by(uid):
            found = self._store.get(*location)
            if found is None:
                continue
            references = [each for each in found["metadata"]["ownerReferences"] if each["uid"] == uid]
            blocked = blocked or any(each.get("blockOwnerDeletion") for each in references)
            if not terminating(found):
                yield DeleteDocument(*location, found["metadata"]["uid"], propagation_policy="Foreground")
        if not blocked or not self._store.owned_by(uid):
            yield from self._remove_finalizer(collection, key, FOREGROUND)

    def _delete_if_orphaned(self, collection: str, key: str, document: Document) -> Iterator[Action]:
        """Delete an object none of whose owners exists."""
        owners = document["metadata"]["ownerReferences"]
        if not any(owner["uid"] in self._by_uid for owner in owners):
            yield DeleteDocument(collection, key, document["metadata"]["uid"])
