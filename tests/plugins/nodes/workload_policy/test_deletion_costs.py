"""Costs of pods: a ReplicaSet that deletes the cheapest first keeps the policy's ratio, whatever happened before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowplan.objects.actions import Action, Patch
from stowplan.objects.apportionment import places
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.workload_policy.deletion_costs import COST, LOWEST, OWN
from stowplan.testing.builders import a_profile
from stowplan.testing.world import World
from tests.plugins.nodes.workload_policy.policies import a_member, a_policy, an_owner, reference, zoned
from tests.plugins.nodes.workload_policy.test_over_time import in_zones

REPLICAS = reference("ReplicaSet", "web-1")
NODES = zoned("a1", "a2", "b1", "b2", "c1", "-x")


def a_world(**args: Any) -> World:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "plugins": {"multiPoint": {"enabled": [{"name": "WorkloadPolicy", "weight": 1600}]}},
            "pluginConfig": [{"name": "WorkloadPolicy", "args": {"deletionCost": True, **args}}],
        }],
    }  # fmt: skip
    return World(nodes=NODES, profiles={"default-scheduler": a_profile(document)})


def replicas(count: int, start: int = 0, owner: Any = REPLICAS, **keywords: Any) -> list[Pod]:
    return [a_member(f"pod-{number}", owner=owner, **keywords) for number in range(start, start + count)]


def costs(world: World, prefix: str = "pod") -> dict[str, int]:
    """As the ReplicaSet controller reads them."""
    return {pod.name: int(pod.annotations.get(COST, "0")) for pod in world.pods() if pod.name.startswith(prefix)}


def scaled_down(world: World, size: int, prefix: str = "pod") -> Counter[str]:
    """Delete the cheapest pods, as the controller does in one go, and return where the others are."""
    cheapest = sorted(costs(world, prefix).items(), key=lambda each: (each[1], each[0]))
    world.delete(*[world.pod(name) for name, _ in cheapest[: len(cheapest) - size]])
    world.advance(3)
    return in_zones(world, prefix)


def patched(world: World) -> list[str]:
    return [each.key for each in world.actions if isinstance(each, Patch) and each.kind == "Pod"]


@pytest.mark.parametrize("domains", [{"a": 3, "b": 5}, {"a": "37.5%", "b": "62.5%"}], ids=["numbers", "percentages"])
@pytest.mark.parametrize("spec", [{}, {"allocationMethod": "Fill"}], ids=["Balance", "Fill"])
def test_the_ratio_survives_scaling_down(domains: Any, spec: dict[str, Any]) -> None:
    world = a_world()
    world.submit(a_policy(domains, **spec), *replicas(16))
    world.advance(3)
    assert in_zones(world) == {"a": 6, "b": 10}
    assert scaled_down(world, 8) == {"a": 3, "b": 5}
    world.submit(*replicas(8, 16))
    world.advance(3)
    assert scaled_down(world, 8) == {"a": 3, "b": 5}
    assert scaled_down(world, 4) == {"a": 1, "b": 3}


def test_without_the_argument_nothing_is_written() -> None:
    world = a_world(deletionCost=False)
    world.submit(a_policy({"a": 3, "b": 5}), *replicas(16))
    world.advance(3)
    assert not patched(world)


def test_pods_elsewhere_go_first() -> None:
    world = a_world()
    world.submit(a_policy({"a": 1, "b": 1, "c": 0}), *replicas(2, node="-x"), *replicas(1, 2, node="c1"))
    world.submit(*replicas(4, 3))
    world.advance(3)
    assert [costs(world)[f"pod-{number}"] for number in range(3)] == [LOWEST] * 3
    assert min(costs(world)[f"pod-{number}"] for number in range(3, 7)) > LOWEST
    assert scaled_down(world, 4) == {"a": 2, "b": 2}


@pytest.mark.parametrize(
    ("keywords", "written"),
    [
        pytest.param({}, True, id="of a ReplicaSet"),
        pytest.param({"owner": {**reference("ReplicationController", "rc"), "apiVersion": "v1"}}, True, id="of an RC"),
        pytest.param({"owner": reference("StatefulSet", "db"), "policy": "policy"}, False, id="of a StatefulSet"),
        pytest.param({"owner": None}, False, id="of nobody"),
        pytest.param({"schedulerName": "another"}, False, id="of another scheduler"),
        pytest.param({"annotations": {COST: "7"}}, False, id="with a cost of the user"),
        pytest.param({"annotations": {COST: "seven", OWN: "seven"}}, True, id="with nonsense that looks like ours"),
        pytest.param({"policy": "other"}, False, id="of a policy that does not exist"),
        pytest.param({"labels": {"app": "y"}}, False, id="that the policy does not select"),
        pytest.param({"terminating": True}, False, id="that is about to go"),
    ],
)
def test_which_pods_get_a_cost(keywords: dict[str, Any], written: bool) -> None:
    world = a_world()
    world.submit(a_policy({"a": 3, "b": 5}), *replicas(1, **{"node": "a1", **keywords}))
    world.advance(3)
    assert bool(patched(world)) == written


def test_each_pod_is_written_once() -> None:
    """One write for a pod that comes, at most one for a pod that goes; none for a status, and none after a restart."""
    world = a_world()
    world.submit(a_policy({"a": 3, "b": 5}), *replicas(16))
    world.advance(3)
    assert len(patched(world)) == len(set(patched(world))) == 16
    world.advance(60)
    world.restart()
    world.advance(60)
    assert len(patched(world)) == 16
    in_a = [pod for pod in world.pods() if pod.node_name[0] == "a"]
    dearest = max(in_a, key=lambda pod: costs(world)[pod.name])
    world.delete(dearest)
    world.advance(3)
    assert len(patched(world)) == 17, "the cheapest of its domain has its cost now"
    world.submit(*replicas(1, 16))
    world.advance(3)
    assert patched(world)[17:] == ["default/pod-16"]


def test_an_edit_of_the_policy_gives_new_costs() -> None:
    world = a_world()
    world.submit(a_policy({"a": 3, "b": 5}), *replicas(16))
    world.advance(3)
    world.submit(a_policy({"a": 1, "b": 1}, generation=2))
    world.advance(3)
    assert scaled_down(world, 8) == {"a": 4, "b": 4}


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_the_costs_follow_the_label_of_an_owner(kind: str) -> None:
    def owners(policy: str) -> list[Any]:
        named = {"Deployment": "", "ReplicaSet": "", kind: policy}
        deployment = an_owner("Deployment", "web", policy=named["Deployment"])
        return [deployment, an_owner("ReplicaSet", "web-1", policy=named["ReplicaSet"], of=("Deployment", "web"))]

    world = a_world()
    policies = [a_policy({"a": 3, "b": 5}), a_policy({"a": 1, "b": 1}, name="second")]
    pods = [a_member(f"pod-{i}", policy="", owner=REPLICAS, node=("a1", "b1")[i % 2]) for i in range(16)]
    world.submit(*policies, *owners("policy"), *pods)
    world.advance(3)
    first = costs(world)
    world.submit(*owners("second"))
    world.advance(3)
    assert costs(world) != first
    world.submit(*owners(""))
    world.advance(3)
    assert set(costs(world).values()) == {0}, "no policy, no costs"
    world.submit(*owners("second"))
    world.advance(3)
    assert scaled_down(world, 8) == {"a": 4, "b": 4}


def test_a_policy_that_is_not_valid_leaves_the_costs() -> None:
    world = a_world()
    world.submit(a_policy({"a": 3, "b": 5}), *replicas(8))
    world.advance(3)
    before = costs(world)
    world.submit(a_policy({"a": 3, "b": 5}, allocationType="soft", generation=2))
    world.advance(3)
    assert costs(world) == before
    world.submit(a_policy({"a": 6, "b": 10}, generation=3))
    world.advance(3)
    assert costs(world) == before, "the same ratio"


def test_without_a_policy_the_costs_go() -> None:
    world = a_world()
    policy = a_policy({"a": 3, "b": 5})
    world.submit(policy, *replicas(8), *replicas(1, 8, node="a1", annotations={COST: "5"}))
    world.advance(3)
    world.delete(policy)
    world.advance(3)
    assert [(pod.name, pod.annotations) for pod in world.pods() if pod.annotations] == [("pod-8", {COST: "5"})]


def test_a_node_that_moves_takes_its_pods_along() -> None:
    world = a_world()
    world.submit(a_policy({"a": 1, "b": 1}), *replicas(4, node="a1"), *replicas(4, 4, node="b1"))
    world.advance(3)
    world.submit(*zoned("b2", "b3"), *replicas(2, 8, node="b2"))
    world.advance(3)
    (moved,) = zoned("a3")
    world.submit(type(moved)(metadata=moved.metadata.__class__(name="b2", labels={"zone": "a"})))
    world.advance(3)
    by_zone = Counter(costs(world)[f"pod-{number}"] for number in (*range(4), 8, 9))
    assert len(by_zone) == 6, "six numbers of zone a"


def test_two_replica_sets_keep_the_ratio_each() -> None:
    """A rolling update, or two workloads under one policy."""
    world = a_world()
    world.submit(a_policy({"a": 3, "b": 5}))
    for name in ("one", "two"):
        owner = reference("ReplicaSet", name)
        world.submit(*[a_member(f"{name}-{number}", owner=owner) for number in range(16)])
        world.advance(3)
    assert scaled_down(world, 8, "one") == {"a": 3, "b": 5}
    assert scaled_down(world, 0, "one") == {}
    assert scaled_down(world, 8, "two") == {"a": 3, "b": 5}


def test_another_leader_gave_other_costs_meanwhile() -> None:
    """Two pods of a domain have changed their places, which we see when we lead again."""
    world = a_world()
    world.submit(a_policy({"a": 1, "b": 1}), *replicas(2, node="a1"))
    world.advance(3)
    found = costs(world)
    for name, other in (("pod-0", "pod-1"), ("pod-1", "pod-0")):
        swapped = {COST: str(found[other]), OWN: str(found[other])}
        world.submit(*replicas(1, int(name[-1]), node="a1", annotations=swapped))
    written = len(patched(world))
    world.advance(3)
    assert costs(world) == {"pod-0": found["pod-1"], "pod-1": found["pod-0"]}
    assert len(patched(world)) == written
    world.submit(*replicas(1, 2, node="a1"))
    world.advance(3)
    assert len(set(costs(world).values())) == 3


def refusing(number: int) -> Callable[[Action], Result]:
    """So many of the next actions fail."""
    left = iter(range(number))
    return lambda action: Result(action.id, 500) if next(left, None) is not None else Result(action.id)


STORY = st.lists(st.tuples(st.sampled_from(["grow", "lose", "restart", "fail"]), st.integers(1, 6)), max_size=8)


@settings(max_examples=40, deadline=None)
@given(STORY, st.integers(0, 12))
def test_after_any_story_the_ratio_survives(story: list[tuple[str, int]], size: int) -> None:
    """Pods come, others are lost, the scheduler is killed, writes fail: then the workload is scaled down."""
    world = a_world()
    world.submit(a_policy({"a": "37.5%", "b": "62.5%"}, allocationType="Required"), *replicas(4))
    made = 4
    for what, number in story:
        if what == "grow":
            world.submit(*replicas(number, made))
            made += number
        elif what == "lose":
            world.delete(*[pod for pod in world.pods() if pod.name.startswith("pod")][:number])
        elif what == "restart":
            world.restart()
        else:
            world.answers = refusing(number)
        world.advance(1)
    world.advance(10)
    there = len([pod for pod in world.pods() if pod.name.startswith("pod")])
    if size > there:
        return
    before = in_zones(world)
    after = scaled_down(world, size)
    expected = places({"a": 3, "b": 5}, size)
    if before["a"] >= expected["a"] and before["b"] >= expected["b"]:
        assert (after["a"], after["b"]) == (expected["a"], expected["b"])
