"""Cached answers per row: rows that changed are asked about again, other rows are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.columns.nodes import answer_cache
from stowplan.columns.nodes.answer_cache import AnswerCache, CachedAnswers
from stowplan.framework.decision import Reject
from stowplan.framework.evaluation import schedule_one
from stowplan.objects.changes import Gone, Put
from stowplan.testing.builders import a_node, a_pod, a_profile_of, a_state, rejections, scores


class Watcher:
    """Judges by the row alone, and notes which nodes it was asked about."""

    filters_by_row = scores_by_row = True

    def __init__(self) -> None:
        self.filtered: list[list[str]] = []
        self.scored: list[list[str]] = []

    def filter(self, pod: Any, nodes: Any) -> Any:
        self.filtered.append(nodes.names)
        yield Reject(nodes.free["cpu"] < 1000, "too full")

    def score(self, pod: Any, nodes: Any) -> Any:
        self.scored.append(nodes.names)
        return np.minimum(nodes.free["cpu"] // 100, 100)


@pytest.fixture
def asked() -> tuple[Any, Any, Any]:
    watcher = Watcher()
    return watcher, a_profile_of(watcher), a_state(nodes=["a", "b", "c"])


def test_only_rows_that_changed_are_asked_about_again(asked: Any) -> None:
    watcher, profile, state = asked
    assert scores(schedule_one(a_pod(), state, profile)) == {"a": 40, "b": 40, "c": 40}
    state.apply(Put(a_pod("there", node="b", cpu=1)))
    assert scores(schedule_one(a_pod("another"), state, profile)) == {"a": 40, "b": 30, "c": 40}
    state.apply(Put(a_pod("more", node="c", cpu="3500m")))
    decision = schedule_one(a_pod("third"), state, profile)
    assert scores(decision) == {"a": 40, "b": 30}
    assert rejections(decision)["c"] == ("Watcher", "Unschedulable", ("too full",))
    assert watcher.filtered == watcher.scored == [["a", "b", "c"], ["b"], ["c"]]


def test_nothing_is_asked_when_nothing_changed(asked: Any) -> None:
    watcher, profile, state = asked
    first, second = (scores(schedule_one(a_pod(), state, profile)) for _ in range(2))
    assert first == second and len(watcher.filtered) == 1


def test_pods_of_another_shape_have_answers_of_their_own(asked: Any) -> None:
    watcher, profile, state = asked
    schedule_one(a_pod(cpu=1), state, profile)
    schedule_one(a_pod(cpu=2), state, profile)
    assert len(watcher.filtered) == 2 and len(state.answer_cache) == 2


def test_a_reused_row_is_asked_about_again(asked: Any) -> None:
    _, profile, state = asked
    schedule_one(a_pod(), state, profile)
    state.apply(Gone(a_node("a")))
    state.apply(Put(a_node("d", cpu="500m")))
    assert rejections(schedule_one(a_pod(), state, profile))["d"] == ("Watcher", "Unschedulable", ("too full",))


def test_rows_of_an_undone_trial_are_asked_about_again(asked: Any) -> None:
    _, profile, state = asked
    with state.trial() as trial:
        trial.add_pod(a_pod("large", cpu="3500m"), "a")
        assert rejections(schedule_one(a_pod(), state, profile))["a"] is not None
    assert rejections(schedule_one(a_pod(), state, profile))["a"] is None


def test_growing_columns_ask_about_all_rows(asked: Any) -> None:
    _, profile, state = asked
    schedule_one(a_pod(), state, profile)
    for number in range(40):
        state.apply(Put(a_node(f"n{number}", cpu=number)))
    fresh = a_state(nodes=["a", "b", "c", *(a_node(f"n{number}", cpu=number) for number in range(40))])
    assert scores(schedule_one(a_pod(), state, profile)) == scores(schedule_one(a_pod(), fresh, profile))


def answers(size: int) -> CachedAnswers:
    made = CachedAnswers(None)
    made.put("verdict", np.arange(size), np.zeros(size, np.int64), size)
    return made


def test_the_least_recently_used_answers_are_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_cache, "MOST_BYTES", 3 * (80 + answer_cache.PER_ENTRY))
    store = AnswerCache()
    for key in "abc":
        store.keep(key, answers(10))
    store.get("a")
    store.keep("d", answers(10))
    assert [key for key in "abcd" if store.get(key) is not None] == ["a", "c", "d"]


def test_answers_that_grow_with_the_table_stay_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_cache, "MOST_BYTES", 10_000)
    profile, state = a_profile_of(Watcher()), a_state(nodes=["a"])
    for cpu in range(1, 20):
        schedule_one(a_pod(cpu=cpu), state, profile)
    for number in range(200):
        state.apply(Put(a_node(f"n{number}")))
    for cpu in range(1, 20):
        schedule_one(a_pod(cpu=cpu), state, profile)
    assert sum(each.nbytes for each in state.answer_cache._answers.values()) <= 10_000
