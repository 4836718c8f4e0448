"""Whole documents in memory, one resource version for all of them, and a log of what happened to each resource.

Nothing here knows kinds: a collection has a name ("pods", "deployments.apps") and documents by key
("namespace/name", or the bare name). A document that is in the store is never changed; an update puts another in
its place. Listeners are told of each change before the next one can happen, so controllers always see what is
true.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.change_log import ChangeLog, Document, LogEntry, Stored

KEEP = 10_000  # entries of each log that are surely still there


class StoreChange(msgspec.Struct, frozen=True):
    """A change of one object: `before` is missing for a new one, `now` for one that is gone."""

    collection: str
    key: str
    before: Document | None
    now: Document | None

    @property
    def document(self) -> Document:
        """As it is, or as it last was."""
        found = self.now if self.now is not None else self.before
        assert found is not None
        return found


Listener: TypeAlias = Callable[[StoreChange], None]
Indexer: TypeAlias = Callable[[Document], str]


class Collection:
    """The objects of one resource."""

    def __init__(self, name: str, keep: int) -> None:
        self.name = name
        self.items: dict[str, Stored] = {}
        self.log = ChangeLog(keep)
        self.wake: set[Callable[[], None]] = set()  # watchers who wait for the next entry
        self._sorted: list[str] | None = None
        self._indexes: dict[str, tuple[Indexer, dict[str, dict[str, None]]]] = {}

    def in_order(self) -> list[str]:
        """In etcd's order."""
        if self._sorted is None:
            self._sorted = sorted(self.items, key=lambda key: key.replace("/", "\0"))
        return self._sorted

    def index(self, name: str, indexer: Indexer) -> None:
        """From now on, `find` knows which objects have a value."""
        entries: dict[str, dict[str, None]] = defaultdict(dict)
        for key, stored in self.items.items():
            entries[indexer(stored.document)][key] = None
        self._indexes[name] = indexer, entries

    def find(self, name: str, value: str) -> list[Stored] | None:
        """The objects with a value, in no order; None if there is no such index."""
        if name not in self._indexes:
            return None
        return [self.items[key] for key in self._indexes[name][1].get(value, ())]

    def record(self, key: str, entry: LogEntry) -> None:
        self._reindex(key, entry)
        if entry.gone:
            del self.items[key]
            self._sorted = None
        else:
            if key not in self.items:
                self._sorted = None
            self.items[key] = entry.now
        self.log.add(entry)
        waiting, self.wake = self.wake, set()
        for wake in waiting:
            wake()

    def _reindex(self, key: str, entry: LogEntry) -> None:
        for indexer, entries in self._indexes.values():
            old = indexer(entry.before.document) if entry.before else None
            new = None if entry.gone else indexer(entry.now.document)
            if old == new:
                continue
            if old is not None:
                entries[old].pop(key, None)
                if not entries[old]:
                    del entries[old]
            if new is not None:
                entries[new][key] = None


class DocumentStore:
    """`keep` is how much of each log survives; a watcher that falls further behind has to list again."""

    def __init__(self, *, keep: int = KEEP) -> None:
        self.version = 0
        self.listeners: list[Listener] = []
        self._keep = keep
        self._collections: dict[str, Collection] = {}
        self._owned: dict[str, dict[tuple[str, str], None]] = {}  # by the owner's uid

    def collection(self, name: str) -> Collection:
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = Collection(name, self._keep)
        return found

    def collections(self) -> Iterator[Collection]:
        yield from list(self._collections.values())

    def stored(self, name: str, key: str) -> Stored | None:
        return self.collection(name).items.get(key)

    def get(self, name: str, key: str) -> Document | None:
        found = self.stored(name, key)
        return found.document if found else None

    def all(self, name: str, namespace: str = "") -> list[Stored]:
        """Of one namespace or of all, sorted by key."""
        collection = self.collection(name)
        if not namespace:
            return [collection.items[key] for key in collection.in_order()]
        start = f"{namespace}/"
        return [collection.items[key] for key in collection.in_order() if key.startswith(start)]

    def owned_by(self, uid: str, collection: str = "") -> list[tuple[str, str]]:
        """Collection and key of what names this owner."""
        found = self._owned.get(uid, ())
        return [pair for pair in found if not collection or pair[0] == collection]

    def put(self, name: str, key: str, document: Document) -> Stored:
        """Adds or replaces; the document gets the next version, and must not be changed any more."""
        before = self.stored(name, key)
        self.version += 1
        document["metadata"]["resourceVersion"] = str(self.version)
        now = Stored(document, self.version)
        self._change(name, key, LogEntry(self.version, now, before))
        return now

    def remove(self, name: str, key: str) -> Stored:
        """The last of it carries the version of its end, as in Kubernetes."""
        before = self.collection(name).items[key]
        self.version += 1
        metadata = {**before.document["metadata"], "resourceVersion": str(self.version)}
        now = Stored({**before.document, "metadata": metadata}, self.version)
        self._change(name, key, LogEntry(self.version, now, before, gone=True))
        return now

    def drop(self, name: str) -> None:
        """A whole collection, whose kind is no longer served; its watchers are woken to find that out."""
        for key in list(self.collection(name).items):
            self.remove(name, key)
        collection = self._collections.pop(name)
        for wake in collection.wake:
            wake()

    def compact(self) -> None:
        """Forget what happened; who watches from the past gets 410."""
        for collection in self._collections.values():
            collection.log.forget()

    def _change(self, name: str, key: str, entry: LogEntry) -> None:
        before = entry.before.document if entry.before else None
        now = None if entry.gone else entry.now.document
        self._note_owners(name, key, before, now)
        self.collection(name).record(key, entry)
        happened = StoreChange(name, key, entry.now.document if entry.gone else before, now)
        for listener in self.listeners:
            listener(happened)

    def _note_owners(self, name: str, key: str, before: Document | None, now: Document | None) -> None:
        old, new = _owners(before), _owners(now)
        if old is new or old == new:
            return
        for owner in old:
            owned = self._owned.get(owner["uid"], {})
            owned.pop((name, key), None)
            if not owned:
                self._owned.pop(owner["uid"], None)
        for owner in new:
            self._owned.setdefault(owner["uid"], {})[(name, key)] = None


def _owners(document: Document | None) -> list[dict[str, Any]]:
    return document["metadata"].get("ownerReferences", []) if document else []
