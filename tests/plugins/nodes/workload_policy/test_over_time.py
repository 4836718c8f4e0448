"""WorkloadPolicy over time: the seed's example, who is woken by what, who is evicted for whom, updates that roll."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.actions import Evict
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.workload_policies import WorkloadPolicy
from stowplan.testing.builders import a_node, a_pod, a_profile
from stowplan.testing.world import World
from tests.plugins.nodes.workload_policy.policies import a_member, a_policy, an_owner, placed, reference, zoned

SEED = Path(__file__).parents[3] / "seeds" / "workload_policy"
CONFIG = Path(__file__).parents[4] / "deploy" / "profiles" / "kosmos-scheduler" / "config.yaml"
REQUIRED: dict[str, Any] = {"allocationType": "Required"}


def profiles(**profile: Any) -> dict[str, Profile]:
    """The profile that we ship, for pods that name no scheduler."""
    document = yaml.safe_load(CONFIG.read_text())
    document["profiles"][0] |= {"schedulerName": "default-scheduler", **profile}
    return {"default-scheduler": a_profile(document)}


def a_world(*nodes: Node, **options: Any) -> World:
    return World(nodes=nodes, profiles=profiles(), **options)


def in_zones(world: World, prefix: str = "") -> Counter[str]:
    """Bound pods by zone; of nodes without one under "-"."""
    return Counter(node[0] for name, node in world.bindings.items() if name.startswith(prefix))


# -- the seed's example


def seeds(file: str) -> Any:
    return yaml.safe_load((SEED / file).read_text())


def clusters(member: int, host: int) -> list[Node]:
    names = [f"member-{number}" for number in range(member)] + [f"host-{number}" for number in range(host)]
    return [a_node(name, labels={"workload-test": name[:-2], "kubernetes.io/hostname": name}) for name in names]


def floaters(number: int) -> list[Pod]:
    """Pods as the seed's Deployment makes them, of our scheduler."""
    template = seeds("example-clusterlink-floater-deployment-mix.yaml")["spec"]["template"]
    spec = {**template["spec"], "schedulerName": "default-scheduler"}
    metadata = {"namespace": "workload-test", **template["metadata"]}
    names = [f"floater-{each}" for each in range(number)]
    return [kinds.convert(Pod, {"metadata": {"name": name, "uid": name, **metadata}, "spec": spec}) for name in names]


def running(world: World) -> Counter[str]:
    return Counter(node[:-2] for node in world.bindings.values())


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        pytest.param(
            clusters(2, 4),
            "0/6 nodes are available: 2 node(s) were in domains that WorkloadPolicy workload-policy-test has filled, "
            "4 node(s) didn't match pod anti-affinity rules. WorkloadPolicy workload-policy-test: member 1/1, host 3/3",
            id="nodes to spare",
        ),
        pytest.param(
            clusters(1, 3),
            "0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules. WorkloadPolicy "
            "workload-policy-test: member 1/1, host 3/3",
            id="as many nodes as places: the policy is named all the same",
        ),
    ],
)
def test_required_and_fill(nodes: list[Node], message: str) -> None:
    world = a_world(*nodes)
    world.submit(kinds.convert(WorkloadPolicy, seeds("workloadpolicy.yaml")), *floaters(6))
    world.run()
    assert running(world) == {"member": 1, "host": 3}
    waiting = [pod for pod in world.pods() if not pod.node_name]
    assert len(waiting) == 2
    for pod in waiting:
        (said,) = world.event_notes(pod.name, "FailedScheduling")
        assert said.startswith(message)
        condition = world.pod(pod.name, "workload-test").condition("PodScheduled")
        assert condition is not None and condition.message == said


def test_the_defaults_let_all_of_them_run() -> None:
    document = seeds("workloadpolicy.yaml")
    del document["spec"]["allocationType"], document["spec"]["allocationMethod"]
    world = a_world(*clusters(2, 4))
    world.submit(kinds.convert(WorkloadPolicy, document), *floaters(6))
    world.run()
    assert running(world) == {"member": 2, "host": 4} and len(set(world.bindings.values())) == 6


def test_the_introductions_regions() -> None:
    """Five and three, of eight pods, on nodes that could hold all of them."""
    regions = {name: int(text.split()[0]) for name, text in seeds("introduction.yaml").items()}
    for method in ("Balance", "Fill"):
        nodes = [
            a_node(f"{region}-{number}", labels={"zone": region}, cpu=64) for region in regions for number in range(3)
        ]
        world = a_world(*nodes)
        world.submit(a_policy(regions, allocationMethod=method), *(a_member(f"pod-{each}", cpu=1) for each in range(8)))
        world.run()
        assert Counter(node.rpartition("-")[0] for node in world.bindings.values()) == regions


# -- methods


@pytest.mark.parametrize(
    ("method", "after"),
    [
        pytest.param(
            "Balance", [(1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 4)], id="Balance feeds both in proportion"
        ),
        pytest.param("Fill", [(0, 2), (0, 3), (0, 4), (1, 4), (2, 4), (3, 4)], id="Fill fills one, then the other"),
    ],
)
def test_the_order_in_which_domains_are_filled(method: str, after: list[tuple[int, int]]) -> None:
    world = a_world(*zoned("a1", "a2", "b1", "b2"))
    world.submit(a_policy({"a": 3, "b": 4}, allocationMethod=method))
    seen = []
    for number in range(7):
        world.submit(a_member(f"pod-{number}"))
        world.run()
        seen.append((in_zones(world)["a"], in_zones(world)["b"]))
    assert seen[1:] == after


@pytest.mark.parametrize(
    ("method", "spread"), [pytest.param("Balance", 3, id="spread"), pytest.param("Fill", 1, id="packed")]
)
def test_nodes_within_a_domain(method: str, spread: int) -> None:
    world = a_world(*zoned("a1", "a2", "a3"))
    world.submit(a_policy({"a": 9}, allocationMethod=method), *(a_member(f"pod-{number}") for number in range(3)))
    world.run()
    assert len(set(world.bindings.values())) == spread


def test_overflow_goes_where_it_is_proportionally_least_and_only_then_outside() -> None:
    world = a_world(*zoned("a1", "b1", "-x", cpu=3))
    world.submit(a_policy({"a": 1, "b": 2}), *(a_member(f"pod-{number}", cpu=1) for number in range(7)))
    world.run()
    assert in_zones(world) == {"a": 3, "b": 3, "-": 1}


def test_a_burst_never_exceeds_what_is_required() -> None:
    world = a_world(*zoned("a1", "a2", "b1", "b2"))
    world.submit(a_policy({"a": 7, "b": 4}, **REQUIRED), *(a_member(f"pod-{number}") for number in range(40)))
    world.advance(30)
    assert in_zones(world) == {"a": 7, "b": 4}


# -- what wakes


def test_a_pod_waits_for_its_policy_and_is_tried_at_once() -> None:
    world = a_world(*zoned("a1"))
    world.submit(a_member("pod"))
    world.run()
    assert world.event_notes("pod")[0].startswith("0/1 nodes are available: WorkloadPolicy policy does not exist.")
    world.submit(a_policy({"a": 1}))
    world.run()
    assert world.bindings == {"pod": "a1"}


def test_a_policy_that_is_mended_lets_its_pods_go() -> None:
    world = a_world(*zoned("a1"))
    world.submit(a_policy({"a": 1}, topologyKey=""), a_member("pod"))
    world.run()
    assert "WorkloadPolicy policy is not valid: topologyKey is empty." in world.event_notes("pod")[0]
    world.submit(a_policy({"a": 1}))
    world.run()
    assert world.bindings == {"pod": "a1"}


@pytest.mark.parametrize(
    "then",
    [
        pytest.param(lambda world: world.submit(a_policy({"a": 2}, **REQUIRED)), id="more is desired"),
        pytest.param(lambda world: world.submit(a_policy({"a": 1})), id="it is only preferred"),
        pytest.param(lambda world: world.delete(*placed("a1")), id="a pod leaves"),
        pytest.param(lambda world: world.submit(*placed("a1", terminating=True)), id="a pod begins to leave"),
        pytest.param(lambda world: world.submit(*placed("a1", labels={"app": "y"})), id="a pod is no longer selected"),
        pytest.param(lambda world: world.submit(a_node("a1", labels={"zone": "c"})), id="its node changes its domain"),
    ],
)
def test_a_full_domain_opens(then: Any) -> None:
    world = a_world(*zoned("a1", "a2"))
    world.submit(a_policy({"a": 1}, **REQUIRED), *placed("a1"), a_member("pod"))
    world.run()
    assert "pod" not in world.bindings
    then(world)
    world.advance(11)
    assert world.bindings["pod"] in ("a1", "a2")


def test_nothing_wakes_it_that_does_not_help() -> None:
    world = a_world(*zoned("a1", "a2"))
    world.submit(a_policy({"a": 1}, **REQUIRED), *placed("a1"), a_member("pod"))
    world.advance(30)
    world.submit(a_pod("stranger", namespace="other", node="a2"), a_policy({"a": 1}, name="other", **REQUIRED))
    world.delete(a_pod("stranger", namespace="other", node="a2"))
    world.advance(60)
    assert len(world.event_notes("pod")) == 1


def test_an_owner_that_comes_late() -> None:
    """The Deployment names the policy; the watch of pods was faster than those of their owners."""
    world = a_world(*zoned("a1", "a2", "b1"))
    pods = [a_member(f"pod-{number}", policy="", owner=reference("ReplicaSet", "web-1")) for number in range(3)]
    world.submit(a_policy({"b": 2}, **REQUIRED), *pods)
    world.run()
    assert world.bindings == {}
    world.submit(an_owner("ReplicaSet", "web-1", of=("Deployment", "web")))
    world.run()
    assert world.bindings == {}
    world.submit(an_owner("Deployment", "web", policy="policy"))
    world.run()
    assert in_zones(world) == {"b": 2}


# -- preemption


@pytest.mark.parametrize(
    ("victims", "expected"),
    [
        pytest.param({"priority": 1}, ["p0"], id="a lesser pod of the policy makes a place"),
        pytest.param({"priority": 9}, [], id="an equal one does not"),
        pytest.param({"priority": 1, "labels": {"app": "y"}}, [], id="pods that do not count are left alone"),
    ],
)
def test_preemption(victims: dict[str, Any], expected: list[str]) -> None:
    world = a_world(*zoned("a1", "a2", "c1"))
    lesser = placed("a1", **victims)
    important = [a_member("there", node="a2", priority=100)] if "labels" in victims else []
    world.submit(a_policy({"a": 1}, **REQUIRED), *lesser, *important, a_member("pod", priority=9))
    world.advance(30)
    assert [action.pod.name for action in world.actions if isinstance(action, Evict)] == expected
    assert ("pod" in world.bindings) is bool(expected)


# -- updates that roll


def rolled(policy: WorkloadPolicy) -> World:
    """Four pods of an old revision; then one new pod at a time, and an old one goes once the new one runs."""
    world = a_world(*zoned("m1", "h1", "h2", "h3"))
    old = [a_member(f"old-{at}", labels={"pod-template-hash": "old"}) for at in range(4)]
    world.submit(policy, *old)
    world.advance(10)
    assert in_zones(world) == {"m": 1, "h": 3}
    for at, gone in enumerate(old):
        world.submit(a_member(f"new-{at}", labels={"pod-template-hash": "new"}))
        world.advance(15)
        if f"new-{at}" not in world.bindings:
            break
        world.delete(gone)
    return world


@pytest.mark.parametrize("method", ["Fill", "Balance"])
def test_a_rolling_update_of_a_required_policy(method: str) -> None:
    spec: dict[str, Any] = {**REQUIRED, "allocationMethod": method}
    world = rolled(a_policy({"m": 1, "h": 3}, matchLabelKeys=["pod-template-hash"], **spec))
    assert in_zones(world, "new") == {"m": 1, "h": 3} and in_zones(world, "old") == {}
    stuck = rolled(a_policy({"m": 1, "h": 3}, **spec))
    assert in_zones(stuck, "new") == {}, "without matchLabelKeys the old revision keeps every place"


# -- the seed's label for DaemonSets means nothing


def test_pods_of_daemon_sets_go_where_they_are_told_to() -> None:
    world = a_world(*zoned("a1", "c1"))
    agent = a_member("agent", owner=reference("DaemonSet", "agents"), node_selector={"zone": "c"})
    world.submit(a_policy({"a": 1}, **REQUIRED), agent)
    world.run()
    assert world.bindings == {"agent": "c1"}


def test_and_take_nobodys_place() -> None:
    world = a_world(*zoned("a1"))
    agent = a_member("agent", owner=reference("DaemonSet", "agents"), node="a1")
    world.submit(a_policy({"a": 1}, **REQUIRED), agent, a_member("web"), a_member("late"))
    world.run()
    assert world.bindings == {"agent": "a1", "web": "a1"}, "one place, for one that has a policy"


def test_names_in_both_spellings_share_their_places() -> None:
    world = a_world(*zoned("a1"))
    pods = [a_member("slash"), a_member("dot", key="workload-policy.kosmos.io")]
    world.submit(a_policy({"a": 1}, **REQUIRED), *pods)
    world.run()
    assert len(world.bindings) == 1


def test_a_restart_counts_the_same() -> None:
    world = a_world(*zoned("a1", "b1"))
    world.submit(a_policy({"a": 1, "b": 1}, **REQUIRED), *(a_member(f"pod-{number}") for number in range(2)))
    world.run()
    world.restart()
    world.submit(a_member("third"))
    world.advance(20)
    assert in_zones(world) == {"a": 1, "b": 1}
    policy = world.objects["WorkloadPolicy", "default/policy"]
    assert isinstance(policy, WorkloadPolicy) and msgspec.to_builtins(policy.status)["current"] == 2
