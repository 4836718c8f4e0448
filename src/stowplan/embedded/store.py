"""Documents in memory, with one resource version for all of them and a log of changes for each resource.

The store knows no kinds: a collection has a name ("pods", "deployments.apps") and documents by key ("namespace/name",
or the name alone). A stored document is never changed; an update replaces it. Listeners are called for each change
before the next change can happen, so controllers never read stale state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.change_log import ChangeLog, LogEntry, Stored
from stowplan.embedded.documents import Document

KEEP = 10_000  # the entries of each log that are never dropped


class StoreChange(msgspec.Struct, frozen=True):
    """A change of one object: `before` is None for a new object, `now` for a deleted one."""

    collection: str
    key: str
    before: Document | None
    now: Document | None

    @property
    def document(self) -> Document:
        """The current state, or the last state of a deleted object."""
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
        self.wake: set[Callable[[], None]] = set()  # called at the next change
        self._sorted: list[str] | None = None
        self._indexes: dict[str, tuple[Indexer, dict[str, dict[str, None]]]] = {}

    def in_order(self) -> list[str]:
        """The keys in etcd's order."""
        if self._sorted is None:
            self._sorted = sorted(self.items, key=lambda key: key.replace("/", "\0"))
        return self._sorted

    def index(self, name: str, indexer: Indexer) -> None:
        """Maintain an index from now on; `find` uses it."""
        entries: dict[str, dict[str, None]] = defaultdict(dict)
        for key, stored in self.items.items():
            entries[indexer(stored.document)][key] = None
        self._indexes[name] = indexer, entries

    def find(self, name: str, value: str) -> list[Stored] | None:
        """The objects with a value of an index, unordered; None if there is no such index."""
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
    """`keep` is the number of log entries that are kept; a watch that falls further behind must list again."""

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
        """The objects of one namespace, or of all namespaces, sorted by key."""
        collection = self.collection(name)
        if not namespace:
            return [collection.items[key] for key in collection.in_order()]
        start = f"{namespace}/"
        return [collection.items[key] for key in collection.in_order() if key.startswith(start)]

    def owned_by(self, uid: str, collection: str = "") -> list[tuple[str, str]]:
        """Collection and key of each object with an owner reference to this uid."""
        found = self._owned.get(uid, ())
        return [pair for pair in found if not collection or pair[0] == collection]

    def put(self, name: str, key: str, document: Document) -> Stored:
        """Add or replace a document. It gets the next resource version, and must not be changed afterwards."""
        before = self.stored(name, key)
        self.version += 1
        document["metadata"]["resourceVersion"] = str(self.version)
        now = Stored(document, self.version)
        self._change(name, key, LogEntry(self.version, now, before))
        return now

    def remove(self, name: str, key: str) -> Stored:
        """Delete a document. Its last state carries the resource version of the deletion, as in Kubernetes."""
        before = self.collection(name).items[key]
        self.version += 1
        metadata = {**before.document["metadata"], "resourceVersion": str(self.version)}
        now = Stored({**before.document, "metadata": metadata}, self.version)
        self._change(name, key, LogEntry(self.version, now, before, gone=True))
        return now

    def drop(self, name: str) -> None:
        """Delete a whole collection whose kind is no longer served, and wake its watches so that they end."""
        for key in list(self.collection(name).items):
            self.remove(name, key)
        collection = self._collections.pop(name)
        for wake in collection.wake:
            wake()

    def compact(self) -> None:
        """Drop all log entries; a watch from an older version gets 410."""
        for collection in self._collections.values():
            collection.log.compact()

    def _change(self, name: str, key: str, entry: LogEntry) -> None:
        before = entry.before.document if entry.before else None
        now = None if entry.gone else entry.now.document
        self._index_owners(name, key, before, now)
        self.collection(name).record(key, entry)
        change = StoreChange(name, key, entry.now.document if entry.gone else before, now)
        for listener in self.listeners:
            listener(change)

    def _index_owners(self, name: str, key: str, before: Document | None, now: Document | None) -> None:
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
