"""Keys that are due later, and a manager that asks a controller no more often than it must."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from stowplan.embedded.controllers.actions import Action, RequeueAfter
from stowplan.embedded.controllers.controller_manager import ControllerManager
from stowplan.embedded.controllers.delayed_keys import DelayedKeys
from stowplan.embedded.store import DocumentStore, StoreChange


@pytest.mark.parametrize(
    ("times", "due"),
    [
        pytest.param([5.0], [5.0], id="one"),
        pytest.param([5.0, 5.0, 7.0], [5.0], id="later and equal ones add nothing"),
        pytest.param([5.0, 3.0], [3.0], id="an earlier one replaces it"),
        pytest.param([5.0, 3.0, 4.0], [3.0], id="not a later one again"),
    ],
)
def test_the_earliest_time_counts(times: list[float], due: list[float]) -> None:
    delayed, found = DelayedKeys(), []
    for at in times:
        delayed.add(0, "key", at)
    while (at := delayed.next()) is not None:  # type: ignore[assignment]
        assert list(delayed.due(at)) == [(0, "key")]
        found.append(at)
    assert found == due


def test_keys_come_in_the_order_of_their_times() -> None:
    delayed = DelayedKeys()
    for number, key, at in ((1, "b", 2.0), (0, "b", 3.0), (0, "a", 1.0), (0, "c", 9.0)):
        delayed.add(number, key, at)
    assert list(delayed.due(3.0)) == [(0, "a"), (1, "b"), (0, "b")]
    assert delayed.next() == 9.0


def test_entries_that_are_replaced_do_not_pile_up() -> None:
    delayed = DelayedKeys()
    for now in range(1000):  # the far time is asked for again each time that a near one has come
        delayed.add(0, "key", 1e9)
        delayed.add(0, "key", now + 0.5)
        assert list(delayed.due(now + 1.0)) == [(0, "key")]
    assert len(delayed) < 100


class Clockwork:
    """Wants to be asked about each Node again after ten seconds."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        return (change.key,)

    def reconcile(self, _key: str, now: float) -> Iterator[Action]:
        self.asked.append(now)
        yield RequeueAfter(10.0)


def test_a_key_that_changes_often_is_not_asked_about_more_often_later() -> None:
    store, clockwork = DocumentStore(), Clockwork()
    manager = ControllerManager(store, [clockwork], lambda _action, _now: None)
    for now in range(10):
        store.put("nodes", "n", {"metadata": {"name": "n"}})
        manager.settle(float(now))
    assert clockwork.asked == [float(now) for now in range(10)]
    clockwork.asked.clear()
    for now in range(10, 40):
        manager.settle(float(now))
    assert clockwork.asked == [10.0, 20.0, 30.0]
    assert manager.next_deadline() == 40.0
