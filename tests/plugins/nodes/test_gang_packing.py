"""GangPacking: which nodes the pods of a group prefer, and that a gang ends on few nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from stowplan.apps import profile_loader
from stowplan.columns.nodes.views import Cluster
from stowplan.framework.profile import Profile
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.gang_packing import GangPacking
from stowplan.testing.builders import a_node, a_pod, a_state
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import GROUP, a_kubernetes_group, a_pod_group, gang, member

CONFIG = Path(__file__).parents[3] / "deploy" / "profiles" / "bin-packing" / "config.yaml"
SCHEDULER = "bin-packing-scheduler"


def scores(pod: Pod, nodes: list[Node], pods: list[Pod], *groups: Any) -> dict[str, int] | None:
    state = a_state(nodes=nodes, pods=pods, others=list(groups))
    state.known_pods = {each.uid: each for each in pods}
    plugin, cluster = GangPacking(), Cluster(state)
    assert not list(plugin.reconcile(None, cluster))
    found = plugin.score(pod, cluster.nodes)
    return None if found is None else dict(zip(cluster.nodes.names, found.tolist(), strict=True))


NODES = [a_node("a", cpu=8), a_node("b", cpu=8), a_node("c", cpu=8)]
FULL = [a_pod("x", cpu=7, node="a"), a_pod("y", cpu=3, node="b")]


def test_a_node_is_worth_the_pods_of_the_group_that_fit() -> None:
    (pod, *_) = gang("g", 4)
    assert scores(pod, NODES, FULL) == {"a": 99 // 4, "b": 99, "c": 99}


def test_the_others_follow_the_first() -> None:
    first, second, *_ = gang("g", 4)
    there = msgspec.structs.replace(first, spec=msgspec.structs.replace(first.spec, node_name="b"))
    assert scores(second, NODES, [*FULL, there]) == {"a": 99 // 4, "b": 100, "c": 99 * 3 // 4}


def test_a_group_that_is_too_large_for_a_node_starts_where_most_of_it_fits() -> None:
    (pod, *_) = gang("g", 20)
    assert scores(pod, NODES, FULL) == {"a": 99 // 8, "b": 99 * 5 // 8, "c": 99}


@pytest.mark.parametrize(
    ("pod", "group"),
    [
        pytest.param(member("p", {GROUP: "g"}), a_pod_group("g", 4), id="a PodGroup of scheduling.x-k8s.io"),
        pytest.param(
            a_pod("p", cpu=1, schedulingGroup={"podGroupName": "g"}), a_kubernetes_group("g", 4), id="Kubernetes' own"
        ),
    ],
)
def test_groups_with_an_object(pod: Pod, group: Any) -> None:
    assert scores(pod, NODES, FULL, group) == {"a": 99 // 4, "b": 99, "c": 99}


def test_pods_without_a_group_get_no_score() -> None:
    assert scores(a_pod("p", cpu=1), NODES, FULL) is None


def test_pods_come_and_go() -> None:
    """Also in trials, which are undone, and after pods are deleted."""
    plugin, state = GangPacking(), a_state(nodes=NODES)
    first, *rest = gang("g", 3)
    cluster = Cluster(state)
    plugin.reserve(first, "a", cluster)
    plugin.reserve(rest[0], "a", cluster)
    plugin.unreserve(rest[0], "a", cluster)
    assert plugin._on == {"default/g": {"a": 1}}
    plugin.reconcile([first], cluster)  # the state has no such pod
    assert plugin._on == {} and plugin._node_of == {}


# -- the profile


def a_world(nodes: list[Node]) -> World:
    _, profiles = profile_loader.read_configuration(CONFIG)
    return World(nodes=nodes, profiles=profiles)


def ours(*pods: Pod) -> list[Pod]:
    return [
        msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduler_name=SCHEDULER)) for pod in pods
    ]


def test_single_pods_fill_one_node_after_the_other() -> None:
    world = a_world([a_node(f"n{at}", cpu=4) for at in range(4)])
    for at in range(8):
        world.submit(*ours(a_pod(f"p{at}", cpu=1, memory="1Gi")))
        world.run()
    assert len(world.bindings) == 8 and len(set(world.bindings.values())) == 2


def test_a_gang_is_kept_together_though_fuller_nodes_could_take_a_part_of_it() -> None:
    """Without GangPacking its pods would fill the gaps of eight nodes."""
    gaps = [a_pod(f"x{at}", cpu=7, memory="1Gi", node=f"gap-{at}") for at in range(8)]
    large = a_node("roomy", cpu=16, memory="64Gi"), a_node("empty", cpu=64, memory="256Gi")
    world = a_world([*(a_node(f"gap-{at}", cpu=8) for at in range(8)), *large])
    world.submit(*gaps, a_pod("y", cpu=8, memory="1Gi", node="roomy"))
    world.submit(*ours(*gang("g", 8, cpu=1, memory="1Gi")))
    world.run()
    assert {node for name, node in world.bindings.items() if name.startswith("g-")} == {"roomy"}


def test_a_large_gang_uses_as_few_nodes_as_it_needs() -> None:
    world = a_world([a_node(f"n{at}", cpu=8) for at in range(6)])
    world.submit(*ours(*gang("g", 20, cpu=1, memory="1Gi")))
    world.run()
    assert len(world.bindings) == 20 and len(set(world.bindings.values())) == 3


def test_a_member_that_is_replaced_comes_back_to_the_others() -> None:
    world = a_world([a_node(f"n{at}", cpu=8) for at in range(3)])
    pods = ours(*gang("g", 4, cpu=1, memory="1Gi"))
    world.submit(*pods)
    world.run()
    (home,) = set(world.bindings.values())
    world.restart()
    world.submit(a_pod("z", cpu=4, memory="8Gi", node="n0" if home != "n0" else "n1"))
    world.delete(world.pod("g-0"))
    world.submit(*ours(*gang("g", 1, 4, first=9, cpu=1, memory="1Gi")))
    world.advance(15)
    assert world.pod("g-9").node_name == home


def test_profiles_share_what_is_known_of_groups(tmp_path: Path) -> None:
    """Only one instance is told which pods are gone; after a reload, that one alone knows which pods are there."""
    document = yaml.safe_load(CONFIG.read_text())
    (profile,) = document["profiles"]
    document["profiles"] = [profile, {**profile, "schedulerName": "second"}]
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(document))

    def loaded() -> tuple[dict[str, Profile], list[GangPacking]]:
        profiles = profile_loader.read_configuration(file)[1]
        found = [each.plugin for profile in profiles.values() for each in profile.all if each.name == "GangPacking"]
        return profiles, found

    profiles, _ = loaded()
    world = World(nodes=[a_node("a", cpu=64), a_node("b", cpu=64)], profiles=profiles)
    gangs = {name: [_for(name, pod) for pod in gang(f"g-{name}", 3)] for name in (SCHEDULER, "second")}
    for pods in gangs.values():
        world.submit(*pods)
    world.advance(5)
    profiles, after_reload = loaded()
    world.adopt(profiles)
    world.advance(5)
    for plugin in after_reload:
        assert plugin._on.keys() == {f"default/g-{name}" for name in gangs}
    for pods in gangs.values():
        world.delete(*pods)
    world.advance(5)
    for plugin in after_reload:
        assert not plugin._on and not plugin._node_of


def _for(scheduler: str, pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduler_name=scheduler))
