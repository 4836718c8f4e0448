"""Nodes, kubelets, volumes, budgets, namespaces, events and garbage collection, in virtual time."""

from __future__ import annotations

import pytest

from tests.embedded.controllers.workloads import FAST, WEB, condition, names, phases
from tests.embedded.virtual_cluster import VirtualCluster


@pytest.fixture
def cluster() -> VirtualCluster:
    world = VirtualCluster()
    world.nodes(3)
    return world


def test_a_node_becomes_ready_and_reports_its_resources(cluster: VirtualCluster) -> None:
    node = cluster.get("nodes", "n0")
    assert condition(node, "Ready")["status"] == "True"
    assert node["status"]["allocatable"] == node["status"]["capacity"]
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n0"
    assert cluster.get("leases.coordination.k8s.io", "kube-node-lease/n0")["spec"]["holderIdentity"] == "n0"


def test_a_cordoned_node_has_a_taint_until_it_is_uncordoned(cluster: VirtualCluster) -> None:
    cluster.change("nodes", "n0", unschedulable=True)
    cluster.settle()
    taints = cluster.get("nodes", "n0")["spec"]["taints"]
    assert taints == [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    cluster.change("nodes", "n0", unschedulable=False)
    cluster.settle()
    assert "taints" not in cluster.get("nodes", "n0")["spec"]


def test_the_dependents_of_a_deleted_deployment_are_deleted(cluster: VirtualCluster) -> None:
    cluster.create(WEB)
    cluster.settle()
    cluster.delete("deployments.apps", "default/web")
    cluster.settle()
    assert cluster.all("replicasets.apps") == cluster.all("pods") == []


def test_orphans_stay(cluster: VirtualCluster) -> None:
    cluster.create(WEB)
    cluster.settle()
    cluster.delete("deployments.apps", "default/web", propagation_policy="Orphan")
    cluster.settle()
    (left,) = cluster.all("replicasets.apps")
    assert "ownerReferences" not in left["metadata"]
    assert len(cluster.all("pods")) == 4


def test_foreground_deletion_waits_for_what_is_owned() -> None:
    cluster = VirtualCluster(stop_seconds=5.0)
    cluster.nodes(1)
    cluster.create(WEB)
    cluster.settle()
    cluster.delete("deployments.apps", "default/web", propagation_policy="Foreground")
    cluster.settle()
    assert "deletionTimestamp" in cluster.get("deployments.apps", "default/web")["metadata"]
    cluster.settle(6)
    assert cluster.store.get("deployments.apps", "default/web") is None
    assert cluster.all("pods") == []


def test_a_pod_takes_its_time_to_start_and_to_stop() -> None:
    cluster = VirtualCluster(start_seconds=3.0, stop_seconds=4.0)
    cluster.nodes(1)
    cluster.create(WEB.replace("replicas: 4", "replicas: 1"))
    cluster.settle()
    assert phases(cluster.all("pods")) == ["Pending"]
    cluster.settle(3)
    assert phases(cluster.all("pods")) == ["Running"]
    (name,) = names(cluster.all("pods"))
    cluster.delete("deployments.apps", "default/web")
    cluster.settle()
    assert cluster.get("pods", f"default/{name}")["metadata"]["deletionGracePeriodSeconds"] == 30
    cluster.settle(4)
    assert cluster.all("pods") == []


def test_a_claim_that_waits_is_bound_once_a_node_is_chosen(cluster: VirtualCluster) -> None:
    cluster.create(FAST + "volumeBindingMode: WaitForFirstConsumer\n")
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
    cluster.create(claim)
    cluster.settle()
    found = cluster.get("persistentvolumeclaims", "default/c")
    assert found["status"]["phase"] == "Pending"
    metadata = {**found["metadata"], "annotations": {"volume.kubernetes.io/selected-node": "n1"}}
    cluster.update({**found, "metadata": metadata})
    cluster.settle()
    found = cluster.get("persistentvolumeclaims", "default/c")
    volume = cluster.get("persistentvolumes", found["spec"]["volumeName"])
    assert (found["status"]["phase"], volume["status"]["phase"]) == ("Bound", "Bound")
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["z1"]
    cluster.delete("persistentvolumeclaims", "default/c")
    cluster.settle()
    assert cluster.all("persistentvolumeclaims") == cluster.all("persistentvolumes") == []


CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
DEFAULT = "annotations: {storageclass.kubernetes.io/is-default-class: 'true'}"


def default_class(name: str) -> str:
    return FAST.replace("name: fast", f"name: {name}, {DEFAULT}")


@pytest.mark.parametrize(
    ("named", "told"),
    [
        pytest.param("", "no persistent volumes available for this claim and no storage class is set", id="no class"),
        pytest.param("gone", 'storageclass.storage.k8s.io "gone" not found', id="a class that is not there"),
    ],
)
def test_a_claim_that_nothing_is_provisioned_for_says_why(cluster: VirtualCluster, named: str, told: str) -> None:
    cluster.create(CLAIM.replace("{accessModes", f"{{storageClassName: {named}, accessModes") if named else CLAIM)
    cluster.settle()
    assert [each["message"] for each in cluster.all("events") if each["involvedObject"]["name"] == "c"] == [told]
    assert cluster.get("persistentvolumeclaims", "default/c")["status"]["phase"] == "Pending"


def test_a_claim_without_a_class_gets_the_default_class_that_comes_later(cluster: VirtualCluster) -> None:
    cluster.create(CLAIM)
    cluster.create(CLAIM.replace("name: c", "name: none").replace("{accessModes", "{storageClassName: '', accessModes"))
    cluster.settle()
    cluster.create(default_class("fast"))
    cluster.settle()
    claim, other = (cluster.get("persistentvolumeclaims", f"default/{name}") for name in ("c", "none"))
    assert (claim["spec"]["storageClassName"], claim["status"]["phase"]) == ("fast", "Bound")
    assert (other["spec"]["storageClassName"], other["status"]["phase"]) == ("", "Pending")


def test_the_newest_default_class_counts(cluster: VirtualCluster) -> None:
    for name in ("older", "newer"):
        cluster.create(default_class(name))
        cluster.settle(5.0)
    assert cluster.create(CLAIM)["spec"]["storageClassName"] == "newer"


def test_a_claim_takes_the_smallest_volume_that_fits(cluster: VirtualCluster) -> None:
    for name, size in (("small", "1Gi"), ("right", "5Gi"), ("large", "50Gi")):
        spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
        spec["storageClassName"] = "manual"
        cluster.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
    wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual"}
    wanted["resources"] = {"requests": {"storage": "2Gi"}}  # type: ignore[assignment]
    cluster.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": wanted})
    cluster.settle()
    assert cluster.get("persistentvolumeclaims", "default/c")["spec"]["volumeName"] == "right"
    cluster.delete("persistentvolumeclaims", "default/c")
    cluster.settle()
    assert cluster.get("persistentvolumes", "right")["status"]["phase"] == "Released"


def test_a_budget_counts_and_eviction_respects_it(cluster: VirtualCluster) -> None:
    cluster.create(WEB)
    spec = {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}}
    metadata = {"name": "web"}
    cluster.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec})
    cluster.settle()
    status = cluster.get("poddisruptionbudgets.policy", "default/web")["status"]
    assert (status["disruptionsAllowed"], status["currentHealthy"], status["expectedPods"]) == (1, 4, 4)
    pods, (first, second, *_) = cluster.resource("v1", "Pod"), names(cluster.all("pods"))
    cluster.subresources.evict(pods, "default", first, {"metadata": {"name": first}}, cluster.options())
    with pytest.raises(Exception, match="disruption budget") as refused:
        cluster.subresources.evict(pods, "default", second, {"metadata": {"name": second}}, cluster.options())
    assert refused.value.code == 429  # type: ignore[attr-defined]
    cluster.settle()
    assert cluster.get("poddisruptionbudgets.policy", "default/web")["status"]["disruptionsAllowed"] == 1


def test_a_namespace_is_emptied_before_it_is_removed(cluster: VirtualCluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    cluster.settle()
    assert cluster.get("serviceaccounts", "shop/default")
    cluster.create(WEB.replace("name: web}\nspec", "name: web, namespace: shop}\nspec"))
    cluster.settle()
    assert len(cluster.all("pods", "shop")) == 4
    cluster.delete("namespaces", "shop")
    cluster.settle()
    assert cluster.store.get("namespaces", "shop") is None
    assert [name for name in cluster.store.collections() if cluster.store.all(name.name, "shop")] == []


def test_many_alike_events_become_one(cluster: VirtualCluster) -> None:
    cluster.create(WEB.replace("replicas: 4", "replicas: 30"))
    cluster.settle()
    created = [event for event in cluster.all("events") if event["reason"] == "SuccessfulCreate"]
    assert len(created) == 11
    assert max(event["count"] for event in created) == 20


def test_pods_do_not_outlive_their_node_for_long(cluster: VirtualCluster) -> None:
    cluster.create(WEB.replace("replicas: 4", "replicas: 3"))
    cluster.settle()
    cluster.delete("nodes", "n0")
    cluster.settle()
    assert {pod["spec"]["nodeName"] for pod in cluster.all("pods")} == {"n0", "n1", "n2"}
    cluster.settle(41)
    assert phases(cluster.all("pods")) == ["Running"] * 3
    assert {pod["spec"]["nodeName"] for pod in cluster.all("pods")} == {"n1", "n2"}
