"""The policy for one node at a time and its array form decide the same."""

from __future__ import annotations

from stowplan.testing import World, a_node, a_pod, a_profile, a_state, check_plugin, refused, scored
from tests.examples.loading import EXAMPLES, loaded

FOLDER = EXAMPLES / "02-per-node"
STATE = a_state(nodes=[a_node("small", cpu=1), a_node("large", cpu=8)], pods=[a_pod("there", node="large", cpu=2)])


def test_both_forms_keep_the_contract_and_agree() -> None:
    roomy, arrays = loaded(FOLDER / "roomy.py").Roomy(), loaded(FOLDER / "roomy_arrays.py").RoomyArrays()
    heavy = a_pod("heavy", labels={"heavy": "true"})
    assert check_plugin(roomy, pods=[heavy]) == []
    assert check_plugin(arrays, twin=roomy, pods=[heavy]) == []
    for plugin in (roomy, arrays):
        assert refused(plugin, heavy, STATE) == {"small": ("node(s) had less than two free cores",)}
        assert (scored(plugin, heavy, STATE) or {})["large"] == 75


def test_a_heavy_pod_gets_the_emptiest_node() -> None:
    world = World(nodes=["a", "b"], profiles={"roomy": a_profile(FOLDER / "config.yaml")})
    world.submit(a_pod("there", node="a", cpu=2), a_pod("new", labels={"heavy": "true"}, schedulerName="roomy"))
    world.run()
    assert world.bindings["new"] == "b"
