"""The recent changes of one resource, for watches. Each is encoded once for all watches.

A watch keeps its own position in the log. The log drops its oldest half when it is full; a watch whose position was
dropped gets 410.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from typing import TypeAlias

import msgspec

from stowplan.embedded.documents import Document

Encode: TypeAlias = Callable[[Document], bytes]


class Stored(msgspec.Struct, eq=False, gc=False):
    """A document at one version. It is never changed, only replaced. Its JSON is cached on first use."""

    document: Document
    version: int
    json: dict[str, bytes] = msgspec.field(default_factory=dict)  # by apiVersion

    def encoded(self, api_version: str, encode: Encode) -> bytes:
        found = self.json.get(api_version)
        if found is None:
            found = self.json[api_version] = encode(self.document)
        return found


class LogEntry(msgspec.Struct, eq=False, gc=False):
    """One change. `before` is None for a new object; with `gone`, `now` is the last state of a deleted object."""

    version: int
    now: Stored
    before: Stored | None = None
    gone: bool = False


class ChangeLog:
    """Entries are numbered from 0 on, and numbers are never reused; `first` is the oldest entry that is still kept."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._entries: list[LogEntry] = []
        self.first = 0
        self.compacted = 0  # the version of the newest entry that was dropped

    @property
    def end(self) -> int:
        return self.first + len(self._entries)

    def add(self, entry: LogEntry) -> None:
        self._entries.append(entry)
        if len(self._entries) > 2 * self._keep:
            self.compact(self._keep)

    def compact(self, keep: int = 0) -> None:
        """Drop all entries but the newest `keep`."""
        cut = max(len(self._entries) - keep, 0)
        if cut:
            self.compacted = self._entries[cut - 1].version
            del self._entries[:cut]
            self.first += cut

    def position_after(self, version: int) -> int | None:
        """The position of the first entry after a version; None if entries after the version were dropped."""
        if version < self.compacted:
            return None
        return self.first + bisect_right(self._entries, version, key=attrgetter("version"))

    def since(self, position: int, most: int = 1000) -> list[LogEntry] | None:
        """At most `most` entries from a position on; None if some of them were dropped."""
        start = position - self.first
        return None if start < 0 else self._entries[start : start + most]
