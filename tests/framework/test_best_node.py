"""The choice by kept totals: who is asked again, when it must look at all nodes, and that it is read as it was made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.columns.nodes import node_scores
from stowplan.columns.nodes.answer_cache import PER_CHANGE
from stowplan.framework.decision import Reject
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.unread_trail import UnreadTrail
from stowplan.objects.changes import Gone, Put
from stowplan.testing.builders import a_node, a_pod, a_profile, a_profile_of, a_state, rejections, scores


class Roomiest:
    """Judges by row, in both forms."""

    filters_by_row = scores_by_row = True

    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(nodes.free["cpu"] < 1000, "too full")

    def fits(self, pod: Any, node: Any) -> Any:
        return "too full" if node.free("cpu") < 1000 else None

    def score(self, pod: Any, nodes: Any) -> Any:
        return np.minimum(nodes.free["cpu"] // 100, 100)

    def rate(self, pod: Any, node: Any) -> Any:
        return min(node.free("cpu") // 100, 100)


class Liked:
    """Prefers labelled nodes, relative to the most liked of the nodes it is asked about."""

    scores_by_node = True

    def __init__(self) -> None:
        self.asked = 0

    def score(self, pod: Any, nodes: Any) -> Any:
        self.asked += 1
        liked = np.array([int(value or 0) for value in nodes.label("liked").values], np.int64)
        return liked * 100 // max(int(liked.max()), 1)


class ByPod:
    """Answers whatever the pod says."""

    def score(self, pod: Any, nodes: Any) -> Any:
        says = pod.labels.get("says", "")
        return np.arange(len(nodes))[::-1].copy() if says == "last" else int(says) if says else None


def place(state: Any, profile: Any, name: str = "p", **wishes: Any) -> Any:
    """Decide, and put the pod there."""
    decision = schedule_one(a_pod(name, cpu=1, **wishes), state, profile)
    assert decision.node is not None
    state.add_pod(a_pod(name, cpu=1, **wishes), decision.node)
    return decision


def test_the_best_node_is_found_again_after_each_binding() -> None:
    state, profile = (
        a_state(nodes=[a_node("a", cpu=3), a_node("b", cpu=4), a_node("c", cpu=2)]),
        a_profile_of(Roomiest()),
    )
    chosen = [place(state, profile, f"p{number}").node for number in range(9)]
    assert chosen == ["b", "a", "b", "a", "b", "c", "a", "b", "c"]
    assert schedule_one(a_pod(cpu=1), state, profile).node is None


@pytest.mark.parametrize("nodes", [3, 64, 130])
def test_nodes_that_come_and_go_are_ranked(nodes: int) -> None:
    state, profile = a_state(nodes=[a_node(f"n{number}") for number in range(nodes)]), a_profile()
    for number in range(3):
        place(state, profile, f"p{number}")
    state.apply(Put(a_node("new", cpu=64, memory="640Gi")))
    assert [place(state, profile, f"q{number}").node for number in range(2)] == ["new", "new"]
    state.apply(Gone(a_node("new")))
    assert place(state, profile, "r").node != "new"


def test_a_tie_is_drawn_from_all_best_nodes() -> None:
    names = [f"n{number}" for number in range(200)]
    state, profile = a_state(nodes=names), a_profile()
    state.add_pod(a_pod("there", cpu=1), "n3")
    for seed in range(5):
        best = [name for name in names if name != "n3"]
        expected = best[int(np.random.default_rng(seed).integers(len(best)))]
        assert schedule_one(a_pod(cpu=1), state, profile, np.random.default_rng(seed)).node == expected


class Forbidden:
    def integers(self, below: int, /) -> int:
        raise AssertionError(f"one of {below} is not worth a draw")


def test_nothing_is_drawn_if_one_node_is_best() -> None:
    state, profile = a_state(nodes=["a", a_node("b", cpu=8, memory="64Gi")]), a_profile()
    for _ in range(3):
        assert schedule_one(a_pod(cpu=1), state, profile, Forbidden()).node == "b"


# -- scores that are relative to the nodes that are feasible


def test_a_score_by_nodes_is_asked_again_when_nodes_change_or_are_full() -> None:
    liked = Liked()
    nodes = [a_node("a", cpu=4, labels={"liked": "2"}), a_node("b", cpu=4, labels={"liked": "1"})]
    state, profile = a_state(nodes=nodes), a_profile_of(Roomiest(), liked)
    assert [place(state, profile, f"p{number}").node for number in range(3)] == ["a"] * 3
    assert liked.asked == 1, "the same nodes are feasible, and none changed"
    decision = place(state, profile, "q")
    assert decision.node == "a" and decision.trail.scores["Liked"][1].tolist() == [100, 50]
    assert place(state, profile, "r").node == "b", "a is full"
    assert liked.asked == 2
    state.apply(Put(a_node("c", cpu=4, labels={"liked": "4"})))
    decision = place(state, profile, "s")
    assert decision.node == "c" and decision.trail.scores["Liked"][1].tolist() == [25, 100]
    state.apply(Put(a_node("b", cpu=4, labels={"liked": "40"})))
    assert place(state, profile, "t").node == "b"


def test_the_same_total_as_without_anything_kept() -> None:
    nodes = [a_node(f"n{number}", cpu=4 + number % 3, labels={"liked": str(number % 5)}) for number in range(20)]
    warm, profile = a_state(nodes=nodes), a_profile_of(Roomiest(), Liked())
    for number in range(40):
        place(warm, profile, f"p{number}")
        cold = a_state(nodes=nodes)
        for placed in warm.pods.values():
            cold.add_pod(placed.pod, warm.table.names[placed.row])
        mine, fresh = (schedule_one(a_pod("next", cpu=1), state, profile) for state in (warm, cold))
        assert (mine.node, scores(mine), rejections(mine)) == (fresh.node, scores(fresh), rejections(fresh))


# -- the same for pods that differ in their requests alone


class LikedInAnySize(Liked):
    ignores_requests = True


LIKED = [a_node("a", cpu=8, labels={"liked": "2"}), a_node("b", cpu=8, labels={"liked": "1"})]


@pytest.mark.parametrize(("plugin", "asked"), [(Liked, 3), (LikedInAnySize, 1)])
def test_a_score_that_ignores_requests_is_asked_once_for_all_sizes(plugin: type[Liked], asked: int) -> None:
    liked = plugin()
    state, profile = a_state(nodes=LIKED), a_profile_of(Roomiest(), liked)
    for cpu in ("1", "1100m", "1200m"):
        decision = schedule_one(a_pod(cpu=cpu), state, profile)
        assert decision.node == "a"
        assert np.array(decision.trail.scores[plugin.__name__][1]).tolist() == [100, 50]
    assert liked.asked == asked
    schedule_one(a_pod(cpu="1", image="another"), state, profile)
    assert liked.asked == asked + 1


def test_it_is_asked_again_when_a_node_changes_or_is_not_feasible() -> None:
    liked = LikedInAnySize()
    state, profile = a_state(nodes=LIKED), a_profile_of(Roomiest(), liked)

    def found(cpu: str) -> list[int]:
        decision = schedule_one(a_pod(cpu=cpu), state, profile)
        scores: list[int] = np.array(decision.trail.scores["LikedInAnySize"][1]).tolist()
        return scores

    assert found("1") == [100, 50]
    state.apply(Put(a_node("b", cpu=8, labels={"liked": "4"})))
    assert found("1100m") == [50, 100] and liked.asked == 2
    big = a_pod("big", cpu="7500m", node="b")
    state.apply(Put(big))
    assert found("1200m") == [100] and liked.asked == 3, "a is the most liked of those that are left"
    assert found("1300m") == [100] and liked.asked == 4
    state.apply(Gone(big))
    assert found("1400m") == [50, 100] and liked.asked == 4, "known from before"
    state.apply(Put(a_node("c", cpu=8, labels={"liked": "8"})))
    assert found("1500m") == [25, 50, 100]


def test_profiles_do_not_share_scores() -> None:
    state, one, other = a_state(nodes=LIKED), LikedInAnySize(), LikedInAnySize()
    for liked in (one, other):
        schedule_one(a_pod(cpu=1), state, a_profile_of(Roomiest(), liked))
    assert (one.asked, other.asked) == (1, 1)


@pytest.mark.parametrize(("bound", "value"), [("MOST_BYTES", 64), ("MOST_KEYS", 8)])
def test_what_is_known_of_templates_is_bounded(monkeypatch: pytest.MonkeyPatch, bound: str, value: int) -> None:
    monkeypatch.setattr(node_scores, bound, value)
    state, profile = a_state(nodes=LIKED), a_profile()
    for number in range(20):
        schedule_one(a_pod(image=f"i{number}"), state, profile)
        assert 0 < len(state.node_scores) <= 8


def test_pods_of_any_size_get_what_they_would_get_without_anything_kept() -> None:
    nodes = [a_node(f"n{number}", cpu=4 + number % 3, labels={"liked": str(number % 5)}) for number in range(20)]
    warm, profile = a_state(nodes=nodes), a_profile_of(Roomiest(), LikedInAnySize())
    for number in range(40):
        pod = a_pod(f"p{number}", cpu=f"{600 + 50 * number}m")
        cold = a_state(nodes=nodes)
        for placed in warm.pods.values():
            cold.add_pod(placed.pod, warm.table.names[placed.row])
        mine, fresh = (schedule_one(pod, state, profile) for state in (warm, cold))
        assert (mine.node, scores(mine), rejections(mine)) == (fresh.node, scores(fresh), rejections(fresh))
        if mine.node is not None:
            warm.add_pod(pod, mine.node)
        if number % 7 == 3:
            warm.apply(Put(nodes[number % 20]))


# -- scores that are asked for each pod


def test_one_score_for_all_nodes_changes_no_choice() -> None:
    state, profile = a_state(nodes=["a", "b"]), a_profile_of(Roomiest(), ByPod())
    place(state, profile, "p")
    decision = place(state, profile, "q", labels={"says": "7"})
    assert decision.node == "b" and scores(decision) == {"a": 37, "b": 47}
    assert isinstance(decision.trail, UnreadTrail)


def test_a_score_that_differs_between_nodes_is_added_up() -> None:
    state, profile = a_state(nodes=["a", "b", "c"]), a_profile_of(Roomiest(), ByPod())
    place(state, profile, "p")
    decision = schedule_one(a_pod(cpu=1, labels={"says": "last"}), state, profile)
    assert decision.node == "b" and scores(decision) == {"a": 32, "b": 41, "c": 40}
    assert schedule_one(a_pod(cpu=1), state, profile).node == "b", "the next pod does not say that"


# -- trails


def test_a_trail_tells_of_the_moment_of_its_decision() -> None:
    state, profile = a_state(nodes=["a", "b"]), a_profile_of(Roomiest())
    unread = [place(state, profile, f"p{number}") for number in range(8)]
    state.apply(Gone(a_node("a")))
    state.apply(Put(a_node("d", cpu=1)))
    assert schedule_one(a_pod(cpu=1), state, profile).node == "d"
    assert [scores(each) for each in unread[:3]] == [{"a": 40, "b": 40}, {"a": 30, "b": 40}, {"a": 30, "b": 30}]
    assert scores(unread[7]) == {"b": 10}
    assert rejections(unread[7]) == {"a": ("Roomiest", "Unschedulable", ("too full",)), "b": None}
    assert unread[7].trail.best() == ["b"] and unread[7].trail.total == 2


def test_an_unread_trail_has_no_other_attributes() -> None:
    decision = schedule_one(a_pod(cpu=1), a_state(nodes=["a"]), a_profile())
    with pytest.raises(AttributeError, match="colour"):
        _ = decision.trail.colour  # type: ignore[attr-defined]


def test_what_is_kept_for_a_shape_counts_in_bytes() -> None:
    nodes = [a_node(f"n{number}", labels={"liked": str(number % 5)}) for number in range(100)]
    state, profile = a_state(nodes=nodes), a_profile_of(Roomiest(), Liked())
    sizes = []
    for number in range(2):
        place(state, profile, f"p{number}")
        sizes.append(state.answer_cache.nbytes)
    (answers,) = state.answer_cache._answers.values()
    assert answers.best_rows is not None and sizes[1] == sizes[0] + answers.best_rows.nbytes + PER_CHANGE
    assert answers.nbytes > answers.history.nbytes
