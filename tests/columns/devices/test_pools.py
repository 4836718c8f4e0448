"""Which pools a node sees, in which order, and which of them can be used."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.devices.pools import NodeDevices
from stowplan.columns.state import ClusterState
from stowplan.objects.changes import Gone, Put
from stowplan.objects.resource_slices import ResourceSlice
from stowplan.testing.builders import a_node
from tests.columns.devices.slices_of import a_slice

ZONE = "topology.kubernetes.io/zone"
IN_ZONE_A = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]}
SET: dict[str, Any] = {"name": "set", "counters": {"memory": {"value": "40Gi"}}}


def consuming(name: str, counter_set: str = "set", counter: str = "memory") -> dict[str, Any]:
    return {"name": name, "consumesCounters": [{"counterSet": counter_set, "counters": {counter: {"value": "10Gi"}}}]}


def a_state(*slices: ResourceSlice) -> ClusterState:
    state = ClusterState()
    for each in slices:
        state.apply(Put(each))
    return state


def seen(state: ClusterState, name: str = "node", **labels: str) -> NodeDevices:
    state.devices.catch_up()
    return state.devices.of(a_node(name, labels=labels))


def names(found: NodeDevices) -> list[str]:
    return [pooled.device.name for pooled in found.devices]


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        pytest.param([a_slice("s", "a", "b")], ["a", "b"], id="a pool for all nodes"),
        pytest.param([a_slice("s", "a", nodeName="node")], ["a"], id="a pool of the node"),
        pytest.param([a_slice("s", "a", nodeName="other")], [], id="a pool of another node"),
        pytest.param([a_slice("s", "a", nodeSelector=IN_ZONE_A)], [], id="a selector that does not match"),
        pytest.param(
            [a_slice("2", "c", number=2), a_slice("1", "b", "a", number=2)],
            ["b", "a", "c"],
            id="slices by name, devices as listed",
        ),
        pytest.param(
            [a_slice("s", "b", pool="b"), a_slice("t", "a", pool="a"), a_slice("u", "c", driver="a.example.com")],
            ["c", "a", "b"],
            id="pools by driver and name",
        ),
        pytest.param(
            [a_slice("s", {"name": "late", "bindingConditions": ["x/y"]}, pool="a"), a_slice("t", "b", pool="b")],
            ["b", "late"],
            id="pools with devices to prepare come last",
        ),
        pytest.param(
            [a_slice("old", "a"), a_slice("new", "b", generation=2)], ["b"], id="the newest generation counts"
        ),
        pytest.param(
            [a_slice("s", {"name": "a", "nodeName": "node"}, {"name": "b"}, perDeviceNodeSelection=True)],
            ["a", "b"],
            id="a slice that selects by device counts as a whole",
        ),
    ],
)
def test_the_devices_of_a_node(slices: list[ResourceSlice], expected: list[str]) -> None:
    assert names(seen(a_state(*slices))) == expected


def test_a_selector_matches_by_label() -> None:
    state = a_state(a_slice("s", "a", nodeSelector=IN_ZONE_A))
    assert names(seen(state, **{ZONE: "a"})) == ["a"]
    assert names(seen(state, **{ZONE: "b"})) == []


@pytest.mark.parametrize(
    ("slices", "incomplete", "invalid"),
    [
        pytest.param([a_slice("s", "a", number=2)], True, False, id="a slice is missing"),
        pytest.param([a_slice("s", "a", "a")], False, True, id="a name twice"),
        pytest.param([a_slice("s", consuming("a"))], False, True, id="counters that nobody defines"),
        pytest.param(
            [a_slice("s", consuming("a", counter="cores"), number=2), a_slice("t", sharedCounters=[SET], number=2)],
            False,
            True,
            id="a counter that its set does not have",
        ),
        pytest.param([a_slice("s", sharedCounters=[SET, SET])], False, True, id="a counter set twice"),
    ],
)
def test_a_pool_that_cannot_be_used(slices: list[ResourceSlice], incomplete: bool, invalid: bool) -> None:
    found = seen(a_state(*slices))
    (pool,) = found.pools
    assert (pool.incomplete, pool.invalid) == (incomplete, invalid)
    assert found.broken is pool
    assert found.devices == ()


def test_a_pool_is_complete_with_slices_that_are_for_other_nodes() -> None:
    here, there = a_slice("s", "a", nodeName="node", number=2), a_slice("t", "b", nodeName="other", number=2)
    assert names(seen(a_state(here, there))) == ["a"]


def test_a_pool_is_ignored_while_a_newer_generation_is_for_other_nodes() -> None:
    here = a_slice("s", "a", nodeName="node", number=2)
    there = a_slice("t", "b", nodeName="other", generation=2, number=2)
    assert seen(a_state(here, there)).pools == []


def test_counters_make_a_pool_visible_to_every_node() -> None:
    broken = [a_slice("s", consuming("a", "nowhere"), nodeName="other", number=2)]
    broken.append(a_slice("t", nodeName="other", sharedCounters=[SET], number=2))
    found = seen(a_state(*broken))
    assert found.any_invalid
    assert found.devices == ()


def test_only_nodes_whose_devices_changed_are_in_the_log() -> None:
    state = a_state(a_slice("s", "a", nodeName="one", pool="one"), a_slice("t", "a", nodeName="two", pool="two"))
    devices = state.devices
    devices.catch_up()
    place = devices.end
    state.apply(Put(a_slice("s", "a", "b", nodeName="one", pool="one")))
    devices.catch_up()
    assert devices.changed_since(place) == {"one"}
    place = devices.end
    state.apply(Gone(a_slice("t", "a", nodeName="two", pool="two")))
    devices.catch_up()
    assert devices.changed_since(place) == {"two"}
    state.apply(Put(a_slice("u", "a", pool="network")))
    devices.catch_up()
    assert devices.changed_since(place) is None  # all nodes see it


def test_a_trial_leaves_nothing_behind() -> None:
    state = a_state(a_slice("s", "a"))
    with state.trial():
        state.apply(Put(a_slice("t", "b", pool="more")))
        assert names(seen(state)) == ["b", "a"]
    assert names(seen(state)) == ["a"]
