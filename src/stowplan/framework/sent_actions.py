"""Actions that were sent and not answered yet: their numbers, their deadlines, and what each was sent for.

Both engines keep their actions in this way: the scheduler of pods with the receiver of each result (`engine.outbox`),
the scheduler of placements with the placement that a write belongs to (`placement.writes`).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from stowplan.objects.actions import AnyAction
from stowplan.objects.changes import Result

Subject = TypeVar("Subject")
AnAction = TypeVar("AnAction", bound=AnyAction)


class SentActions(Generic[Subject]):
    def __init__(self, answer_within: float) -> None:
        """`answer_within`: seconds until an action counts as lost."""
        self._answer_within = answer_within
        self._last_action = self._last_reminder = 0
        self._subjects: dict[int, Subject] = {}
        self._deadlines: list[tuple[float, int]] = []
        self.next_due = float("inf")  # no deadline is earlier than this

    def send(
        self, action: AnAction, now: float, subject: Subject | None = None, *, within: float | None = None
    ) -> AnAction:
        """Return the action with its number and deadline. Without a subject its result is not awaited.

        `within`: another time limit than usual, in seconds.
        """
        deadline = now + (self._answer_within if within is None else within)
        self._last_action += 1
        if subject is not None:
            self._await(self._last_action, deadline, subject)
        return msgspec.structs.replace(action, id=self._last_action, deadline=deadline)

    def remind(self, at: float, subject: Subject) -> int:
        """A deadline without an action. Reminders have negative numbers, which no result can carry."""
        self._last_reminder -= 1
        self._await(self._last_reminder, at, subject)
        return self._last_reminder

    def _await(self, number: int, at: float, subject: Subject) -> None:
        self._subjects[number] = subject
        heapq.heappush(self._deadlines, (at, number))
        if at < self.next_due:
            self.next_due = at

    def pop(self, number: int) -> Subject | None:
        """What an answered action was sent for; None if its result is not awaited, or was taken before."""
        return self._subjects.pop(number, None)

    def forget(self, numbers: Iterable[int]) -> None:
        """These results and reminders are not awaited any more."""
        for number in numbers:
            self._subjects.pop(number, None)

    def overdue(self, now: float) -> Result | None:
        """A result for the first action or reminder whose deadline has passed."""
        deadline = self.next_deadline()
        if deadline is None or deadline > now:
            return None
        return Result(self._deadlines[0][1], 0, "no answer in time")

    def next_deadline(self) -> float | None:
        """The first deadline of what is still awaited."""
        while self._deadlines and self._deadlines[0][1] not in self._subjects:
            heapq.heappop(self._deadlines)
        self.next_due = self._deadlines[0][0] if self._deadlines else float("inf")
        return self._deadlines[0][0] if self._deadlines else None
