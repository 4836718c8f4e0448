"""The decision log returns what was stored, within its limit of bytes."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.engine.decision_log import PER_DECISION, DecisionLog
from stowplan.framework.decision import UNSCHEDULABLE, Decision, Verdict
from stowplan.framework.evaluation import schedule_one
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod, a_profile, a_state, rejections, scores

MIXED = [a_node("a", cpu=4), a_node("b", cpu=1), a_node("c", cpu=8, taints=["t=v:NoSchedule"]), a_node("d", cpu=8)]


def decided(name: str = "web", nodes: list[Any] = MIXED, **wishes: Any) -> Decision:
    return schedule_one(a_pod(name, **wishes), a_state(nodes=nodes), a_profile())


def told(decision: Decision) -> Any:
    return decision.node, decision.full_message, rejections(decision), scores(decision), list(decision.trail.scored())


@pytest.mark.parametrize(
    "wishes",
    [
        pytest.param({"cpu": 2}, id="some nodes are feasible"),
        pytest.param({"cpu": "100m", "tolerations": ["t:NoSchedule"]}, id="all are"),
        pytest.param({"cpu": 64}, id="none is"),
        pytest.param({"cpu": 1, "node_selector": {"no": "such"}}, id="none is, for several reasons"),
    ],
)
def test_a_trail_comes_back_as_it_went_in(wishes: Any) -> None:
    trails, before = DecisionLog(), told(decided(**wishes))
    kept = decided(**wishes)
    trails.keep(kept)
    found = trails.latest(kept.pod.uid)
    assert found is not None and told(found) == before
    again = trails.latest(kept.pod.uid)
    assert again is not None and told(again) == before, "looking changes nothing"


def test_the_ring_keeps_within_its_bytes_and_the_latest_decisions() -> None:
    trails = DecisionLog(limit=20_000)
    for number in range(100):
        trails.keep(decided(f"p{number}", cpu=2))
    assert trails.nbytes <= 20_000 and 2 < len(trails) < 100
    assert trails.latest("uid-of-default-p99") is not None and trails.latest("uid-of-default-p0") is None


def test_a_pod_has_one_trail_the_latest() -> None:
    trails = DecisionLog()
    trails.keep(decided(cpu=2))
    trails.keep(decided(cpu=64))
    found = trails.latest("uid-of-default-web")
    assert len(trails) == 1 and found is not None and found.node is None


def test_packed_trails_take_a_few_bytes_per_node() -> None:
    trails = DecisionLog()
    many = [a_node(f"n{number}", cpu=4) for number in range(1000)]
    trails.keep(decided(nodes=[*many, a_node("small", cpu="1m")], cpu=64))
    assert trails.nbytes < 10 * 1000 + 2 * PER_DECISION


def test_decisions_about_pods_of_one_shape_share_what_they_are_read_from() -> None:
    trails, state, profile = DecisionLog(), a_state(nodes=[a_node(f"n{number}") for number in range(1000)]), a_profile()

    def place(name: str, cpu: int) -> Any:
        decision = schedule_one(a_pod(name, cpu=cpu), state, profile)
        expected = told(decision)
        again = schedule_one(a_pod(name, cpu=cpu), state, profile)
        assert again.node is not None
        trails.keep(again)
        state.add_pod(a_pod(name, cpu=cpu), again.node)
        return expected

    expected = {name: place(name, cpu=1) for name in ("first", "second", "third", "fourth")}
    alone = trails.nbytes
    assert alone < 20 * 1000 + 6 * PER_DECISION, "8 bytes a name, about 8 an answer"
    place("unlike", cpu=2)
    assert trails.nbytes - alone > 4000, "another shape has answers of its own"
    for name, before in expected.items():
        found = trails.latest(f"uid-of-default-{name}")
        assert found is not None and told(found) == before, "as it was decided, though rows changed since"


def test_what_decisions_share_is_let_go_with_the_last_of_them() -> None:
    state, profile = a_state(nodes=[a_node(f"n{number}") for number in range(50)]), a_profile()
    trails = DecisionLog(limit=40_000)
    for number in range(100):
        trails.keep(schedule_one(a_pod(f"p{number}", cpu=f"{number + 1}m"), state, profile))
        assert trails.nbytes <= 40_000
    assert 2 < len(trails) < 40 and len(trails._histories) == len(trails)


def a_fat(pod: Pod) -> Pod:
    pod.annotations["a"] = "x" * 250_000
    return pod


def test_of_a_pod_only_its_name_is_kept() -> None:
    trails = DecisionLog()
    kept = schedule_one(a_fat(a_pod("fat")), a_state(nodes=MIXED), a_profile())
    trails.keep(kept)
    found = trails.latest(kept.pod.uid)
    assert found is not None
    assert (found.pod.key, found.pod.uid, found.pod.annotations) == ("default/fat", "uid-of-default-fat", {})


def test_of_victims_only_their_names_are_kept() -> None:
    victim = a_fat(a_pod("victim", node="a", cpu=4))
    state = a_state(nodes=[a_node("a", cpu=4)], pods=[victim])
    kept = schedule_one(a_pod("important", cpu=4, priority=10), state, a_profile())
    trails = DecisionLog()
    trails.keep(kept)
    found = trails.latest(kept.pod.uid)
    assert found is not None and found.post_filter is not None and found.post_filter.candidate is not None
    (named,) = found.post_filter.candidate.victims
    assert (named.key, named.uid, named.annotations) == (victim.key, victim.uid, {})


@pytest.mark.parametrize("letters", [10, 100_000])
def test_texts_count_as_long_as_they_are(letters: int) -> None:
    kept = decided(cpu=64)
    kept.refused = Verdict("Talker", UNSCHEDULABLE, ("x" * letters,))
    trails, short = DecisionLog(), DecisionLog()
    short.keep(decided(cpu=64))
    trails.keep(kept)
    assert trails.nbytes - short.nbytes >= letters


def test_whoever_listens_gets_each_decision_before_it_is_packed() -> None:
    trails, heard = DecisionLog(), list[Any]()
    trails.on_decision = lambda decision: heard.append(told(decision))
    trails.keep(decided(cpu=2))
    assert heard == [told(decided(cpu=2))]
