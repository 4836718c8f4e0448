"""The map of the nodes: its order, its colours, its legend."""

from __future__ import annotations

import re

import pytest

from stowplan.apps.ui.node_map import NOTHING, NodeMaps, level, svg
from stowplan.testing import a_node, a_pod, a_state


def a_map(by: str) -> tuple[dict[str, str], list[str]]:
    """Return what each node says, and the legend."""
    zones = {"topology.kubernetes.io/zone": "a"}
    nodes = [a_node("node-10", cpu=4, labels=zones), a_node("node-2", cpu=4), a_node("node-1", cpu=4)]
    pods = [a_pod("p", cpu=4, node="node-10"), a_pod("q", cpu=1, node="node-2")]
    found = NodeMaps().of(a_state(nodes=nodes, pods=pods), by)
    return {name: found.says(at) for at, name in enumerate(found.names)}, [name for name, _ in found.keys]


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    said, legend = a_map("cpu")
    assert list(said.items()) == [("node-1", "0%"), ("node-2", "25%"), ("node-10", "100%")]
    assert legend == ["empty", "up to 25%", "up to 50%", "up to 75%", "up to 99%", "full"]


def test_zones_have_colours_and_nodes_without_one_have_none() -> None:
    said, legend = a_map("zone")
    assert said == {"node-1": "no zone", "node-2": "no zone", "node-10": "a"} and legend == ["a", "no zone"]


def test_what_is_not_known_is_shown_by_the_fullest_resource() -> None:
    assert a_map("nonsense")[0]["node-10"] == "100%"


@pytest.mark.parametrize(("percent", "colour"), [(0, 0), (1, 1), (25, 1), (26, 2), (75, 3), (76, 4), (99, 4), (100, 5)])
def test_levels_are_those_of_the_legend(percent: int, colour: int) -> None:
    assert level(percent) == colour


def test_many_zones_share_the_last_colour() -> None:
    nodes = [a_node(f"n{at}", labels={"topology.kubernetes.io/zone": f"z{at:02}"}) for at in range(30)]
    found = NodeMaps().of(a_state(nodes=nodes), "zone")
    assert len(found.keys) == 8 and found.keys[-1][0] == "others" and max(found.values) == 7


def test_the_picture_has_a_square_for_each_node() -> None:
    nodes = [a_node(f"n{at}", cpu=4) for at in range(7)]
    found = NodeMaps().of(a_state(nodes=nodes, pods=[a_pod("p", cpu=4, node="n3")]), "cpu")
    paths = re.findall(r'<path d="([^"]+)" class="([^"]+)">', str(svg(found)))
    assert {style: path.count("M") for path, style in paths} == {"h0": 6, "h5": 1}
    assert NOTHING not in found.values


def test_an_empty_cluster_has_an_empty_map() -> None:
    found = NodeMaps().of(a_state(), "fullest")
    assert (found.names, found.values) == ((), b"")
