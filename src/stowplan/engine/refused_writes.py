"""Writes of a reconciler that failed: which objects they were for, and when each of them is tried again.

Each object has a pause of its own, which doubles with each refusal, so an object that a webhook refuses for good delays
no other. While an object pauses, further writes to it are left out: when its time has come, the plugin makes them anew.
A scheduler that lacks a right gets 403 for every object; until a write succeeds, all of them have long pauses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from stowplan.objects.actions import Delete, RequestEviction, Write, written_part

SHORTEST_PAUSE = 1.0  # seconds
LONGEST_PAUSE = 300.0
FORBIDDEN = 403

Target: TypeAlias = tuple[str, str, str]  # kind, key, and what is written: the right may be there for the status alone


class Refusal(NamedTuple):
    """A write that was refused, how often in a row, and when to try again."""

    write: Write
    times: int
    again_at: float


class RefusedWrites:
    def __init__(self) -> None:
        self.again_at: float | None = None  # the first of all
        self._refusals: dict[Target, Refusal] = {}
        self._forbidden = 0  # in a row, of any object

    def refused(self, write: Write, status: int, now: float) -> None:
        before = self._refusals.get(target(write))
        times = 1 if before is None else before.times + 1
        self._forbidden += status == FORBIDDEN
        doubled = max(times, self._forbidden if status == FORBIDDEN else 0) - 1
        again_at = now + min(SHORTEST_PAUSE * 2.0 ** min(doubled, 10), LONGEST_PAUSE)
        self._refusals[target(write)] = Refusal(write, times, again_at)
        self.again_at = again_at if self.again_at is None else min(self.again_at, again_at)

    def done(self, write: Write, *, succeeded: bool) -> None:
        """The write succeeded, or there is no need for it any more."""
        if succeeded:
            self._forbidden = 0
        if self._refusals.pop(target(write), None) is not None and not self._refusals:
            self.again_at = None

    def due(self, now: float) -> list[Write]:
        """Return the writes whose pause is over."""
        if self.again_at is None or now < self.again_at:
            return []
        return [each.write for each in self._refusals.values() if each.again_at <= now]

    def permitted(self, writes: Iterable[Write], due: Iterable[Write], now: float) -> list[Write]:
        """Return the writes to objects that do not pause. What was due and is not among them is not wanted any more."""
        found = list(writes)
        wanted = set(map(target, found))
        for key in {target(write) for write in due} - wanted:
            del self._refusals[key]
        if self.again_at is not None and self.again_at <= now:
            later = (each.again_at for each in self._refusals.values() if each.again_at > now)
            self.again_at = min(later, default=None)
        pausing = {key for key in wanted & self._refusals.keys() if self._refusals[key].again_at > now}
        return [write for write in found if target(write) not in pausing]


def target(write: Write) -> Target:
    return write.kind, write.key, written_part(write)


def written_uid(write: Write) -> str:
    """Return the uid of the object that a write is for; empty if it does not say so."""
    if isinstance(write, RequestEviction):
        return write.pod.uid
    if isinstance(write, Delete):
        return write.uid
    metadata = write.body.get("metadata") if isinstance(write.body, dict) else None
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    return uid if isinstance(uid, str) else ""
