"""Nominated pods and their companions: pods that do not exist yet, for which room is set aside with them."""

from __future__ import annotations

from stowplan.columns.pods.nominated_pods import NominatedPods
from stowplan.columns.state import ClusterState
from stowplan.framework.evaluation import schedule_one
from stowplan.testing.builders import a_node, a_pod, a_profile, a_state

DRIVER = a_pod("driver", cpu=1, priority=10)
BESIDE = [(a_pod("one", cpu=2, priority=10), "a"), (a_pod("two", cpu=2, priority=10), "b")]


def a_cluster() -> ClusterState:
    state = a_state(nodes=[a_node("a", cpu=4), a_node("b", cpu=4)])
    state.nominated_pods.add(DRIVER, "a", companions=BESIDE)
    return state


def names(nominated: NominatedPods) -> dict[str, set[str]]:
    return {node: {pod.name for pod in pods.values()} for node, pods in nominated.by_node.items()}


def test_companions_come_and_go_with_their_pod() -> None:
    nominated = a_cluster().nominated_pods
    assert names(nominated) == {"a": {"driver", "one"}, "b": {"two"}} and len(nominated) == 3
    assert nominated.companions_of(DRIVER.uid) == BESIDE
    nominated.add(DRIVER, "b")
    assert names(nominated) == {"b": {"driver"}} and not nominated.owner_of
    nominated.add(DRIVER, "a", companions=BESIDE)
    assert nominated.drop(DRIVER.uid) == BESIDE and not nominated and not nominated.by_node
    assert nominated.drop(DRIVER.uid) == ()


def test_a_trial_brings_them_back() -> None:
    state = a_cluster()
    with state.trial() as trial:
        trial.add_pod(DRIVER, "a")
        assert not state.nominated_pods
    assert names(state.nominated_pods) == {"a": {"driver", "one"}, "b": {"two"}}
    assert {owner.uid for owner in state.nominated_pods.owner_of.values()} == {DRIVER.uid}


def test_others_leave_them_room_and_their_pod_need_not() -> None:
    state, profile = a_cluster(), a_profile()
    decided = schedule_one(a_pod("equal", cpu=3, priority=10), state, profile)
    assert decided.node is None and decided.message == "0/2 nodes are available: 2 Insufficient cpu."
    assert schedule_one(a_pod("small", cpu=2, priority=10), state, profile).node == "b"
    assert schedule_one(a_pod("more important", cpu=3, priority=11), state, profile).node is not None
    assert schedule_one(a_pod("driver", cpu=4, priority=10), state, profile).node is not None, "the pod itself"
