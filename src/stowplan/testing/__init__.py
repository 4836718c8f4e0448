"""Tests of scheduling policies, without a cluster: a `World` has an API server, a scheduler and a clock of its own.

    from stowplan.testing import World, a_node, a_pod, check_plugin

    def test_a_large_pod_waits_until_there_is_room():
        world = World(nodes=[a_node("small", cpu=2)])
        world.submit(a_pod("web", cpu=3))
        world.run()
        assert world.bindings == {}
        assert "Insufficient cpu" in world.explain("web").message

        world.submit(a_node("large", cpu=4))
        world.advance(10)
        assert world.bindings == {"web": "large"}

    def test_my_plugin_keeps_the_contract_of_plugins():
        assert check_plugin(MyPlugin()) == []

A policy is tried with `World(profiles={"default-scheduler": a_profile(config)})`, where `config` is the configuration
that a user would write, or `a_profile_of(MyPlugin())` for the plugin alone. A question about one decision needs no
world: `filtered`, `refused` and `scored` ask a plugin about an `a_state(…)`.
"""

from stowplan.framework.plugin_checks import check_plugin
from stowplan.testing.builders import (
    a_budget,
    a_cluster,
    a_namespace,
    a_node,
    a_pod,
    a_profile,
    a_profile_of,
    a_replica_set,
    a_service,
    a_state,
    from_yaml,
    rejections,
    scores,
)
from stowplan.testing.journal import replayed
from stowplan.testing.plugin_questions import filtered, refused, scored
from stowplan.testing.world import World

__all__ = [
    "World",
    "a_budget",
    "a_cluster",
    "a_namespace",
    "a_node",
    "a_pod",
    "a_profile",
    "a_profile_of",
    "a_replica_set",
    "a_service",
    "a_state",
    "check_plugin",
    "filtered",
    "from_yaml",
    "refused",
    "rejections",
    "replayed",
    "scored",
    "scores",
]
