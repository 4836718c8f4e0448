"""Actions on their way out: each gets a number and a deadline, and whoever waits for its result is told.

An action that nobody answers by its deadline is answered by us: status 0, no answer in time. Reminders are the same
thing without an action.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from stowplan.objects.actions import Action
from stowplan.objects.changes import Result

Then: TypeAlias = Callable[[Result, float], Iterator[Any]]  # what to do with a result, and when it came


class PendingActions:
    def __init__(self, answer_within: float) -> None:
        self._answer_within = answer_within
        self._last = self._reminders = 0
        self._then: dict[int, Then] = {}
        self._due: list[tuple[float, int]] = []

    def send(self, action: Any, now: float, then: Then | None = None, *, within: float | None = None) -> Any:
        """The action with its number and deadline."""
        deadline = now + (self._answer_within if within is None else within)
        self._last += 1
        if then is not None:
            self._expect(self._last, deadline, then)
        return msgspec.structs.replace(action, id=self._last, deadline=deadline)

    def numbered(self, actions: Iterable[Any], now: float) -> list[Action]:
        """Actions of which nobody awaits the result are numbered last, on their way out."""
        return [action if action.id else self.send(action, now) for action in actions]

    def remind(self, at: float, then: Then) -> int:
        """A number below zero, which no result can carry."""
        self._reminders -= 1
        self._expect(self._reminders, at, then)
        return self._reminders

    def _expect(self, number: int, at: float, then: Then) -> None:
        self._then[number] = then
        heapq.heappush(self._due, (at, number))

    def forget(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._then.pop(number, None)

    def answered(self, result: Result, now: float) -> Iterator[Any]:
        """Tell whoever waits; a result that nobody waits for, or that comes twice, is nothing."""
        return iter(()) if result.id < 0 else self._tell(result, now)

    def _tell(self, result: Result, now: float) -> Iterator[Any]:
        then = self._then.pop(result.id, None)
        return iter(()) if then is None else then(result, now)

    def due(self, now: float) -> bool:
        """Is there something that was due by now?"""
        return bool(self._due) and self._due[0][0] <= now

    def expire(self, now: float) -> Iterator[Any]:
        """Settle what was due by now."""
        while (at := self.next_deadline()) is not None and at <= now:
            _, number = heapq.heappop(self._due)
            yield from self._tell(Result(number, 0, "no answer in time"), now)

    def next_deadline(self) -> float | None:
        """The first deadline that still means something; void ones are thrown away."""
        while self._due and self._due[0][1] not in self._then:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None
