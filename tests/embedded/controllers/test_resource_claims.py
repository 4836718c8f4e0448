"""Resource claims from templates to deallocation, and the pretend drivers of devices, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.embedded.controllers.device_drivers import DEVICES, pools
from stowplan.objects.errors import StowplanError
from tests.embedded.virtual_cluster import VirtualCluster

CLAIMS, SLICES = "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io"
FINALIZER = "resource.kubernetes.io/delete-protection"
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: default}
spec:
  metadata: {labels: {team: a}}
  spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
"""
RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "n0", "device": "gpu-0"}


def a_pod(name: str = "train", **claim: str) -> dict[str, Any]:
    claims = [{"name": "gpu", **(claim or {"resourceClaimTemplateName": "gpu"})}]
    containers = [{"name": "main", "image": "registry.example/train:1", "resources": {"claims": [{"name": "gpu"}]}}]
    metadata = {"name": name, "namespace": "default"}
    spec = {"containers": containers, "resourceClaims": claims}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def work(cluster: VirtualCluster) -> None:
    """The controllers work; nobody schedules."""
    cluster.controllers.settle(cluster.now)


def allocate(cluster: VirtualCluster, key: str, *pods: dict[str, Any], **result: Any) -> None:
    """Do what a scheduler does."""
    claim = cluster.get(CLAIMS, key)
    finalizers = [*claim["metadata"].get("finalizers", []), FINALIZER]
    claim = cluster.update({**claim, "metadata": {**claim["metadata"], "finalizers": finalizers}})
    users = [{"resource": "pods", "name": p["metadata"]["name"], "uid": p["metadata"]["uid"]} for p in pods]
    status = {"allocation": {"devices": {"results": [{**RESULT, **result}]}}, "reservedFor": users}
    cluster.update({**claim, "status": status if users else {"allocation": status["allocation"]}}, "status")
    work(cluster)


@pytest.fixture
def cluster() -> VirtualCluster:
    return VirtualCluster()


def made(cluster: VirtualCluster) -> dict[str, Any]:
    (claim,) = cluster.all(CLAIMS)
    return claim


# -- claims of templates


def test_a_claim_is_made_from_a_template_and_named_in_the_status_of_the_pod(cluster: VirtualCluster) -> None:
    cluster.create(TEMPLATE)
    pod = cluster.create(a_pod())
    work(cluster)
    claim = made(cluster)
    name = claim["metadata"]["name"]
    assert name.startswith("train-gpu-") and len(name) == len("train-gpu-") + 5
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert claim["metadata"]["labels"] == {"team": "a"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": pod["metadata"]["uid"], "controller": True}
    assert claim["metadata"]["ownerReferences"] == [owner]
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    status = cluster.get("pods", "default/train")["status"]
    assert status["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": name}]


def test_a_pod_waits_for_its_template_and_says_so(cluster: VirtualCluster) -> None:
    cluster.create(a_pod())
    work(cluster)
    (event,) = [each for each in cluster.all("events") if each["reason"] == "FailedResourceClaimCreation"]
    found = 'resourceclaimtemplate.resource.k8s.io "gpu" not found'
    assert event["message"] == f'PodResourceClaim gpu: resource claim template "gpu": {found}'
    cluster.create(TEMPLATE)
    work(cluster)
    assert made(cluster)["metadata"]["name"].startswith("train-gpu-")


def test_a_claim_that_was_deleted_is_made_again(cluster: VirtualCluster) -> None:
    cluster.create(TEMPLATE)
    cluster.create(a_pod())
    work(cluster)
    first = made(cluster)["metadata"]["name"]
    cluster.delete(CLAIMS, f"default/{first}")
    work(cluster)
    second = made(cluster)["metadata"]["name"]
    assert second != first
    status = cluster.get("pods", "default/train")["status"]
    assert status["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": second}]


def test_a_long_name_is_cut_so_that_both_names_remain(cluster: VirtualCluster) -> None:
    cluster.create(TEMPLATE)
    cluster.create(a_pod("a" * 60))
    work(cluster)
    name = made(cluster)["metadata"]["name"]
    assert len(name) <= 63 and name.startswith("a" * 50) and "-" in name


# -- users of claims


def test_the_claim_of_a_finished_pod_is_deallocated_and_deleted(cluster: VirtualCluster) -> None:
    cluster.create(TEMPLATE)
    pod = cluster.create(a_pod())
    work(cluster)
    allocate(cluster, f"default/{made(cluster)['metadata']['name']}", pod)
    found = cluster.get("pods", "default/train")
    cluster.update({**found, "status": {**found["status"], "phase": "Succeeded"}}, "status")
    work(cluster)
    assert cluster.all(CLAIMS) == []


def test_the_claim_of_a_deleted_pod_goes_with_it(cluster: VirtualCluster) -> None:
    cluster.create(TEMPLATE)
    pod = cluster.create(a_pod())
    work(cluster)
    allocate(cluster, f"default/{made(cluster)['metadata']['name']}", pod)
    cluster.delete("pods", "default/train")
    work(cluster)
    assert cluster.all(CLAIMS) == []


def test_a_shared_claim_stays_allocated_until_its_last_user_is_gone(cluster: VirtualCluster) -> None:
    cluster.create(CLAIM)
    pods = [cluster.create(a_pod(name, resourceClaimName="shared")) for name in ("a", "b")]
    work(cluster)
    allocate(cluster, "default/shared", *pods)
    cluster.delete("pods", "default/a")
    work(cluster)
    status = cluster.get(CLAIMS, "default/shared")["status"]
    assert [user["name"] for user in status["reservedFor"]] == ["b"] and "allocation" in status
    cluster.delete("pods", "default/b")
    work(cluster)
    claim = cluster.get(CLAIMS, "default/shared")
    assert claim["status"] == {} and "finalizers" not in claim["metadata"]


def test_a_claim_that_nobody_used_yet_stays_allocated(cluster: VirtualCluster) -> None:
    cluster.create(CLAIM)
    allocate(cluster, "default/shared")
    assert "allocation" in cluster.get(CLAIMS, "default/shared")["status"]


def test_an_allocated_claim_is_deleted_when_its_users_are_gone(cluster: VirtualCluster) -> None:
    cluster.create(CLAIM)
    pod = cluster.create(a_pod(resourceClaimName="shared"))
    allocate(cluster, "default/shared", pod)
    cluster.delete(CLAIMS, "default/shared")
    work(cluster)
    assert "deletionTimestamp" in cluster.get(CLAIMS, "default/shared")["metadata"]
    cluster.delete("pods", "default/train")
    work(cluster)
    assert cluster.all(CLAIMS) == []


def test_a_claim_is_reserved_for_a_pod_that_was_bound_without_a_scheduler(cluster: VirtualCluster) -> None:
    cluster.create(CLAIM)
    allocate(cluster, "default/shared")
    cluster.nodes(1)  # `nodes` and `settle` bind pods in turn, whatever they claim
    cluster.create(a_pod(resourceClaimName="shared"))
    cluster.settle()
    status = cluster.get(CLAIMS, "default/shared")["status"]
    assert [user["name"] for user in status["reservedFor"]] == ["train"]


# -- pretend drivers


def devices_of(text: str) -> dict[str, Any]:
    metadata = {"name": "n0", "annotations": {DEVICES: text}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


def test_a_node_publishes_the_devices_of_its_annotation(cluster: VirtualCluster) -> None:
    text = "gpu.example.com: {count: 2, attributes: {model: a100, ecc: true, numa: 1}, capacity: {memory: 80Gi}}"
    node = cluster.create(devices_of(text))
    work(cluster)
    (found,) = cluster.all(SLICES)
    like = {
        "attributes": {"model": {"string": "a100"}, "ecc": {"bool": True}, "numa": {"int": 1}},
        "capacity": {"memory": {"value": "80Gi"}},
    }
    assert found["spec"] == {
        "driver": "gpu.example.com", "nodeName": "n0",
        "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", **like}, {"name": "gpu-1", **like}],
    }  # fmt: skip
    assert found["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


def test_a_changed_annotation_makes_a_new_generation_and_none_makes_no_slices(cluster: VirtualCluster) -> None:
    cluster.create(devices_of("gpu.example.com: 200"))
    work(cluster)
    assert [len(each["spec"]["devices"]) for each in cluster.all(SLICES)] == [128, 72]
    for text, expected in (("gpu.example.com: 3", [(2, 1, 3)]), ("", [])):
        node = cluster.get("nodes", "n0")
        cluster.update({**node, "metadata": {**node["metadata"], "annotations": {DEVICES: text}}})
        work(cluster)
        specs = [each["spec"] for each in cluster.all(SLICES)]
        pools = [
            (each["pool"]["generation"], each["pool"]["resourceSliceCount"], len(each["devices"])) for each in specs
        ]
        assert pools == expected


def test_the_slices_of_a_deleted_node_go(cluster: VirtualCluster) -> None:
    cluster.create(devices_of("gpu.example.com: 1"))
    work(cluster)
    cluster.delete("nodes", "n0")
    work(cluster)
    assert cluster.all(SLICES) == []


def test_a_slice_that_somebody_deletes_is_published_again(cluster: VirtualCluster) -> None:
    cluster.create(devices_of("gpu.example.com: 1"))
    work(cluster)
    cluster.delete(SLICES, "n0-gpu.example.com-0")
    work(cluster)
    assert len(cluster.all(SLICES)) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("[1]", "found list; expected drivers with counts, such as `gpu.example.com: 8`", id="a list"),
        pytest.param("gpu.example.com: many", "the count must be a number from 0 to 1024", id="a word"),
        pytest.param("gpu.example.com: true", "the count must be a number from 0 to 1024", id="a boolean"),
        pytest.param("gpu.example.com: 5000", "the count must be a number from 0 to 1024", id="too many"),
        pytest.param("GPU_1: 5", "'GPU_1' is no name of a driver", id="no driver's name"),
        pytest.param("a: {count: 1, attributes: 5}", "attributes and capacity must be mappings", id="attributes"),
        pytest.param("a: {b", "line 2: not YAML", id="not YAML"),
    ],
)
def test_an_annotation_that_cannot_be_read_is_told_of(cluster: VirtualCluster, text: str, problem: str) -> None:
    with pytest.raises(StowplanError) as error:
        pools(text)
    assert problem in str(error.value)
    cluster.create(devices_of(text))
    work(cluster)
    (event,) = [each for each in cluster.all("events") if each["reason"] == "InvalidDevices"]
    assert problem in event["message"] and cluster.all(SLICES) == []


def test_devices_that_the_api_refuses_are_told_of(cluster: VirtualCluster) -> None:
    cluster.create(devices_of("gpu.example.com: {count: 1, attributes: {a-b: 1}}"))
    work(cluster)
    (event,) = [each for each in cluster.all("events") if each["reason"] == "InvalidDevices"]
    assert "a valid C identifier must start with" in event["message"]


def test_devices_with_binding_conditions_are_prepared_when_their_claim_is_reserved(cluster: VirtualCluster) -> None:
    cluster.create(CLAIM)
    pod = cluster.create(a_pod(resourceClaimName="shared"))
    allocate(cluster, "default/shared", pod, bindingConditions=["example.com/attached"])
    (device,) = cluster.get(CLAIMS, "default/shared")["status"]["devices"]
    assert [(each["type"], each["status"]) for each in device["conditions"]] == [("example.com/attached", "True")]
