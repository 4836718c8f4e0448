"""The outbox: numbers, deadlines, results and reminders."""

from __future__ import annotations

from collections.abc import Callable

from stowplan.engine.outbox import Outbox
from stowplan.objects.actions import PodRef, Read
from stowplan.objects.changes import Result

READ = Read(pod=PodRef("default", "web", "uid"))


def receiver(log: list[tuple[int, int, float]]) -> Callable[[Result, float], None]:
    return lambda result, now: log.append((result.id, result.status, now))


def test_actions_leave_in_the_order_in_which_they_were_sent() -> None:
    outbox = Outbox(30.0)
    sent = [outbox.send(READ, 1.0), outbox.send(READ, 2.0, within=5.0)]
    assert [(each.id, each.deadline) for each in sent] == [(1, 31.0), (2, 7.0)]
    assert outbox.take() == sent and outbox.take() == []


def test_a_result_reaches_its_receiver_once() -> None:
    outbox, log = Outbox(30.0), list[tuple[int, int, float]]()
    sent = outbox.send(READ, 0.0, receiver(log))
    outbox.deliver(Result(sent.id), 3.0)
    outbox.deliver(Result(sent.id), 4.0)
    outbox.deliver(Result(99), 5.0)
    assert log == [(sent.id, 200, 3.0)] and outbox.next_deadline() is None


def test_an_action_without_a_result_is_answered_at_its_deadline() -> None:
    outbox, log = Outbox(30.0), list[tuple[int, int, float]]()
    sent = outbox.send(READ, 0.0, receiver(log))
    assert outbox.next_deadline() == outbox.next_due == 30.0
    outbox.expire(29.0)
    assert log == []
    outbox.expire(30.0)
    assert log == [(sent.id, 0, 30.0)] and outbox.next_due == float("inf")


def test_a_reminder_has_a_number_that_no_result_can_have() -> None:
    outbox, log = Outbox(30.0), list[tuple[int, int, float]]()
    number = outbox.remind(5.0, receiver(log))
    outbox.deliver(Result(number), 1.0)
    assert log == []
    outbox.expire(5.0)
    assert log == [(number, 0, 5.0)]


def test_forgotten_numbers_are_not_answered() -> None:
    outbox, log = Outbox(30.0), list[tuple[int, int, float]]()
    outbox.forget([outbox.remind(5.0, receiver(log)), outbox.send(READ, 0.0, receiver(log)).id])
    assert outbox.next_deadline() is None
    outbox.expire(100.0)
    assert log == []


def test_a_receiver_may_send_and_remind_while_deadlines_expire() -> None:
    """What is due at the same time is settled at the same time."""
    outbox, log = Outbox(30.0), list[tuple[int, int, float]]()

    def send_and_remind(_: Result, now: float) -> None:
        outbox.send(READ, now)
        outbox.remind(now, receiver(log))

    outbox.remind(5.0, send_and_remind)
    outbox.expire(6.0)
    assert len(outbox.take()) == 1 and [number for number, *_ in log] == [-2]
