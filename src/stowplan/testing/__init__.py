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

A world has kube-scheduler's default profile. `World(profiles={"default-scheduler": a_profile(config)})` has another
one, where `config` is a KubeSchedulerConfiguration as a user writes it; `a_profile_of(MyPlugin())` is a profile of the
plugin alone. For one decision no world is needed: `filtered`, `refused` and `scored` call a plugin for a pod and an
`a_state(…)`.
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
