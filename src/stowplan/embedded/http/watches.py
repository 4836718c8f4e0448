"""Watches: a position in a change log, and the matching changes as lines of JSON.

Each event is encoded once for all watches of the same form. A watch that is too slow loses its position; it gets 410
and must list again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from stowplan.embedded.api import versions
from stowplan.embedded.api.listing import Matches
from stowplan.embedded.change_log import LogEntry, Stored
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError, expired
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.store import Collection

Encode: TypeAlias = Callable[[Document], bytes]

INITIAL_END = "k8s.io/initial-events-end"
_PREFIX = {kind: b'{"type":"' + kind.encode() + b'","object":' for kind in ("ADDED", "MODIFIED", "DELETED")}


class EmbeddedWatch:
    """A watch of one collection.

    `encode` makes the JSON of its objects; without it the JSON is shared with other watches.
    """

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
        self._position = 0
        self.version = 0

    def start_after(self, version: int) -> None:
        """Start after a version. Raises 410 if the changes since then were dropped."""
        position = self.collection.log.position_after(version)
        if position is None:
            raise expired(f"too old resource version: {version} ({self.collection.log.compacted})")
        self._position, self.version = position, version

    def start_now(self, version: int, items: Iterable[Stored]) -> bytes:
        """Start now, with the existing objects as ADDED events. Return their lines."""
        self._position, self.version = self.collection.log.end, version
        return b"".join(self._line("ADDED", stored) for stored in items if self._selects(stored))

    def take(self) -> bytes:
        """The lines of the changes since the last call. Raises 410 if some of them were dropped."""
        entries = self.collection.log.since(self._position)
        if entries is None:
            raise expired(f"too old resource version: {self.version} ({self.collection.log.compacted})")
        if not entries:
            return b""
        self._position += len(entries)
        self.version = entries[-1].version
        return b"".join(line for entry in entries for line in self._lines(entry))

    @property
    def due(self) -> bool:
        return self.collection.log.end > self._position

    def _lines(self, entry: LogEntry) -> Iterator[bytes]:
        """An object that stops to match the selector is DELETED, one that starts to match is ADDED."""
        before = entry.before is not None and self._selects(entry.before)
        if entry.gone:
            if before:
                yield self._line("DELETED", entry.now)
            return
        now = self._selects(entry.now)
        if now:
            yield self._line("MODIFIED" if before else "ADDED", entry.now)
        elif before and entry.before is not None:
            metadata = {**entry.before.document["metadata"], "resourceVersion": str(entry.version)}
            yield self._line("DELETED", Stored({**entry.before.document, "metadata": metadata}, entry.version))

    def _selects(self, stored: Stored) -> bool:
        document = stored.document
        if self._namespace and document["metadata"].get("namespace") != self._namespace:
            return False
        return self._matches is None or self._matches(document)

    def _line(self, kind: str, stored: Stored) -> bytes:
        if self._encode is not None:
            return _PREFIX[kind] + self._encode(stored.document) + b"}\n"
        return _PREFIX[kind] + stored.encoded(self._resource.api_version, self._shared) + b"}\n"

    def bookmark(self, version: int, *, initial: bool = False) -> bytes:
        """A BOOKMARK event: all changes up to this version have been sent."""
        metadata: Document = {"resourceVersion": str(version)}
        if initial:
            metadata["annotations"] = {INITIAL_END: "true"}
        about = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        return msgspec.json.encode({"type": "BOOKMARK", "object": about}) + b"\n"


def failure(error: ApiError) -> bytes:
    return msgspec.json.encode({"type": "ERROR", "object": error.status()}) + b"\n"
