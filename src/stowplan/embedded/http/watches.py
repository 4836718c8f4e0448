"""Watches: a place in a log, and what of it matches, as lines of JSON.

Each event is encoded once for all who watch the same way. A watcher that is too slow finds that its place is gone;
it is told so (410) and has to list again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.api import versions
from stowplan.embedded.api.listing import Matches
from stowplan.embedded.change_log import LogEntry, Stored
from stowplan.embedded.errors import ApiError, expired
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.store import Collection

Document: TypeAlias = dict[str, Any]
Encode: TypeAlias = Callable[[Document], bytes]

INITIAL_END = "k8s.io/initial-events-end"
_PREFIX = {kind: b'{"type":"' + kind.encode() + b'","object":' for kind in ("ADDED", "MODIFIED", "DELETED")}


class EmbeddedWatch:
    """One watcher of one collection. `encode` makes its objects' JSON; without it they share what others made."""

    def __init__(
        self,
        collection: Collection,
        resource: ServedResource,
        namespace: str,
        matches: Matches | None,
        encode: Encode | None,
    ) -> None:
        self.collection = collection
        self._resource = resource
        self._namespace = namespace
        self._matches = matches
        self._encode = encode
        self._shared: Encode = lambda document: versions.encode(resource, document)
        self._place = 0
        self.version = 0

    def start_after(self, version: int) -> None:
        """From now on `take` gives what happened after a version; 410 if that is forgotten."""
        place = self.collection.log.place_after(version)
        if place is None:
            raise expired(f"too old resource version: {version} ({self.collection.log.forgotten})")
        self._place, self.version = place, version

    def start_now(self, version: int, items: Iterable[Stored]) -> bytes:
        """What there is already, as additions; what happens from now on comes from `take`."""
        self._place, self.version = self.collection.log.end, version
        return b"".join(self._line("ADDED", stored) for stored in items if self._concerns(stored))

    def take(self) -> bytes:
        """The lines that are due; 410 if some of them are lost."""
        entries = self.collection.log.since(self._place)
        if entries is None:
            raise expired(f"too old resource version: {self.version} ({self.collection.log.forgotten})")
        if not entries:
            return b""
        self._place += len(entries)
        self.version = entries[-1].version
        return b"".join(line for entry in entries for line in self._lines(entry))

    @property
    def due(self) -> bool:
        return self.collection.log.end > self._place

    def _lines(self, entry: LogEntry) -> Iterator[bytes]:
        """Leaving what a selector covers is a deletion, entering it an addition."""
        before = entry.before is not None and self._concerns(entry.before)
        if entry.gone:
            if before:
                yield self._line("DELETED", entry.now)
            return
        now = self._concerns(entry.now)
        if now:
            yield self._line("MODIFIED" if before else "ADDED", entry.now)
        elif before and entry.before is not None:
            metadata = {**entry.before.document["metadata"], "resourceVersion": str(entry.version)}
            yield self._line("DELETED", Stored({**entry.before.document, "metadata": metadata}, entry.version))

    def _concerns(self, stored: Stored) -> bool:
        document = stored.document
        if self._namespace and document["metadata"].get("namespace") != self._namespace:
            return False
        return self._matches is None or self._matches(document)

    def _line(self, kind: str, stored: Stored) -> bytes:
        if self._encode is not None:
            return _PREFIX[kind] + self._encode(stored.document) + b"}\n"
        return _PREFIX[kind] + stored.encoded(self._resource.api_version, self._shared) + b"}\n"

    def bookmark(self, version: int, *, initial: bool = False) -> bytes:
        """That nothing up to this version is missing."""
        metadata: Document = {"resourceVersion": str(version)}
        if initial:
            metadata["annotations"] = {INITIAL_END: "true"}
        about = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        return msgspec.json.encode({"type": "BOOKMARK", "object": about}) + b"\n"


def failure(error: ApiError) -> bytes:
    return msgspec.json.encode({"type": "ERROR", "object": error.status()}) + b"\n"
