"""Percentages in a WorkloadPolicy: of all its pods that exist, however many that are."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stowplan.framework.decision import RejectPod
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.workload_policy.plugin import WorkloadPolicyPlugin
from stowplan.testing.builders import a_cluster, a_state
from stowplan.testing.plugin_questions import filtered
from stowplan.testing.world import World
from tests.plugins.nodes.workload_policy.policies import a_member, a_policy, placed, zoned
from tests.plugins.nodes.workload_policy.test_over_time import in_zones, profiles

SHARES = {"a": "37.5%", "b": "62.5%"}
NODES = zoned("a1", "a2", "b1", "b2", "b3")
KINDS = [
    pytest.param({"allocationType": type_, "allocationMethod": method}, id=f"{type_}, {method}")
    for type_ in ("Required", "Preferred")
    for method in ("Balance", "Fill")
]


def members(count: int, start: int = 0, **keywords: Any) -> list[Pod]:
    return [a_member(f"pod-{number}", **keywords) for number in range(start, start + count)]


@pytest.mark.parametrize("spec", KINDS)
def test_the_ratio_holds_at_every_size(spec: dict[str, Any]) -> None:
    """Pods come a few at a time, as an autoscaler has it."""
    world = World(nodes=NODES, profiles=profiles())
    world.submit(a_policy(SHARES, **spec))
    for size, expected in ((1, (0, 1)), (2, (1, 1)), (8, (3, 5)), (16, (6, 10)), (24, (9, 15))):
        world.submit(*members(size - len(world.pods()), len(world.pods())))
        world.run()
        assert (in_zones(world)["a"], in_zones(world)["b"]) == expected


@pytest.mark.parametrize("spec", KINDS)
def test_a_burst_is_not_counted_twice(spec: dict[str, Any]) -> None:
    """While bindings are under way the pods have a node in our eyes, and none in the API server's."""
    world = World(nodes=NODES, profiles=profiles())
    world.answers = lambda _: None
    world.submit(a_policy(SHARES, **spec), *members(16))
    world.run()
    assumed = Counter(each.node_name[0] for each in world.scheduler.assumed_pods.values())
    assert assumed == {"a": 6, "b": 10}


def test_what_was_lost_on_one_side_comes_back_there() -> None:
    world = World(nodes=NODES, profiles=profiles())
    world.submit(a_policy(SHARES, allocationType="Required"), *members(8))
    world.run()
    world.delete(*[pod for pod in world.pods() if pod.node_name[0] == "a"])
    world.submit(*members(3, 8))
    world.run()
    assert in_zones(world) == {"a": 3, "b": 5}


def test_less_than_all_leaves_the_rest_without_a_place() -> None:
    world = World(nodes=NODES, profiles=profiles())
    world.submit(a_policy({"a": "25%", "b": "25%"}, allocationType="Required"), *members(8))
    world.run()
    assert in_zones(world) == {"a": 2, "b": 2}
    (message,) = {world.explain(pod.name).full_message for pod in world.pods() if not pod.node_name}
    assert message.startswith(
        "0/5 nodes are available: 5 node(s) were in domains that WorkloadPolicy policy has filled"
    )
    assert "WorkloadPolicy policy: a 2/2, b 2/2" in message


def test_each_revision_has_its_own_whole() -> None:
    """With matchLabelKeys, percentages are of the pods of one revision."""
    world = World(nodes=NODES, profiles=profiles())
    world.submit(a_policy(SHARES, allocationType="Required", matchLabelKeys=["hash"]))
    for revision in ("1", "2"):
        pods = [a_member(f"r{revision}-{number}", labels={"hash": revision}) for number in range(8)]
        world.submit(*pods)
        world.run()
        assert in_zones(world, f"r{revision}") == {"a": 3, "b": 5}


def test_a_pod_that_is_not_in_the_cluster_counts_too() -> None:
    """A manifest that is explained, say: it would be the first."""
    state = a_state(nodes=NODES, others=[a_policy(SHARES, allocationType="Required")])
    found = filtered(WorkloadPolicyPlugin(), a_member(), state)
    assert {name for name, verdict in found.items() if verdict is None} == {"b1", "b2", "b3"}


def test_a_domain_without_a_place_yet_comes_before_those_not_listed() -> None:
    """Preferred, one pod: zone a has no place, zone b has no room, zone c is not listed."""
    world = World(nodes=[*zoned("c1", "a1"), *zoned("b1", cpu=0)], profiles=profiles())
    world.submit(a_policy({"a": "10%", "b": "90%"}), a_member("first", cpu=1))
    world.run()
    assert world.bindings == {"first": "a1"}


def test_the_plugin_never_skips_a_required_share() -> None:
    """An eviction elsewhere takes a place away, so what is open now may be full in a trial."""
    cluster = a_cluster(nodes=NODES, pods=placed("b1"), others=[a_policy(SHARES, allocationType="Required")])
    plugin = WorkloadPolicyPlugin()
    assert plugin.pre_filter(a_member(), cluster) is None
    assert not isinstance(plugin._found(a_member(), cluster), RejectPod)


def test_the_status_has_the_numbers_of_now() -> None:
    world = World(nodes=NODES, profiles=profiles())
    world.submit(a_policy(SHARES, allocationType="Required"), *members(8))
    world.advance(5)
    policy: Any = world.objects["WorkloadPolicy", "default/policy"]
    assert [(each.name, each.desired, each.current) for each in policy.status.domains] == [("a", 3, 3), ("b", 5, 5)]
    world.submit(*members(8, 8))
    world.advance(5)
    policy = world.objects["WorkloadPolicy", "default/policy"]
    assert [(each.name, each.desired, each.current) for each in policy.status.domains] == [("a", 6, 6), ("b", 10, 10)]
    assert (policy.status.desired, policy.status.pending, policy.status.elsewhere) == (16, 0, 0)
