"""Trials: undone exactly, kept if asked for, nested."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.columns.trial import Trial, without_pods
from stowplan.objects.changes import Gone, Put
from stowplan.objects.workloads import Namespace
from stowplan.testing.builders import a_namespace, a_node, a_pod, a_state
from stowplan.testing.comparison import contents

THERE = a_pod("there", node="a", cpu=1, labels={"app": "x"}, ports=[80])
NEW = a_pod("new", cpu=2, labels={"app": "y"}, ports=[81])


@pytest.fixture
def state() -> ClusterState:
    state = a_state(nodes=["a", "b"], pods=[THERE, a_pod("promised", nominated="b")], others=[a_namespace(team="red")])
    state.hold("gang", "a", {"cpu": 100})
    return state


def picture(state: ClusterState) -> dict[str, Any]:
    return contents(state, (), (), NEW)


def taken(state: ClusterState) -> dict[str, int]:
    nodes = Cluster(state).nodes
    return dict(zip(nodes.names, nodes.requested["cpu"].tolist(), strict=True))


OPERATIONS = [
    pytest.param(lambda trial: trial.add_pod(NEW, "b"), id="a pod is added"),
    pytest.param(lambda trial: trial.add_pod(NEW, "unknown"), id="a pod is added to a node that is not there"),
    pytest.param(lambda trial: trial.remove_pod(THERE.uid), id="a pod is removed"),
    pytest.param(lambda trial: trial.remove_pod(THERE.uid, as_extension=True), id="a pod is removed as a dry run does"),
    pytest.param(lambda trial: trial.hold("other", "b", {"cpu": 5, "example.com/gpu": 1}), id="room is reserved"),
    pytest.param(lambda trial: trial.hold("gang", "b", {"cpu": 5}), id="a reservation moves"),
    pytest.param(lambda trial: trial.release("gang"), id="a reservation is given up"),
    pytest.param(lambda trial: trial.nominate(NEW, "a"), id="a pod is nominated"),
    pytest.param(lambda trial: trial.nominate(a_pod("promised", cpu=3), "a"), id="a nomination moves"),
    pytest.param(lambda trial: trial.assume(a_namespace(team="blue")), id="an object is assumed to be otherwise"),
    pytest.param(lambda trial: trial.assume(a_namespace("new")), id="an object is assumed to be there"),
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_trial_is_undone(state: ClusterState, operation: Any) -> None:
    before = picture(state)
    with state.trial() as trial:
        operation(trial)
        assert picture(state) != before
    assert picture(state) == before


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_kept_trial_stays(state: ClusterState, operation: Any) -> None:
    with state.trial() as trial:
        operation(trial)
        tried = picture(state)
        trial.keep()
    assert picture(state) == tried


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_error_undoes_a_kept_trial(state: ClusterState, operation: Any) -> None:
    before = picture(state)
    with pytest.raises(RuntimeError), state.trial() as trial:
        operation(trial)
        trial.keep()
        raise RuntimeError
    assert picture(state) == before
    assert state._journal is None


def test_undo_to_a_savepoint(state: ClusterState) -> None:
    with state.trial() as trial:
        trial.add_pod(NEW, "b")
        mark = trial.savepoint()
        trial.remove_pod(THERE.uid)
        assert taken(state) == {"a": 100, "b": 2000}
        trial.undo_to(mark)
        assert taken(state) == {"a": 1100, "b": 2000}
        trial.undo_to(mark)
        trial.keep()
    assert taken(state) == {"a": 1100, "b": 2000}


@pytest.mark.parametrize(
    ("inner_kept", "outer_kept", "expected"),
    [
        pytest.param(True, True, {"a": 100, "b": 2000}, id="both kept"),
        pytest.param(False, True, {"a": 1100, "b": 2000}, id="the inner one undone"),
        pytest.param(True, False, {"a": 1100, "b": 0}, id="the outer one undone takes the inner one with it"),
        pytest.param(False, False, {"a": 1100, "b": 0}, id="both undone"),
    ],
)
def test_trials_nest(state: ClusterState, inner_kept: bool, outer_kept: bool, expected: dict[str, int]) -> None:
    def leave(trial: Trial, kept: bool) -> None:
        if kept:
            trial.keep()

    with state.trial() as outer:
        outer.add_pod(NEW, "b")
        with state.trial() as inner:
            inner.remove_pod(THERE.uid)
            leave(inner, inner_kept)
        leave(outer, outer_kept)
    assert taken(state) == expected


def test_changes_outside_a_trial_are_not_journaled(state: ClusterState) -> None:
    state.apply(Put(a_pod("later", node="b")))
    assert state._journal is None


def test_held_room_takes_resources_but_is_no_pod(state: ClusterState) -> None:
    nodes = Cluster(state).nodes
    assert (nodes.requested["cpu"].tolist(), nodes.requested["pods"].tolist()) == ([1100, 0], [1, 0])


def test_objects_keep_their_order_when_a_trial_is_undone() -> None:
    state = a_state(others=[a_namespace("one"), a_namespace("two")])
    with state.trial() as trial:
        trial.assume(a_namespace("one", team="red"))
    assert list(state.store.every(Namespace)) == ["one", "two"]


def test_pods_keep_their_order_after_a_trial_without_some_of_them() -> None:
    """Those on a node that is deleted, too."""
    nodes = [a_node("n0"), a_node("n1"), a_node("n2")]
    state = a_state(nodes=nodes, pods=[a_pod(f"p{number}", node=f"n{number % 3}") for number in range(9)])
    state.apply(Gone(nodes[1]))
    state.apply(Gone(nodes[2]))
    uids = list(state.pods)
    on_nodes = [list(pods) for pods in state.pods_on]
    leaving = [uid for at, uid in enumerate(uids) if at in (0, 1, 2, 4, 5, 6, 7, 8)]
    with without_pods(state, leaving):
        assert list(state.pods) == [uids[3]]
    assert list(state.pods) == uids and [list(pods) for pods in state.pods_on] == on_nodes
