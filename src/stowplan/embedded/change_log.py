"""What happened to the objects of one resource lately, for watchers, encoded once for all of them.

A watcher keeps its own place. The log forgets its oldest half when it is full; a place before that is gone (410).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

Document: TypeAlias = dict[str, Any]
Encode: TypeAlias = Callable[[Document], bytes]


class Stored(msgspec.Struct, eq=False, gc=False):
    """A document as it was at one version; never changed, only replaced. Its JSON is kept once somebody asked."""

    document: Document
    version: int
    json: dict[str, bytes] = msgspec.field(default_factory=dict)  # by apiVersion

    def encoded(self, api_version: str, encode: Encode) -> bytes:
        found = self.json.get(api_version)
        if found is None:
            found = self.json[api_version] = encode(self.document)
        return found


class LogEntry(msgspec.Struct, eq=False, gc=False):
    """One change: `before` is None for what is new, `gone` says that `now` is the last that was seen."""

    version: int
    now: Stored
    before: Stored | None = None
    gone: bool = False


class ChangeLog:
    """Entries have numbers that go on for ever; `first` is the number of the oldest that is still there."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._entries: list[LogEntry] = []
        self.first = 0
        self.forgotten = 0  # the version of the youngest entry that is gone

    @property
    def end(self) -> int:
        return self.first + len(self._entries)

    def add(self, entry: LogEntry) -> None:
        self._entries.append(entry)
        if len(self._entries) > 2 * self._keep:
            self.forget(self._keep)

    def forget(self, keep: int = 0) -> None:
        """All but the youngest."""
        cut = max(len(self._entries) - keep, 0)
        if cut:
            self.forgotten = self._entries[cut - 1].version
            del self._entries[:cut]
            self.first += cut

    def place_after(self, version: int) -> int | None:
        """The number of the first entry after a version; None if entries between them may be gone."""
        if version < self.forgotten:
            return None
        return self.first + bisect_right(self._entries, version, key=attrgetter("version"))

    def since(self, place: int, most: int = 1000) -> list[LogEntry] | None:
        """What happened from a place on; None if some of it is gone."""
        start = place - self.first
        return None if start < 0 else self._entries[start : start + most]
