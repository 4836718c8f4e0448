"""Actions that the engine wants carried out, and who receives their results.

The engine sends actions while it handles a change or takes a step; its caller then takes them out and carries them out.
A result finds its receiver by the action's number. If no result arrives by the deadline, the receiver gets one with
status 0. A reminder is a deadline without an action.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from stowplan.framework.sent_actions import AnAction, SentActions
from stowplan.objects.actions import Action
from stowplan.objects.changes import Result

Receiver: TypeAlias = Callable[[Result, float], None]  # called with the result and the time at which it arrived


class Outbox(SentActions[Receiver]):
    def __init__(self, answer_within: float) -> None:
        super().__init__(answer_within)
        self.outgoing: list[Action] = []  # sent and not yet taken, in order

    def send(
        self, action: AnAction, now: float, subject: Receiver | None = None, *, within: float | None = None
    ) -> AnAction:
        """Number the action and put it into the outbox."""
        sent = super().send(action, now, subject, within=within)
        self.outgoing.append(sent)  # type: ignore[arg-type]  # every AnyAction is one of the union Action
        return sent

    def take(self) -> list[Action]:
        """Take all actions out, in the order in which they were sent."""
        taken, self.outgoing = self.outgoing, []
        return taken

    def deliver(self, result: Result, now: float) -> None:
        """Hand a result to its receiver. One without a receiver, or a second one, is ignored."""
        receiver = self.pop(result.id) if result.id > 0 else None
        if receiver is not None:
            receiver(result, now)

    def expire(self, now: float) -> None:
        """Answer what is overdue with status 0."""
        while (late := self.overdue(now)) is not None:
            receiver = self.pop(late.id)
            if receiver is not None:
                receiver(late, now)
