"""The queue of placements, deadlines, and actions that wait for an answer."""

from __future__ import annotations

from stowplan.framework.sent_actions import SentActions
from stowplan.objects.actions import Delete
from stowplan.placement.queue import Deadlines, PlacementQueue


def test_placements_are_handed_out_in_the_order_in_which_they_became_due() -> None:
    queue = PlacementQueue()
    queue.add(["b", "a", "b"])
    assert [queue.pop(), queue.pop(), queue.pop()] == ["b", "a", None]


def test_a_placement_in_progress_is_not_handed_out_again_until_it_is_done() -> None:
    queue = PlacementQueue()
    queue.start("a")
    queue.add(["a"])
    assert queue.pop() is None
    queue.done("a")
    assert queue.pop() == "a"
    queue.start("a")
    queue.done("a")
    assert queue.pop() is None


def test_a_placement_that_failed_waits_whatever_was_added_meanwhile() -> None:
    queue = PlacementQueue()
    queue.start("a")
    queue.add(["a"])
    queue.retry("a", 5.0)
    assert (queue.pop(), queue.next_deadline()) == (None, 5.0)
    queue.add_overdue(5.0)
    assert queue.pop() == "a"


def test_a_forgotten_placement_is_not_handed_out() -> None:
    queue = PlacementQueue()
    queue.add(["a"])
    queue.add_at("a", 1.0)
    queue.forget("a")
    queue.add_overdue(1.0)
    assert (queue.pop(), queue.next_deadline()) == (None, None)


def test_a_deadline_replaces_the_one_before() -> None:
    deadlines = Deadlines()
    deadlines.set("a", 1.0)
    deadlines.set("a", 3.0)
    deadlines.set("b", 2.0)
    assert (deadlines.next(), deadlines.pop(1.0)) == (2.0, None)
    assert [deadlines.pop(9.0), deadlines.pop(9.0), deadlines.pop(9.0)] == ["b", "a", None]


def test_an_earlier_deadline_replaces_a_later_one_only() -> None:
    deadlines = Deadlines()
    deadlines.set_earlier("a", 2.0)
    deadlines.set_earlier("a", 3.0)
    assert deadlines.next() == 2.0
    deadlines.set_earlier("a", 1.0)
    assert deadlines.next() == 1.0


def test_an_action_is_awaited_until_it_is_answered_overdue_or_forgotten() -> None:
    action, sent = Delete(kind="Placement", key="a", uid="", resource_version=""), SentActions[str](30.0)
    first, second, third = (sent.send(action, float(second), name) for second, name in enumerate("abc"))
    assert (first.id, first.deadline) == (1, 30.0)
    assert (sent.pop(first.id), sent.pop(first.id)) == ("a", None)
    assert (sent.next_deadline(), sent.overdue(30.9)) == (31.0, None)
    overdue = sent.overdue(31.0)
    assert overdue is not None and (overdue.id, overdue.status) == (second.id, 0)
    sent.forget([second.id, third.id])
    assert sent.next_deadline() is None


def test_an_action_without_a_subject_is_not_awaited() -> None:
    sent = SentActions[str](30.0)
    sent.send(Delete(kind="Placement", key="a", uid="", resource_version=""), 0.0)
    assert sent.next_deadline() is None
