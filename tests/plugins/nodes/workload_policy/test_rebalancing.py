"""Rebalancing after an edit of the policy: which pod is evicted, when, how fast, and when none is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowplan.objects import kinds
from stowplan.objects.actions import Action, RequestEviction
from stowplan.objects.changes import Result
from stowplan.objects.errors import ConfigError
from stowplan.objects.nodes import Node
from stowplan.objects.pod_parts import PodCondition
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import ReplicaSet
from stowplan.plugins.nodes.workload_policy.plugin import WorkloadPolicyPlugin
from stowplan.testing.builders import a_profile
from stowplan.testing.world import World
from tests.plugins.nodes.workload_policy.policies import a_member, a_policy, reference, zoned
from tests.plugins.nodes.workload_policy.test_over_time import in_zones

REPLICAS = reference("ReplicaSet", "web-1")
EVICT: dict[str, Any] = {"rebalance": "Evict"}
PAUSE = 10.0  # six a minute


class Workload:
    """A World with a ReplicaSet: it makes a pod for each one that goes, and pods that have a node become ready."""

    def __init__(self, size: int, *nodes: Node, rate: float = 6, weight: int = 1600, **keywords: Any) -> None:
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{
                "plugins": {"multiPoint": {"enabled": [{"name": "WorkloadPolicy", "weight": weight}]}},
                "pluginConfig": [{"name": "WorkloadPolicy", "args": {"evictionsPerMinute": rate}}],
            }],
        }  # fmt: skip
        self.profiles = {"default-scheduler": a_profile(document)}
        self.world = World(nodes=nodes or NODES, profiles=self.profiles, **keywords)
        self._made, self.replaces = 0, True
        self.scale(size)

    def scale(self, size: int) -> None:
        self.size = size
        metadata = {"name": "web-1", "namespace": "default", "uid": "uid-of-web-1"}
        self.world.submit(kinds.convert(ReplicaSet, {"metadata": metadata, "spec": {"replicas": size}}))

    def pods(self) -> list[Pod]:
        return [pod for pod in self.world.pods() if pod.name.startswith("web")]

    def settle(self, seconds: float = 0.0, **keywords: Any) -> None:
        """Second by second, so that the ReplicaSet and kubelets keep up."""
        for _ in range(int(seconds) + 1):
            missing = self.size - len(self.pods()) if self.replaces else 0
            for _ in range(missing):
                given = {"owner": REPLICAS, **keywords}
                self.world.submit(a_member(f"web-{self._made}", **given))
                self._made += 1
            self.world.run()
            self.world.submit(*[_ready(pod) for pod in self.pods() if pod.node_name and not pod.condition("Ready")])
            self.world.advance(1)

    @property
    def evicted(self) -> list[str]:
        return [each.pod.name for each in self.world.actions if isinstance(each, RequestEviction)]


def _ready(pod: Pod) -> Pod:
    return msgspec.structs.replace(
        pod, status=msgspec.structs.replace(pod.status, phase="Running", conditions=(PodCondition("Ready", "True"),))
    )


NODES = zoned("a1", "a2", "b1", "b2")


def edited(before: Any, after: Any, size: int = 8, seconds: float = 120, **keywords: Any) -> Workload:
    """A workload whose policy was edited, some time later."""
    spec = {**EVICT, **keywords.pop("spec", {})}
    workload = Workload(size, **keywords)
    workload.world.submit(a_policy(before, **spec))
    workload.settle(30)
    workload.world.submit(a_policy(after, generation=2, **spec))
    workload.settle(seconds)
    return workload


@pytest.mark.parametrize("type_", ["Required", "Preferred"])
@pytest.mark.parametrize("method", ["Balance", "Fill"])
@pytest.mark.parametrize(
    ("before", "after", "moves", "expected"),
    [
        pytest.param({"a": 3, "b": 5}, {"a": 5, "b": 3}, 2, {"a": 5, "b": 3}, id="numbers"),
        pytest.param({"a": "50%", "b": "50%"}, {"a": "75%", "b": "25%"}, 2, {"a": 6, "b": 2}, id="percentages"),
        pytest.param({"a": 3, "b": 5}, {"a": 5, "b": 5}, 0, {"a": 3, "b": 5}, id="more places: nobody is too many"),
        pytest.param({"a": 3, "b": 5}, {"a": 3, "b": 5}, 0, {"a": 3, "b": 5}, id="no change"),
    ],
)
def test_pods_move_after_an_edit(
    before: Any, after: Any, moves: int, expected: dict[str, int], type_: str, method: str
) -> None:
    found = edited(before, after, spec={"allocationType": type_, "allocationMethod": method})
    assert (in_zones(found.world), len(found.evicted)) == (expected, moves)


def test_preferred_numbers_are_a_ratio_for_all_pods() -> None:
    """Sixteen pods of 3:5 are 6:10; after the edit to 5:3 they are 10:6."""
    found = edited({"a": 3, "b": 5}, {"a": 5, "b": 3}, 16)
    assert (in_zones(found.world), len(found.evicted)) == ({"a": 10, "b": 6}, 4)


def test_pods_outside_of_the_listed_domains_move_first() -> None:
    found = edited({"a": 4}, {"a": 2, "b": 2}, 4)
    assert in_zones(found.world) == {"a": 2, "b": 2}
    found = edited({"a": 4}, {"b": 4}, 4)
    assert (in_zones(found.world), len(found.evicted)) == ({"b": 4}, 4)


@pytest.mark.parametrize(
    "keywords",
    [
        pytest.param({"spec": {"rebalance": "Never"}}, id="the policy does not say so"),
        pytest.param({"spec": {"rebalance": ""}}, id="the policy says nothing"),
        pytest.param({"rate": 0}, id="the configuration does not permit it"),
    ],
)
def test_nobody_is_evicted_unless_both_say_so(keywords: dict[str, Any]) -> None:
    assert not edited({"a": 3, "b": 5}, {"a": 5, "b": 3}, **keywords).evicted


def test_a_policy_is_told_that_the_configuration_does_not_permit_it() -> None:
    policy: Any = edited({"a": 3, "b": 5}, {"a": 5, "b": 3}, rate=0).world.objects["WorkloadPolicy", "default/policy"]
    expected = "rebalance: Evict has no effect, since the scheduler's configuration sets no evictionsPerMinute"
    assert policy.status.conditions[0].message == expected
    policy = edited({"a": 3, "b": 5}, {"a": 5, "b": 3}).world.objects["WorkloadPolicy", "default/policy"]
    assert policy.status.conditions[0].message == ""


def test_nobody_is_evicted_if_the_successor_would_find_no_room() -> None:
    """Zone a has room for three pods. Without the rehearsal, pods of zone b would be evicted for ever."""
    found = Workload(8, *zoned("a1", cpu=3), *zoned("b1", cpu=8))
    found.world.submit(a_policy({"a": 3, "b": 5}, **EVICT))
    found.settle(30, cpu=1)
    found.world.submit(a_policy({"a": 5, "b": 3}, generation=2, **EVICT))
    found.settle(120, cpu=1)
    assert (in_zones(found.world), found.evicted) == ({"a": 3, "b": 5}, [])
    found.world.submit(*zoned("a2", cpu=1))
    found.settle(60, cpu=1)
    assert (in_zones(found.world), len(found.evicted)) == ({"a": 4, "b": 4}, 1)


@pytest.mark.parametrize(
    ("keywords", "why"),
    [
        pytest.param({"owner": None}, "nobody would replace it", id="without an owner"),
        pytest.param({"node_selector": {"zone": "b"}}, "it must be there", id="bound to its zone"),
    ],
)
def test_pods_that_cannot_move_stay(keywords: dict[str, Any], why: str) -> None:
    found = Workload(4)
    spec = {"nodeSelector": keywords.pop("node_selector")} if "node_selector" in keywords else {}
    found.world.submit(a_policy({"a": 0, "b": 4}, **EVICT))
    found.settle(30, **keywords, **spec)
    found.world.submit(a_policy({"a": 4, "b": 0}, generation=2, **EVICT))
    found.settle(60, **keywords, **spec)
    assert not found.evicted, why


def test_one_at_a_time_and_not_before_the_last_one_is_replaced() -> None:
    found = Workload(8)
    found.world.submit(a_policy({"a": 0, "b": 8}, **EVICT))
    found.settle(30)
    found.world.submit(a_policy({"a": 8, "b": 0}, generation=2, **EVICT))
    found.settle(2)
    assert len(found.evicted) == 1, "at once: nothing was moved for long"
    found.settle(5)
    assert len(found.evicted) == 1
    found.settle(PAUSE - 3)
    assert len(found.evicted) == 2
    found.replaces = False
    found.settle(5 * PAUSE)
    assert len(found.evicted) == 3, "the third one is gone, and nobody made another"
    found.replaces = True
    found.settle(4 * PAUSE)
    assert 6 <= len(found.evicted) <= 8


def test_a_pod_that_is_not_ready_stops_it() -> None:
    found = Workload(4)
    found.world.submit(a_policy({"a": 0, "b": 4}, **EVICT))
    found.settle(30)
    (sick, *_) = found.pods()
    not_ready = msgspec.structs.replace(sick.status, conditions=(PodCondition("Ready", "False"),))
    found.world.submit(msgspec.structs.replace(sick, status=not_ready))
    found.world.submit(a_policy({"a": 4, "b": 0}, generation=2, **EVICT))
    found.settle(60)
    assert not found.evicted
    found.world.submit(_ready(sick))
    found.settle(60)
    assert found.evicted


def test_a_budget_that_says_no_is_asked_again_after_the_pause() -> None:
    found = Workload(4)
    found.world.submit(a_policy({"a": 0, "b": 4}, **EVICT))
    found.settle(30)

    def refuse(action: Action) -> Result:
        return Result(action.id, 429, "budget") if isinstance(action, RequestEviction) else Result(action.id)

    found.world.answers = refuse
    found.world.submit(a_policy({"a": 4, "b": 0}, generation=2, **EVICT))
    found.settle(4 * PAUSE)
    assert 3 <= len(found.evicted) <= 5
    policy: Any = found.world.objects["WorkloadPolicy", "default/policy"]
    assert policy.status.observed_generation == 2, "other writes go on"
    found.world.answers = found.world.succeed
    found.settle(6 * PAUSE)
    assert in_zones(found.world) == {"a": 4}


def test_a_scheduler_that_is_killed_again_and_again_evicts_no_faster() -> None:
    found = Workload(8)
    found.world.submit(a_policy({"a": 0, "b": 8}, **EVICT))
    found.settle(30)
    found.world.submit(a_policy({"a": 8, "b": 0}, generation=2, **EVICT))
    for _ in range(20):
        found.profiles["default-scheduler"] = Workload(0).profiles["default-scheduler"]
        found.world.profiles = found.profiles
        found.world.restart()
        found.settle(PAUSE / 2)
    assert not found.evicted
    found.settle(10 * PAUSE)
    assert in_zones(found.world) == {"a": 8}, "it goes on where it was"


def test_the_pod_is_told() -> None:
    found = edited({"a": 3, "b": 5}, {"a": 5, "b": 3}, seconds=5)
    (name,) = found.evicted
    expected = "Evicted so that another pod takes a place that is free: WorkloadPolicy policy: a 3/5, b 5/3"
    assert found.world.event_notes(name, "Rebalanced") == [expected]


def test_policies_take_turns() -> None:
    """Some that cannot be helped do not keep others waiting, and only a few are looked at closely at a time."""
    found = Workload(4)
    for number in range(9):
        selector: dict[str, Any] = {"labelSelector": {"matchLabels": {"app": f"stuck-{number}"}}}
        found.world.submit(a_policy({"a": 1, "b": 0}, name=f"stuck-{number}", **selector, **EVICT))
        labels = {"app": f"stuck-{number}", "workload-policy/kosmos.io": f"stuck-{number}"}
        found.world.submit(_ready(a_member(f"lonely-{number}", labels=labels, node="b1")))
    found.world.submit(a_policy({"a": 0, "b": 4}, **EVICT))
    found.settle(30)
    found.world.submit(a_policy({"a": 4, "b": 0}, generation=2, **EVICT))
    found.settle(40 * PAUSE)
    assert in_zones(found.world, "web") == {"a": 4}
    assert all(name.startswith("web") for name in found.evicted)


def test_two_revisions_are_left_alone() -> None:
    """A rolling update is under way, and each revision is counted separately."""
    found = Workload(4)
    spec = {**EVICT, "matchLabelKeys": ["hash"]}
    found.world.submit(a_policy({"a": 0, "b": 4}, **spec))
    found.settle(20, labels={"hash": "1"})
    found.scale(8)
    found.settle(20, labels={"hash": "2"})
    found.world.submit(a_policy({"a": 8, "b": 0}, generation=2, **spec))
    found.settle(60)
    assert not found.evicted


@pytest.mark.parametrize("rate", [-1, 61, float("nan")])
def test_a_rate_that_is_none(rate: float) -> None:
    with pytest.raises(ConfigError, match="evictionsPerMinute is"):
        WorkloadPolicyPlugin(evictions_per_minute=rate)


@pytest.mark.parametrize(
    ("arguments", "writes"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"deletion_cost": True}, ("patch",), id="costs"),
        pytest.param({"evictions_per_minute": 1}, ("evict",), id="evictions"),
        pytest.param({"deletion_cost": True, "evictions_per_minute": 1}, ("patch", "evict"), id="both"),
    ],
)
def test_rights_follow_the_arguments(arguments: dict[str, Any], writes: tuple[str, ...] | None) -> None:
    assert WorkloadPolicyPlugin(**arguments).writes.get("Pod") == writes
