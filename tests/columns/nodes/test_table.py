"""Rows, columns and the values of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.columns.nodes.table import ABSENT, LiveNames
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.objects.changes import Gone, Put
from stowplan.testing.builders import a_node, a_pod, a_state


def test_a_row_is_stable_while_the_node_is_there_and_reused_afterwards() -> None:
    state = a_state(nodes=["a", "b"])
    rows = dict(state.table.row_of)
    state.apply(Put(a_node("a", cpu="16")))
    assert state.table.row_of == rows
    state.apply(Gone(a_node("a")))
    state.apply(Put(a_node("c")))
    assert state.table.row_of == {"b": rows["b"], "c": rows["a"]}


def test_pods_may_name_a_node_that_does_not_exist_yet() -> None:
    state = a_state(nodes=["a"], pods=[a_pod("early", node="late", cpu=2)])
    assert Cluster(state).nodes.names == ["a"]
    state.apply(Put(a_node("late", cpu="4")))
    late = next(node for node in Cluster(state).nodes if node.name == "late")
    assert (late.free("cpu"), [pod.name for pod in late.pods]) == (2000, ["early"])


def test_a_node_that_is_deleted_and_created_again_has_its_pods() -> None:
    pod = a_pod("p", node="a", cpu=1)
    state = a_state(nodes=["a"], pods=[pod])
    state.apply(Gone(a_node("a")))
    assert len(Cluster(state).nodes) == 0
    state.apply(Put(a_node("a", cpu="3")))
    assert Cluster(state).nodes.free["cpu"].tolist() == [2000]
    state.apply(Gone(a_node("a")))
    state.apply(Gone(pod))
    assert state.table.row_of == {}


def test_held_room_keeps_the_row_of_a_deleted_node() -> None:
    state = a_state(nodes=["a"])
    state.hold("gang", "a", {"cpu": 500})
    state.apply(Gone(a_node("a")))
    state.apply(Put(a_node("b")))
    state.apply(Put(a_node("a")))
    requested = dict(zip(Cluster(state).nodes.names, Cluster(state).nodes.requested["cpu"].tolist(), strict=True))
    assert requested == {"a": 500, "b": 0}
    state.release("gang")
    assert Cluster(state).nodes.requested["cpu"].tolist() == [0, 0]


def test_columns_grow_with_the_nodes() -> None:
    state = a_state(nodes=[a_node(f"n{n}", cpu=n, labels={"zone": str(n % 3)}) for n in range(10)])
    assert Cluster(state).nodes.label("zone").values[:4] == ["0", "1", "2", "0"]
    for n in range(10, 100):
        state.apply(Put(a_node(f"n{n}", cpu=n, labels={"zone": str(n % 3)})))
    nodes = Cluster(state).nodes
    assert nodes.allocatable["cpu"].tolist() == [1000 * n for n in range(100)]
    assert nodes.label("zone").values == [str(n % 3) for n in range(100)]


def test_a_new_resource_is_a_new_column_of_zeros() -> None:
    taken = a_pod(node="b", requests={"example.com/fpga": 1})
    state = a_state(nodes=["a", a_node("b", resources={"example.com/gpu": 2})], pods=[taken])
    nodes = Cluster(state).nodes
    assert nodes.allocatable["example.com/gpu"].tolist() == [0, 2]
    assert nodes.requested["example.com/fpga"].tolist() == [0, 1]
    assert nodes.allocatable["example.com/unheard-of"].tolist() == [0, 0]


def test_a_resource_that_is_not_counted_has_no_column() -> None:
    state = a_state(nodes=[a_node("a", resources={"not-counted": 5})])
    assert "not-counted" not in Cluster(state).nodes.allocatable


def test_a_label_column_is_kept_up_to_date() -> None:
    state = a_state(nodes=[a_node("a", labels={"zone": "x"}), a_node("b")])
    column = state.table.label("zone")
    state.apply(Put(a_node("a", labels={"zone": "y"})))
    state.apply(Put(a_node("b", labels={"zone": "y"})))
    assert Cluster(state).nodes.label("zone").values == ["y", "y"]
    assert set(column.values.codes) == {None, "y"}
    state.apply(Put(a_node("a")))
    assert column.codes[state.table.row_of["a"]] == ABSENT


def test_an_empty_label_is_not_a_missing_one() -> None:
    nodes = Cluster(a_state(nodes=[a_node("a", labels={"zone": ""}), a_node("b")])).nodes
    assert nodes.label("zone").present.tolist() == [True, False]


def test_the_first_node_with_an_image_sets_its_size() -> None:
    state = a_state(nodes=[a_node("a", images={"web": 100}), a_node("b", images={"web": 900})])
    assert state.table.images["web"].size == 100
    state.apply(Gone(a_node("a")))
    assert (state.table.images["web"].size, len(state.table.images["web"].rows)) == (100, 1)
    state.apply(Gone(a_node("b")))
    assert state.table.images == {}


def test_every_change_of_a_row_gives_it_a_newer_version() -> None:
    state = a_state(nodes=["a", "b"])
    row, other = state.table.row_of["a"], state.table.row_of["b"]
    pod = a_pod("p", node="a")
    untouched = int(state.table.version[other])
    annotated = Put(a_node("a", annotations={"mode": "whole"}))
    for change in (Put(pod), annotated, Put(a_node("a", cpu="8")), Gone(pod), Gone(a_node("a")), Put(a_node("a"))):
        before = int(state.table.version[row])
        state.apply(change)
        assert int(state.table.version[row]) > before
    assert int(state.table.version[other]) == untouched


@pytest.mark.parametrize("few", [0, 3, 1000])
def test_the_rows_that_changed_since_a_moment(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """However they are found: by the list of the latest changes, or by all versions."""
    monkeypatch.setattr("stowplan.columns.nodes.table.FEW_CHANGES", few)
    monkeypatch.setattr("stowplan.columns.nodes.table.MOST_CHANGES", 8)
    state = a_state(nodes=["a", "b", "c", "d"])
    moments: list[tuple[int, set[int]]] = []
    for number, name in enumerate("abacadab" * 3):
        row, now = state.table.row_of[name], state.table.clock
        moments = [(then, rows | {row}) for then, rows in (*moments, (now, set()))]
        state.apply(Put(a_pod(f"p{number}", node=name)))
        for then, rows in moments:
            assert state.table.changed_since(then).tolist() == sorted(rows)
    before = state.table.clock
    state.apply(Gone(a_node("a")))
    assert state.table.changed_since(before).tolist() == [], "it is live no more"


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param({"annotations": {"x": "y"}}, False, id="an annotation"),
        pytest.param({"status": {"startTime": "2026-01-01T00:00:00Z"}}, False, id="when it started"),
        pytest.param({"labels": {"app": "y"}}, True, id="a label"),
        pytest.param({"cpu": 2}, True, id="a request"),
        pytest.param({"priority": 5}, True, id="the priority"),
        pytest.param({"terminating": True}, True, id="terminating"),
        pytest.param({"phase": "Succeeded"}, True, id="ended"),
        pytest.param({"node": "b"}, True, id="another node"),
    ],
)
def test_a_pod_that_changes_no_column_leaves_its_row_as_it_is(change: dict[str, Any], counts: bool) -> None:
    pod: dict[str, Any] = {"node": "a", "labels": {"app": "x"}, "cpu": 1}
    state = a_state(nodes=["a", "b"], pods=[a_pod("p", **pod)])
    before, changed = state.table.clock, a_pod("p", **(pod | change))
    state.apply(Put(changed))
    assert (state.table.clock > before) == counts
    if not counts:
        assert Cluster(state).pods_on("a") == [changed]


def test_gapless_is_true_if_every_row_is_live() -> None:
    state = a_state(nodes=["a", "b"])
    before = state.table.gapless
    state.apply(Put(a_pod(node="elsewhere")))
    assert (before, state.table.gapless) == (True, False)
    assert np.array_equal(state.table.live_rows(), [0, 1])


def test_an_unknown_node_may_be_deleted() -> None:
    state = ClusterState()
    state.apply(Gone(a_node("never-seen")))
    assert state.table.row_of == {} and len(Cluster(state).nodes) == 0


def test_where_a_name_is_in_the_list_of_live_names() -> None:
    state = a_state(nodes=["a", "b", "c"])
    state.apply(Gone(a_node("b")))
    names = LiveNames(state.table)
    for _ in range(2):  # as rows, and as texts that were copied
        assert [names.position(name) for name in "abcd"] == [0, None, 1, None]
        names.copy()
