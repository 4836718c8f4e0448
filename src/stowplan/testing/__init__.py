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
`a_state(…)`. `an_object(Kind, name, spec={…})` makes objects of kinds that a plugin brings.

For what a world leaves out (manifests, definitions, controllers, the configuration file, kubectl) there is
`EmbeddedCluster`: the cluster of `stowplan up` and the scheduler of `stowplan run`, in the process of the test. The
fixture `embedded_cluster` gives a test one; pytest finds it once Stowplan is installed.

What is in `__all__` is kept; see docs/stability.md. Everything else here is for Stowplan's own tests.
"""

from typing import TYPE_CHECKING, Any

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
)
from stowplan.testing.own_kinds import an_object
from stowplan.testing.plugin_questions import filtered, refused, scored
from stowplan.testing.world import World

if TYPE_CHECKING:
    from stowplan.testing.embedded_cluster import EmbeddedCluster

__all__ = [
    "EmbeddedCluster",
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
    "an_object",
    "check_plugin",
    "filtered",
    "from_yaml",
    "refused",
    "scored",
]


def __getattr__(name: str) -> Any:
    """Import the embedded cluster when it is needed: its HTTP server takes longer to import than all the rest."""
    if name == "EmbeddedCluster":
        from stowplan.testing.embedded_cluster import EmbeddedCluster

        return EmbeddedCluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
