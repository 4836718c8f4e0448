"""The status of a WorkloadPolicy: what it says, when it is looked at again, and that only changes are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from stowplan.apps.run.plugin_gauges import PluginGauges
from stowplan.columns.nodes.views import Cluster
from stowplan.objects.actions import Patch
from stowplan.objects.changes import Gone, Put
from stowplan.objects.meta import Condition, Object
from stowplan.objects.workload_policies import DomainStatus, WorkloadPolicy, WorkloadPolicyStatus
from stowplan.plugins.nodes.workload_policy import status as policy_status
from stowplan.testing.builders import a_node, a_pod, a_profile, a_state
from stowplan.testing.world import World
from tests.engine.small_plugins import profiles
from tests.plugins.nodes.workload_policy.policies import a_member, a_policy, placed, reference, zoned

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "WorkloadPolicy"}]}}}],
}  # fmt: skip
NODES = zoned("a1", "a2", "b1", "c1", "-x")
DAEMONS = reference("DaemonSet", "agents")


def told(policy: WorkloadPolicy, *pods: Any, nodes: Sequence[Any] = NODES) -> WorkloadPolicyStatus:
    return policy_status.status_of(policy, Cluster(a_state(nodes=nodes, pods=pods, others=[policy])))


def waiting(*names: str, **keywords: Any) -> list[Any]:
    return [a_member(f"waiting-{name}", **keywords) for name in names]


@pytest.mark.parametrize(
    ("pods", "domains", "numbers"),
    [
        pytest.param([], {"a": (2, 0, 0), "b": (1, 0, 0)}, (3, 0, 0, 0), id="nobody"),
        pytest.param(placed("a1", "a2", "b1"), {"a": (2, 2, 0), "b": (1, 1, 0)}, (3, 3, 0, 0), id="all of them"),
        pytest.param(placed("a1", "c1", "-x"), {"a": (2, 1, 0), "b": (1, 0, 0)}, (3, 1, 2, 0), id="some elsewhere"),
        pytest.param(
            [*placed("a1"), *waiting("w")], {"a": (2, 1, 1), "b": (1, 0, 1)}, (3, 1, 0, 1), id="one waits"
        ),
        pytest.param(
            [*placed("a1", "a1", "a1"), *waiting(*"uvw")], {"a": (2, 3, 0), "b": (1, 0, 1)}, (3, 3, 0, 3), id="too many"
        ),
        pytest.param(
            [*waiting("v", terminating=True), *waiting("w", namespace="n"), a_pod("y", labels={"app": "y"})],
            {"a": (2, 0, 0), "b": (1, 0, 0)}, (3, 0, 0, 0), id="some that wait and do not count",
        ),
        pytest.param(
            [*placed("a1", "c1", owner=DAEMONS), *waiting("w", owner=DAEMONS)],
            {"a": (2, 0, 0), "b": (1, 0, 0)}, (3, 0, 0, 0), id="all are of DaemonSets",
        ),
        pytest.param(placed("a1", "b1", terminating=True), {"a": (2, 0, 0), "b": (1, 0, 0)}, (3, 0, 0, 0), id="all go"),
    ],
)  # fmt: skip
def test_numbers(pods: list[Any], domains: dict[str, tuple[int, int, int]], numbers: tuple[int, ...]) -> None:
    """Of domains: desired, current, pending. In all: desired, current, elsewhere, pending."""
    status = told(a_policy({"a": 2, "b": 1}), *pods)
    assert status.domains == tuple(DomainStatus(name, *each) for name, each in domains.items())
    assert (status.desired, status.current, status.elsewhere, status.pending) == numbers


def test_all_revisions_are_told() -> None:
    pods = [*placed("a1", labels={"hash": "1"}), a_member("new", node="a2", labels={"hash": "2"})]
    assert told(a_policy({"a": 1}, matchLabelKeys=["hash"]), *pods).domains == (DomainStatus("a", 1, 2, 0),)


@pytest.mark.parametrize(
    ("policy", "pods", "expected"),
    [
        pytest.param(
            a_policy({"a": 1, "b": 1}, generation=4),
            placed("a1"),
            [("Valid", "True", "Accepted", ""), ("Satisfied", "False", "PlacesLeft", "a 1/1, b 0/1")],
            id="places are left",
        ),
        pytest.param(
            a_policy({"a": 1, "b": 1}, generation=4),
            placed("a1", "a1", "b1"),
            [("Valid", "True", "Accepted", ""), ("Satisfied", "True", "Filled", "a 2/1, b 1/1")],
            id="all have what is desired, one even more",
        ),
        pytest.param(
            a_policy({"a": 0}, generation=4), [],
            [("Valid", "True", "Accepted", ""), ("Satisfied", "True", "Filled", "a 0/0")], id="nothing is desired",
        ),
        pytest.param(
            a_policy({str(number): 1 for number in range(10)}, generation=4), [],
            [("Valid", "True", "Accepted", ""),
             ("Satisfied", "False", "PlacesLeft", ", ".join(f"{number} 0/1" for number in range(8)) + " and 2 more")],
            id="more domains than anybody reads",
        ),
        pytest.param(
            a_policy({"a": 1}, generation=4, topologyKey="", allocationType="x"), placed("a1"),
            [("Valid", "False", "Invalid",
              "topologyKey is empty; allocationType 'x' is neither Required nor Preferred"),
             ("Satisfied", "Unknown", "Invalid", "the policy is not in force")],
            id="not valid",
        ),
        pytest.param(
            a_policy({"a": 0}, generation=4, scheduleStrategy="Fill", allocationMethod="Balance"), [],
            [("Valid", "True", "Accepted", "allocationMethod Balance is used, scheduleStrategy Fill is ignored"),
             ("Satisfied", "True", "Filled", "a 0/0")],
            id="valid, with a remark",
        ),
    ],
)  # fmt: skip
def test_conditions(policy: WorkloadPolicy, pods: list[Any], expected: list[tuple[str, str, str, str]]) -> None:
    status = told(policy, *pods)
    assert status.conditions == tuple(Condition(*each, observed_generation=4) for each in expected)
    assert status.observed_generation == 4


# -- who is looked at


OTHER = a_policy({"a": 1}, name="other", labelSelector={"matchLabels": {"app": "y"}})
ELSEWHERE = a_policy({"a": 1}, name="elsewhere", namespace="n")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(None, "policy other elsewhere", id="everything"),
        pytest.param([], "", id="nothing"),
        pytest.param([OTHER], "other", id="a policy"),
        pytest.param([a_policy(name="gone")], "", id="a policy that is gone"),
        pytest.param([a_member("p", node="a1")], "policy", id="a pod"),
        pytest.param([a_member("p"), a_pod("p", labels={"app": "y"})], "policy other", id="a pod that went over"),
        pytest.param([a_pod("p", namespace="n", labels={"app": "z"})], "", id="a pod that nobody selects"),
        pytest.param([a_node("a1")], "policy other elsewhere", id="a node came or went"),
        pytest.param([a_node("a1", cpu=1), a_node("a1", cpu=2)], "", id="a node says how it is"),
        pytest.param(
            [a_node("a1", cpu=1), a_node("a1", cpu=1), a_node("a1", cpu=2)], "policy other elsewhere", id="both of it"
        ),
        pytest.param(
            [a_node("a1"), a_node("a1", labels={"zone": "b"})], "policy other elsewhere", id="a node has other labels"
        ),
    ],
)  # fmt: skip
def test_who_is_looked_at(changed: list[Object] | None, expected: str) -> None:
    state = a_state(nodes=NODES, others=[a_policy(), OTHER, ELSEWHERE])
    patches = list(policy_status.patches(changed, Cluster(state)))
    assert [patch.key.partition("/")[2] for patch in patches] == expected.split()


def test_pods_that_wait_are_counted_from_the_first_question_on() -> None:
    policy, state = a_policy(), a_state(nodes=NODES, pods=waiting("u", "v"))
    state.apply(Put(policy))

    def pending() -> int:
        return policy_status.status_of(policy, Cluster(state)).pending

    assert pending() == 2
    state.apply(Put(a_member("waiting-w")))
    assert pending() == 3
    state.apply(Put(a_member("waiting-w", node="a1")))
    state.apply(Gone(a_member("waiting-v")))
    assert pending() == 1


# -- what is written


def a_world(*objects: Object) -> World:
    from stowplan.plugins.nodes.workload_policy.plugin import WorkloadPolicyPlugin as Plugin

    plugin = Plugin()
    world = World(nodes=NODES, profiles=profiles(preFilter=[plugin], filter=[plugin], score=[plugin]))
    world.submit(*objects)
    world.advance(3)
    return world


def written(world: World) -> list[Any]:
    return [action for action in world.actions if isinstance(action, Patch)]


def status_of(world: World) -> WorkloadPolicyStatus:
    policy = world.objects["WorkloadPolicy", "default/policy"]
    assert isinstance(policy, WorkloadPolicy)
    return policy.status


def test_it_follows_the_pods_and_is_written_only_when_it_changes() -> None:
    world = a_world(a_policy({"a": 1, "b": 1}, allocationType="Required"))
    assert [each.status for each in status_of(world).conditions] == ["True", "False"]
    assert len(written(world)) == 1
    world.submit(*(a_member(f"pod-{number}") for number in range(3)))
    world.advance(20)
    status = status_of(world)
    assert (status.desired, status.current, status.pending) == (2, 2, 1)
    assert [each.status for each in status.conditions] == ["True", "True"]
    before = len(written(world))
    world.submit(a_pod("stranger", node="a1"), a_node("c1", labels={"zone": "c"}, cpu=1))
    world.advance(600)
    assert len(written(world)) == before, "nothing that concerns it"
    bound = next(pod for pod in world.pods() if pod.node_name == "b1")
    world.delete(bound)
    world.advance(20)
    assert status_of(world).pending == 0 and status_of(world).current == 2


def test_zeros_are_written_and_transitions_have_no_time_of_ours() -> None:
    world = a_world(a_policy({"a": 1}))
    (patch,) = written(world)
    status = patch.body["status"]
    assert (patch.kind, patch.key, list(patch.body)) == ("WorkloadPolicy", "default/policy", ["status"])
    assert (status["current"], status["pending"], status["elsewhere"]) == (0, 0, 0)
    assert all("lastTransitionTime" not in each for each in status["conditions"])


def test_a_condition_that_stands_keeps_its_time() -> None:
    since = "2026-01-01T00:00:00Z"
    policy = a_policy({"a": 1})
    condition = {"type": "Valid", "status": "True", "lastTransitionTime": since}
    old = {"conditions": [condition, {**condition, "type": "Satisfied"}]}
    status = msgspec.convert(old, WorkloadPolicyStatus)
    state = a_state(nodes=NODES, others=[msgspec.structs.replace(policy, status=status)])
    (patch,) = policy_status.patches(None, Cluster(state))
    assert isinstance(patch.body, dict)
    valid, satisfied = patch.body["status"]["conditions"]
    assert (valid["status"], valid["lastTransitionTime"]) == ("True", since)
    assert satisfied["status"] == "False" and "lastTransitionTime" not in satisfied


# -- metrics


def test_the_gauges_have_the_numbers_of_each_domain() -> None:
    policies = [
        a_policy({"a": 2, "b": 1}),
        a_policy({"a": "50%", "b": "50%"}, name="shares"),
        a_policy(name="broken", allocationType="soft"),
    ]
    state = a_state(nodes=NODES, pods=[*placed("a1", "a1", "c1"), *waiting("w")], others=policies)
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for each in policy_status.gauges(Cluster(state)):
        found.setdefault(each.name, {})[tuple(each.labels.values())] = each.value
    assert found == {
        "workload_policy_desired_pods": {
            ("default", "policy", "a"): 2, ("default", "policy", "b"): 1,
            ("default", "shares", "a"): 2, ("default", "shares", "b"): 2,
        },
        "workload_policy_pods": {
            ("default", "policy", "a"): 2, ("default", "policy", "b"): 0,
            ("default", "shares", "a"): 2, ("default", "shares", "b"): 0,
        },
        "workload_policy_pods_elsewhere": {("default", "policy"): 1, ("default", "shares"): 1},
        "workload_policy_pending_pods": {("default", "policy"): 1, ("default", "shares"): 1},
    }  # fmt: skip


def test_the_gauges_of_domains_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policies with the longest lists have their totals only."""
    monkeypatch.setattr(policy_status, "MOST_IN_METRICS", 5)
    policies = [a_policy({f"d{i}": 1 for i in range(number)}, name=f"of-{number}") for number in (4, 3, 2)]
    too_long = a_policy({f"d{i}": 1 for i in range(257)}, name="too-long")
    found: dict[str, list[str]] = {}
    for each in policy_status.gauges(Cluster(a_state(nodes=NODES, others=[*policies, too_long]))):
        found.setdefault(each.name, []).append(each.labels["policy"])
    assert found["workload_policy_desired_pods"] == found["workload_policy_pods"] == ["of-2"] * 2 + ["of-3"] * 3
    assert found["workload_policy_pending_pods"] == ["of-2", "of-3", "of-4"]


def test_the_gauges_are_among_the_metrics() -> None:
    world = World(nodes=NODES, profiles={"default-scheduler": a_profile(CONFIG)})
    world.submit(a_policy({"a": 1, "b": 1}), *waiting("v", "w"))
    world.run()
    registry = CollectorRegistry()
    PluginGauges(registry).update(world.scheduler, lambda problem: pytest.fail(str(problem)))
    for name in ("workload_policy_desired_pods", "workload_policy_pods"):
        for domain in ("a", "b"):
            labels = {"namespace": "default", "policy": "policy", "domain": domain}
            assert registry.get_sample_value(f"stowplan_{name}", labels) == 1
