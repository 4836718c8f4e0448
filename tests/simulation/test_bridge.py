"""A scheduler engine and an embedded API server with its controllers, in one process and in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stowplan.embedded import manifests
from stowplan.kube.resources import RESOURCES, custom
from stowplan.objects.actions import (
    Action,
    Ask,
    Bind,
    Create,
    Delete,
    Evict,
    Nominate,
    Patch,
    PodRef,
    Read,
    Record,
    RequestEviction,
    SetCondition,
)
from stowplan.objects.applications import POD_GROUP
from stowplan.objects.changes import Gone, Put
from stowplan.objects.custom_resources import CustomResource
from stowplan.objects.finished_members import FinishedMember
from stowplan.objects.meta import ApiValue, Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.placement.scheduler import PlacementScheduler
from stowplan.plugins import clusters
from stowplan.simulation.bridge import Bridge
from tests.embedded.controllers.workloads import WEB, condition
from tests.embedded.virtual_cluster import VirtualCluster
from tests.simulation.scheduled_cluster import EngineCluster, a_scheduled_cluster

GROUP = "scheduling.x-k8s.io"
FLEET = "cluster.open-cluster-management.io"
DEFINITIONS = Path(manifests.__file__).with_name("definitions")
DEFINITION = f"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: podgroups.{GROUP}}}
spec:
  group: {GROUP}
  scope: Namespaced
  names: {{plural: podgroups, kind: PodGroup}}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"""


def pod_manifest(name: str, *, cpu: str = "1", priority_class: str = "", **metadata: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    spec: dict[str, Any] = {"containers": [container]}
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def node_manifest(name: str, cpu: str = "2") -> dict[str, Any]:
    capacity = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"capacity": capacity}}


def ref(cluster: VirtualCluster, name: str) -> PodRef:
    return PodRef("default", name, cluster.get("pods", f"default/{name}")["metadata"]["uid"])


def a_pending_pod() -> tuple[VirtualCluster, Bridge, PodRef]:
    """A pod that no scheduler looks at, and a bridge to it."""
    cluster = VirtualCluster(controllers=False)
    cluster.create(pod_manifest("p"))
    return cluster, Bridge(cluster.api, [RESOURCES["Pod"]]), ref(cluster, "p")


# -- a scheduler and controllers together


def test_the_pods_of_a_deployment_are_scheduled_and_run() -> None:
    cluster = a_scheduled_cluster()
    cluster.nodes(2)
    cluster.create(WEB)
    cluster.settle()
    assert len(cluster.placed()) == 4
    assert {pod["status"]["phase"] for pod in cluster.all("pods")} == {"Running"}
    assert cluster.get("deployments.apps", "default/web")["status"]["availableReplicas"] == 4
    reasons = [event["reason"] for event in cluster.all("events")]
    assert reasons.count("Scheduled") == 4
    assert all(result.succeeded for result in cluster.results.values())
    assert cluster.problems == []


def test_a_pod_that_does_not_fit_waits_for_a_node() -> None:
    cluster = a_scheduled_cluster()
    cluster.create(node_manifest("small", cpu="1"))
    cluster.create(pod_manifest("p", cpu="2"))
    cluster.settle()
    scheduled = condition(cluster.get("pods", "default/p"), "PodScheduled")
    assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
    cluster.create(node_manifest("large", cpu="4"))
    cluster.settle()
    cluster.settle(60.0)
    assert cluster.placed() == {"p": "large"}


def test_a_pod_of_higher_priority_preempts() -> None:
    cluster = a_scheduled_cluster()
    cluster.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                    "metadata": {"name": "high"}, "value": 100})  # fmt: skip
    cluster.create(node_manifest("n", cpu="1"))
    cluster.create(pod_manifest("low"))
    cluster.settle()
    cluster.create(pod_manifest("urgent", priority_class="high"))
    cluster.settle()
    cluster.settle(60.0)
    assert cluster.placed() == {"urgent": "n"}
    (eviction,) = (action for action in cluster.actions if isinstance(action, Evict))
    assert eviction.pod.name == "low"
    assert cluster.results[eviction.id].succeeded


def test_the_same_seed_gives_the_same_actions() -> None:
    def run(seed: int) -> list[Action]:
        cluster = a_scheduled_cluster(seed)
        cluster.nodes(5)
        cluster.create(WEB)
        cluster.settle()
        cluster.change("deployments.apps", "default/web", replicas=8)
        cluster.settle(10.0)
        return cluster.actions

    assert run(1) == run(1)
    assert [action for action in run(1) if isinstance(action, Bind)] != [
        action for action in run(2) if isinstance(action, Bind)
    ]


def test_a_pod_that_is_deleted_before_its_binding_gives_404() -> None:
    cluster = a_scheduled_cluster()
    cluster.nodes(1)
    cluster.create(pod_manifest("p"))
    cluster.deliver()
    bind = next(action for action in cluster.engine.step(cluster.now) if isinstance(action, Bind))
    cluster.delete("pods", "default/p")
    cluster.perform([bind])
    assert cluster.results[bind.id].status == 404
    cluster.settle()
    assert cluster.placed() == {}


def test_the_placement_engine_uses_the_same_bridge() -> None:
    kinds = ("ManagedCluster", "ManagedClusterSet", "ManagedClusterSetBinding", "Placement", "PlacementDecision")
    cluster = EngineCluster(PlacementScheduler(clusters.policy()), (*kinds, "AddOnPlacementScore"), controllers=False)
    manifests.load(cluster.api, [DEFINITIONS], cluster.now)
    for name in ("a", "b", "c"):
        metadata = {"name": name, "labels": {f"{FLEET}/clusterset": "all"}}
        cluster.create({"apiVersion": f"{FLEET}/v1", "kind": "ManagedCluster", "metadata": metadata,
                        "spec": {"hubAcceptsClient": True}})  # fmt: skip
    cluster.create({"apiVersion": f"{FLEET}/v1beta2", "kind": "ManagedClusterSet", "metadata": {"name": "all"}})
    cluster.create({"apiVersion": f"{FLEET}/v1beta2", "kind": "ManagedClusterSetBinding", "metadata": {"name": "all"},
                    "spec": {"clusterSet": "all"}})  # fmt: skip
    cluster.create({"apiVersion": f"{FLEET}/v1beta1", "kind": "Placement", "metadata": {"name": "p"},
                    "spec": {"numberOfClusters": 2}})  # fmt: skip
    cluster.settle()
    (decision,) = cluster.all(f"placementdecisions.{FLEET}")
    assert len(decision["status"]["decisions"]) == 2
    assert cluster.get(f"placements.{FLEET}", "default/p")["status"]["numberOfSelectedClusters"] == 2
    assert all(result.succeeded for result in cluster.results.values())


# -- changes


def test_each_change_comes_once_and_in_order() -> None:
    cluster = VirtualCluster(controllers=False)
    cluster.create(node_manifest("n"))
    bridge = Bridge(cluster.api, [RESOURCES["Node"], RESOURCES["Pod"]])
    cluster.create(pod_manifest("p"))
    cluster.delete("pods", "default/p", grace_period_seconds=0)
    cluster.create(pod_manifest("p"))
    found = [(type(change), type(change.object), change.object.name) for change in bridge.changes()]
    # A deleted pod is first seen terminating, then gone.
    assert found == [(Put, Node, "n"), (Put, Pod, "p"), (Put, Pod, "p"), (Gone, Pod, "p"), (Put, Pod, "p")]
    assert list(bridge.changes()) == []


def test_a_kind_that_was_not_asked_for_is_left_out() -> None:
    cluster = VirtualCluster(controllers=False)
    bridge = Bridge(cluster.api, [RESOURCES["Pod"]])
    cluster.create(node_manifest("n"))
    assert list(bridge.changes()) == []


def test_a_closed_bridge_follows_no_longer() -> None:
    cluster, bridge, _ = a_pending_pod()
    bridge.close()
    cluster.delete("pods", "default/p")
    assert [type(change) for change in bridge.changes()] == [Put]


def test_a_pod_that_ends_is_gone() -> None:
    """As with a watch of `status.phase!=Succeeded,status.phase!=Failed`."""
    cluster, bridge, _ = a_pending_pod()
    found = cluster.get("pods", "default/p")
    cluster.update({**found, "status": {**found["status"], "phase": "Succeeded"}}, "status")
    put, gone = bridge.changes()
    assert (type(put), type(gone)) == (Put, Gone)
    last = gone.object
    assert isinstance(last, Pod) and last.status.phase == "Pending", "the version before"
    now = cluster.get("pods", "default/p")["metadata"]["resourceVersion"]
    assert last.metadata.resource_version == now != put.object.metadata.resource_version


def test_a_pod_of_a_group_that_ends_becomes_a_finished_member() -> None:
    cluster = VirtualCluster(controllers=False)
    for name, labels in (("of-a-group", {POD_GROUP: "g"}), ("alone", {})):
        cluster.create(pod_manifest(name, labels=labels))
    bridge = Bridge(cluster.api, [RESOURCES["Pod"], RESOURCES["FinishedMember"]])
    assert [type(change.object) for change in bridge.changes()] == [Pod, Pod]
    for name in ("of-a-group", "alone"):
        found = cluster.get("pods", f"default/{name}")
        cluster.update({**found, "status": {**found["status"], "phase": "Failed"}}, "status")
    cluster.delete("pods", "default/of-a-group")
    told = [(type(change), type(change.object), change.object.name) for change in bridge.changes()]
    ended = [(Gone, Pod, "of-a-group"), (Put, FinishedMember, "of-a-group"), (Gone, Pod, "alone")]
    assert told[:3] == ended and told[-1] == (Gone, FinishedMember, "of-a-group")
    assert (Put, FinishedMember, "alone") not in told


def test_an_object_that_cannot_be_read_is_reported_and_skipped() -> None:
    cluster = VirtualCluster(controllers=False)
    cluster.create(DEFINITION)
    problems: list[str] = []
    bridge = Bridge(cluster.api, [RESOURCES["SigsPodGroup"]], on_problem=problems.append)
    cluster.create({"apiVersion": f"{GROUP}/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"},
                    "spec": {"minMember": "many"}})  # fmt: skip
    assert list(bridge.changes()) == []
    assert len(problems) == 1 and problems[0].startswith("SigsPodGroup: ")


# -- actions


def test_an_action_writes_what_it_says() -> None:
    cluster, bridge, pod = a_pending_pod()
    actions: list[Action] = [
        Nominate(id=1, pod=pod, node_name="n"),
        SetCondition(id=2, pod=pod, status="False", reason="Unschedulable", message="0/0", nominated_node=""),
        Record(id=3, pod=pod, type="Normal", reason="Scheduled", action="Binding", note="done",
               reporting_controller="default-scheduler"),
        Read(id=4, pod=pod),
        Bind(id=5, pod=pod, node_name="n"),
        Evict(id=6, pod=pod, reason="PreemptionByScheduler", message="for another"),
    ]  # fmt: skip
    assert [bridge.perform(action, cluster.now).status for action in actions] == [200, 200, 201, 200, 201, 200]
    found = cluster.get("pods", "default/p")
    assert found["spec"]["nodeName"] == "n" and "nominatedNodeName" not in found["status"]
    assert "deletionTimestamp" in found["metadata"]
    assert condition(found, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
    assert [event["message"] for event in cluster.all("events")] == ["done"]


@pytest.mark.parametrize(
    ("allowed", "status"), [pytest.param(1, 201, id="it may go"), pytest.param(0, 429, id="not now")]
)
def test_an_eviction_keeps_disruption_budgets(allowed: int, status: int) -> None:
    cluster, bridge, pod = a_pending_pod()
    bridge.perform(Bind(pod=pod, node_name="n"), cluster.now)
    found = cluster.get("pods", "default/p")
    cluster.update({**found, "status": {**found["status"], "phase": "Running"}}, "status")
    budget = cluster.create(
        {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {}, "minAvailable": 0},
        }
    )  # fmt: skip
    status_of = {"disruptionsAllowed": allowed, "observedGeneration": budget["metadata"]["generation"]}
    cluster.update({**budget, "status": {**budget.get("status", {}), **status_of}}, "status")
    result = bridge.perform(RequestEviction(id=7, pod=pod, message="m"), cluster.now)
    assert (result.id, result.status) == (7, status)
    assert ("deletionTimestamp" in cluster.get("pods", "default/p")["metadata"]) == (status == 201)


def test_events_can_be_left_out() -> None:
    cluster, _, pod = a_pending_pod()
    bridge = Bridge(cluster.api, [], record_events=False)
    event = Record(pod=pod, type="Normal", reason="Scheduled", action="Binding", note="", reporting_controller="s")
    assert bridge.perform(event, cluster.now).status == 202
    assert cluster.all("events") == []


@pytest.mark.parametrize(
    ("action", "status"),
    [
        pytest.param(Bind(id=7, pod=PodRef("default", "gone", "u"), node_name="n"), 404, id="no such pod to bind"),
        pytest.param(Bind(id=7, pod=PodRef("default", "p", "other"), node_name="n"), 409, id="bind: another uid"),
        pytest.param(Evict(id=7, pod=PodRef("default", "gone", "u"), reason="r", message=""), 404, id="evict: gone"),
        pytest.param(RequestEviction(id=7, pod=PodRef("default", "p", "other"), message=""), 409, id="another uid"),
        pytest.param(RequestEviction(id=7, pod=PodRef("default", "no", "u"), message=""), 404, id="no pod to evict"),
        pytest.param(Read(id=7, pod=PodRef("default", "p", "other")), 404, id="a later pod has its name"),
        pytest.param(Read(id=7, pod=PodRef("default", "gone", "u")), 404, id="no such pod to read"),
        pytest.param(Create(id=7, kind="Pod", key="default/p", body=pod_manifest("p")), 409, id="exists already"),
        pytest.param(Delete(id=7, kind="Node", key="n", uid="u", resource_version="1"), 404, id="no such node"),
        pytest.param(Patch(id=7, kind="PodGroup", key="default/g", body={}), 404, id="a kind that is not served"),
        pytest.param(Patch(id=7, kind="Unheard", key="g", body={}), 404, id="a kind that nobody knows"),
        pytest.param(Patch(id=7, kind="Pod", key="default/p", body=[{"op": "test", "path": "/kind", "value": "x"}]),
                     422, id="the test of a JSON patch fails"),
        pytest.param(Ask(id=7, extender=0, verb="filter", pod=PodRef("default", "p", "u")), 0, id="no extenders"),
    ],
)  # fmt: skip
def test_a_refusal_has_the_status_that_the_api_server_gives(action: Action, status: int) -> None:
    cluster, bridge, _ = a_pending_pod()
    result = bridge.perform(action, cluster.now)
    assert (result.id, result.status) == (7, status)
    assert result.message


def test_a_second_binding_is_a_conflict() -> None:
    cluster, bridge, pod = a_pending_pod()
    assert bridge.perform(Bind(pod=pod, node_name="a"), cluster.now).status == 201
    result = bridge.perform(Bind(pod=pod, node_name="b"), cluster.now)
    assert result.status == 409 and 'already assigned to node "a"' in result.message


def test_objects_of_a_custom_kind_are_created_patched_and_deleted() -> None:
    cluster = VirtualCluster(controllers=False)
    cluster.create(DEFINITION)
    bridge = Bridge(cluster.api, [RESOURCES["SigsPodGroup"]])
    body = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3}}
    assert bridge.perform(Create(kind="SigsPodGroup", key="default/g", body=body), cluster.now).status == 201
    patch = Patch(kind="SigsPodGroup", key="default/g", body={"status": {"phase": "Pending"}})
    assert bridge.perform(patch, cluster.now).status == 200
    found = cluster.get(f"podgroups.{GROUP}", "default/g")
    assert found["status"] == {"phase": "Pending"}
    metadata = found["metadata"]
    stale = Delete(kind="SigsPodGroup", key="default/g", uid=metadata["uid"], resource_version="1")
    assert bridge.perform(stale, cluster.now).status == 409
    exact = Delete(
        kind="SigsPodGroup", key="default/g", uid=metadata["uid"], resource_version=metadata["resourceVersion"]
    )
    assert bridge.perform(exact, cluster.now).status == 200
    assert [type(change) for change in bridge.changes()] == [Put, Put, Gone]


# -- kinds that plugins bring


class GangSpec(ApiValue, frozen=True):
    min_member: int = 1


class Gang(Object, frozen=True):
    """The same resource as SigsPodGroup, read by a type of a plugin's own."""

    spec: GangSpec = GangSpec()


GANGS = custom(CustomResource(Gang, group=GROUP, version="v1alpha1", plural="podgroups", kind="PodGroup"), "Gangs")


def test_a_kind_that_a_plugin_brings_is_read_beside_a_known_one_and_written() -> None:
    cluster = VirtualCluster(controllers=False)
    problems: list[str] = []
    bridge = Bridge(cluster.api, [RESOURCES["SigsPodGroup"], GANGS], on_problem=problems.append)
    cluster.create(DEFINITION)
    body = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3}}
    assert bridge.perform(Create(kind="Gang", key="default/g", body=body), cluster.now).status == 201
    assert {type(change.object).__name__ for change in bridge.changes()} == {"SigsPodGroup", "Gang"}
    found = cluster.get(f"podgroups.{GROUP}", "default/g")
    cluster.update({**found, "spec": {"minMember": "many"}})
    assert list(bridge.changes()) == []
    assert problems[1].startswith("Gang of plugin Gangs: default/g cannot be read and is skipped: Gang g: spec")
    metadata = cluster.get(f"podgroups.{GROUP}", "default/g")["metadata"]
    delete = Delete(kind="Gang", key="default/g", uid=metadata["uid"], resource_version=metadata["resourceVersion"])
    assert bridge.perform(delete, cluster.now).status == 200
    gone = {type(change.object): change.object for change in bridge.changes() if isinstance(change, Gone)}
    assert gone[Gang] == Gang(metadata=gone[Gang].metadata, spec=GangSpec(3)), "the last version that could be read"
