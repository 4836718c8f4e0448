"""Actions that an engine wants carried out, and who receives their results.

An engine sends actions while it handles a change or takes a step; its caller then takes them out and carries them out.
Each action gets a number and a deadline. A result finds its receiver by that number. If no result arrives by the
deadline, the receiver gets one with status 0. A reminder is a deadline without an action.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

import msgspec

from stowplan.objects.actions import Action, AnyAction
from stowplan.objects.changes import Result

Receiver: TypeAlias = Callable[[Result, float], None]  # called with the result and the time at which it arrived
A = TypeVar("A", bound=AnyAction)


class Outbox:
    def __init__(self, answer_within: float) -> None:
        """`answer_within`: seconds until an action counts as lost."""
        self._answer_within = answer_within
        self.outgoing: list[Action] = []  # sent and not yet taken, in order
        self.next_due = float("inf")  # no deadline is earlier than this
        self._last_action = self._last_reminder = 0
        self._receivers: dict[int, Receiver] = {}
        self._deadlines: list[tuple[float, int]] = []

    # -- out

    def send(self, action: A, now: float, receiver: Receiver | None = None, *, within: float | None = None) -> A:
        """Number the action and put it into the outbox. `within`: another time limit than usual, in seconds."""
        deadline = now + (self._answer_within if within is None else within)
        self._last_action += 1
        if receiver is not None:
            self._expect(self._last_action, deadline, receiver)
        sent = msgspec.structs.replace(action, id=self._last_action, deadline=deadline)
        self.outgoing.append(sent)  # type: ignore[arg-type]  # every AnyAction is one of the union Action
        return sent

    def take(self) -> list[Action]:
        """Take all actions out, in the order in which they were sent."""
        taken, self.outgoing = self.outgoing, []
        return taken

    # -- reminders

    def remind(self, at: float, receiver: Receiver) -> int:
        """Call the receiver at this time. Reminders have negative numbers, which no result can carry."""
        self._last_reminder -= 1
        self._expect(self._last_reminder, at, receiver)
        return self._last_reminder

    def _expect(self, number: int, at: float, receiver: Receiver) -> None:
        self._receivers[number] = receiver
        heapq.heappush(self._deadlines, (at, number))
        if at < self.next_due:
            self.next_due = at

    def forget(self, numbers: Iterable[int]) -> None:
        """Drop the receivers of these results and reminders."""
        for number in numbers:
            self._receivers.pop(number, None)

    # -- in

    def deliver(self, result: Result, now: float) -> None:
        """Hand a result to its receiver. One without a receiver, or a second one, is ignored."""
        if result.id > 0:
            self._hand_over(result, now)

    def _hand_over(self, result: Result, now: float) -> None:
        receiver = self._receivers.pop(result.id, None)
        if receiver is not None:
            receiver(result, now)

    def expire(self, now: float) -> None:
        """Answer what is overdue with status 0."""
        while self._deadlines and self._deadlines[0][0] <= now:
            _, number = heapq.heappop(self._deadlines)
            self._hand_over(Result(number, 0, "no answer in time"), now)
        self.next_due = self._deadlines[0][0] if self._deadlines else float("inf")

    def next_deadline(self) -> float | None:
        """The first deadline for which a receiver still waits."""
        while self._deadlines and self._deadlines[0][1] not in self._receivers:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None
