"""What the policies of the seeds name, and what a group lacks as a whole."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowplan.diagnosis.group_causes import group_causes
from stowplan.plugins.nodes.coscheduling.gang_scheduling import GangScheduling
from stowplan.plugins.nodes.coscheduling.plugin import Coscheduling
from stowplan.plugins.nodes.leaf_nodes.distribution import LeafNodeDistribution
from stowplan.plugins.nodes.leaf_nodes.taint_toleration import LeafNodeTaintToleration
from stowplan.plugins.nodes.pre_extender import PreExtender
from stowplan.plugins.nodes.sp_priority.plugin import SPPriority
from stowplan.plugins.nodes.workload_policy.plugin import WorkloadPolicyPlugin
from stowplan.testing.builders import a_node, a_pod, a_profile_of, a_state
from tests.diagnosis.cause_lines import node_causes, whole_pod
from tests.plugins.nodes.coscheduling import pod_groups
from tests.plugins.nodes.leaf_nodes import test_distribution as distribution
from tests.plugins.nodes.resource_reservation import reservations
from tests.plugins.nodes.workload_policy.policies import a_member, a_policy, placed, reference, zoned

POLICY = a_profile_of(WorkloadPolicyPlugin())


def test_the_domains_of_a_workload_policy() -> None:
    policy = a_policy({"a": 1, "b": 2}, allocationType="Required")
    state = a_state(nodes=zoned("a1", "a2", "b1", "c1", "-"), pods=placed("a1", "b1"), others=[policy])
    assert node_causes(a_member(), state, POLICY) == {
        "a1 a2": ["policy-full: WorkloadPolicy policy has filled zone a (1 of 1)"],
        "c1": ["policy-domain: WorkloadPolicy policy lists zone a, b only"],
        "-": ["policy-label: WorkloadPolicy policy: the node has no label zone"],
    }


@pytest.mark.parametrize(
    ("pod", "others", "expected"),
    [
        pytest.param(
            a_member(policy="polcy"), [a_policy()],
            "policy-missing: WorkloadPolicy polcy does not exist (there is policy)", id="a policy that does not exist",
        ),
        pytest.param(
            a_member(labels={"app": "y"}), [a_policy()],
            "policy-selector: the pod's labels don't match the labelSelector of WorkloadPolicy policy", id="a selector",
        ),
        pytest.param(
            a_member(policy="", owner=reference("ReplicaSet", "web")), [],
            "owner-unknown: ReplicaSet web, which may name a WorkloadPolicy, is not known yet", id="an unknown owner",
        ),
    ],
)  # fmt: skip
def test_a_pod_that_a_workload_policy_rejects(pod: Any, others: Any, expected: str) -> None:
    assert whole_pod(pod, a_state(nodes=zoned("a1"), others=others), POLICY) == [expected]


def test_a_workload_policy_that_is_not_valid() -> None:
    policy = a_policy(topologyKey="")
    (found,) = whole_pod(a_member(), a_state(nodes=zoned("a1"), others=[policy]), POLICY)
    assert found.startswith("policy-invalid: WorkloadPolicy policy is not valid: ")


def test_the_room_that_an_application_lacks() -> None:
    profile = reservations.profiles()["default-scheduler"]
    state = a_state(nodes=[a_node("a", cpu=2), a_node("b", cpu=2)])
    text = (
        "reservation-room: application app: there is room for the driver and 3 of 4 executors (cpu 1, memory 1Gi each)"
    )
    assert node_causes(reservations.a_driver(), state, profile) == {"a b": [text]}


def test_a_driver_whose_annotations_are_wrong() -> None:
    profile = reservations.profiles()["default-scheduler"]
    driver = reservations.a_driver(annotations=reservations.needs(4, cpu="many"))
    (found,) = whole_pod(driver, a_state(nodes="a"), profile)
    assert found.startswith("reservation-invalid: application app: the driver's ")


def test_an_executor_in_another_zone() -> None:
    world = reservations.a_world(
        a_node("a", cpu=8, labels={"topology.kubernetes.io/zone": "x"}), args={"singleZone": True}
    )
    world.submit(reservations.a_driver(annotations=reservations.needs(1)))
    world.run()
    world.submit(a_node("b", labels={"topology.kubernetes.io/zone": "y"}))
    world.run()
    profile = world.profiles["default-scheduler"]
    found = node_causes(reservations.an_executor(1), world.scheduler.state, profile)
    text = "reservation-zone: application app: its driver app-driver is in topology.kubernetes.io/zone x"
    assert found == {"b": [text]}


def test_a_reservation_of_somebody_else() -> None:
    profile = reservations.profiles()["default-scheduler"]
    mine = reservations.a_reservation("app", one=("a", {"cpu": "1"}))
    (found,) = whole_pod(reservations.a_driver(), a_state(nodes="a", others=[mine]), profile)
    expected = "ResourceReservation app is there and belongs to a user"
    assert found == f"reservation-exists: application app: {expected}"


def test_leaf_nodes() -> None:
    state = a_state(nodes=distribution.NODES, others=[distribution.a_policy(distribution.X)])
    found = node_causes(a_pod(labels={"app": "x"}), state, a_profile_of(LeafNodeDistribution()))
    assert found == {"host-a host-b": ["distribution-policy: DistributionPolicy policy wants leaf nodes"]}
    nodes = [a_node("a", taints=["kosmos.io/node=true:NoSchedule", "k:NoSchedule"])]
    found = node_causes(a_pod(), a_state(nodes=nodes), a_profile_of(LeafNodeTaintToleration()))
    assert found == {"a": ["taint: taint k:NoSchedule"]}


def test_sp_priority_waits_for_an_owner() -> None:
    pod = a_pod(owner={"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"})
    (found,) = whole_pod(pod, a_state(nodes="a"), a_profile_of(SPPriority()))
    assert found.startswith("owner-unknown: ") and "web" in found


# -- groups


def test_labels_that_contradict_each_other() -> None:
    labels = {pod_groups.NAME: "one", pod_groups.NAME.replace("kubenexus.io", "sigs.k8s.io"): "two"}
    pod = a_pod(labels={**labels, pod_groups.MIN: "2"})
    (found,) = whole_pod(pod, a_state(nodes="a"), a_profile_of(Coscheduling()))
    assert found.startswith("group-labels: pod group: ")
    (found,) = whole_pod(pod, a_state(nodes="a"), a_profile_of(PreExtender()))
    assert found.startswith("extender-labels: labels for extenders: ")


def test_a_pod_group_that_does_not_exist() -> None:
    pod = a_pod(labels={pod_groups.GROUP: "team"})
    expected = "group-missing: PodGroup default/team of scheduling.x-k8s.io does not exist"
    assert whole_pod(pod, a_state(nodes="a"), a_profile_of(Coscheduling())) == [expected]
    pod = a_pod(schedulingGroup={"podGroupName": "team"})
    expected = "group-missing: PodGroup default/team of scheduling.k8s.io does not exist"
    assert whole_pod(pod, a_state(nodes="a"), a_profile_of(GangScheduling())) == [expected]


def lacking(pod: Any, state: Any) -> list[str]:
    profile = a_profile_of(Coscheduling())
    return [f"{each.cause.code}: {each.cause.text}" for each in group_causes(pod, state, profile)]


def test_members_that_do_not_exist_yet() -> None:
    first, second = pod_groups.gang("team", 2, 4)
    bound = msgspec.structs.replace(second, spec=msgspec.structs.replace(second.spec, node_name="a"))
    state = a_state(nodes="a", pods=[bound])
    expected = "group-members: pod group default/team: 2 of 4 pods exist: default/team-0, default/team-1"
    assert lacking(first, state) == [expected]
    state.known_pods = {pod.uid: pod for pod in (first, bound, *pod_groups.gang("team", 2, 4, first=2))}
    assert lacking(first, state) == []
    assert lacking(a_pod(), state) == []


def test_min_resources() -> None:
    group = pod_groups.a_pod_group("team", 1, minResources={"cpu": "10", "memory": "1Gi"})
    pod = a_pod(labels={pod_groups.GROUP: "team"})
    state = a_state(nodes="ab", pods=[a_pod("other", node="a", cpu="500m")], others=[group])
    expected = "group-resources: pod group default/team needs 10 cpu free in the cluster, 7500m is (minResources)"
    assert lacking(pod, state) == [expected]
