"""Resource claims at a real control plane, with the rights of deploy/: allocated, reserved, and never given twice."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.fault_endings import QUICK_LEASE, ROOM, configuration
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import (
    a_deployment,
    a_live_pod,
    apply,
    bound,
    condition,
    noted,
    stowplan,
    wait_until_bound,
)

DEPLOY = Path(__file__).parents[2] / "deploy"
DRIVER = "gpu.example.com"
GROUP = "resource.k8s.io/v1"
KILLS = [pytest.param(4, id="short"), pytest.param(20, id="long", marks=pytest.mark.full)]


def a_class(resource: str = "") -> dict[str, Any]:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    spec = {"selectors": [selector], **({"extendedResourceName": resource} if resource else {})}
    return {"apiVersion": GROUP, "kind": "DeviceClass", "metadata": {"name": DRIVER}, "spec": spec}


def a_slice(node: str, devices: int, **fields: Any) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    listed = [
        {"name": f"gpu-{number}", "attributes": {"index": {"int": number}}, **fields} for number in range(devices)
    ]
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": listed}
    return {"apiVersion": GROUP, "kind": "ResourceSlice", "metadata": {"name": f"{node}-gpu"}, "spec": spec}


def asking(count: int = 1, **fields: Any) -> dict[str, Any]:
    exactly = {"deviceClassName": DRIVER, "count": count, **fields}
    return {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}


def a_claim(name: str, count: int = 1, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": GROUP, "kind": "ResourceClaim", "metadata": {"name": name}, "spec": asking(count, **fields)}


def a_template(name: str, count: int = 1) -> dict[str, Any]:
    spec = {"spec": asking(count)}
    return {"apiVersion": GROUP, "kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": spec}


def of_claim(name: str) -> dict[str, Any]:
    return {"resourceClaims": [{"name": "gpus", "resourceClaimName": name}]}


OF_TEMPLATE: dict[str, Any] = {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "one"}]}


def claims(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    path = f"/apis/{GROUP}/namespaces/{namespace}/resourceclaims"
    items: list[dict[str, Any]] = cluster.api().must("GET", path)["items"]
    return items


def given(cluster: Cluster, namespace: str) -> list[tuple[str, str]]:
    """The pool and name of every device that is allocated."""
    allocated = (each["status"]["allocation"] for each in claims(cluster, namespace) if _is_allocated(each))
    return [(each["pool"], each["device"]) for found in allocated for each in found["devices"]["results"]]


def _is_allocated(claim: dict[str, Any]) -> bool:
    return bool(claim.get("status", {}).get("allocation"))


def _more_given(cluster: Cluster, namespace: str, before: Counter[tuple[str, str]]) -> bool:
    return Counter(given(cluster, namespace)).total() > before.total()


def check_claims(cluster: Cluster, namespace: str) -> None:
    """No device is given twice, and no claim is allocated for nobody."""
    assert [device for device, times in Counter(given(cluster, namespace)).items() if times > 1] == []
    for claim in claims(cluster, namespace):
        if _is_allocated(claim):
            assert claim["status"].get("reservedFor"), f"{claim['metadata']['name']} is allocated for nobody"


@pytest.fixture
def devices(each_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane with three nodes of four devices, and the scheduler's account."""
    each_plane.kubectl("apply", "--filename", str(DEPLOY / "rbac.yaml"))
    names = [f"gpu-{number}" for number in range(3)]
    slices = (a_slice(name, 4) for name in names)
    with each_plane.nodes(3, prefix="gpu", capacity=ROOM), each_plane.having(a_class(), *slices):
        yield each_plane


def account(plane: ControlPlane) -> Path:
    return plane.service_account_kubeconfig("kube-system", "stowplan")


def test_claims_from_templates_and_shared_ones(devices: ControlPlane) -> None:
    with devices.namespace() as namespace, stowplan(devices, "claims", kubeconfig=account(devices)) as program:
        apply(devices, namespace, a_template("one"), a_claim("shared", 2))
        apply(devices, namespace, *(a_live_pod(f"peer-{number}", **of_claim("shared")) for number in range(3)))
        wait_until_bound(devices, namespace, 3, 120, program.explain)
        apply(devices, namespace, a_deployment("web", 10, **OF_TEMPLATE))
        wait_until_bound(devices, namespace, 13, 120, program.explain)
        check_claims(devices, namespace)
        assert len(given(devices, namespace)) == 12
        nodes = bound(devices, namespace)
        assert len({nodes[f"peer-{number}"] for number in range(3)}) == 1
        (shared,) = (each for each in claims(devices, namespace) if each["metadata"]["name"] == "shared")
        assert {each["name"] for each in shared["status"]["reservedFor"]} == {f"peer-{number}" for number in range(3)}
        for claim in claims(devices, namespace):
            (node,) = claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"]
            assert {nodes[each["name"]] for each in claim["status"]["reservedFor"]} == {node}
            assert "allocationTimestamp" in claim["status"]["allocation"]
        program.check()


def test_a_claim_that_cannot_be_satisfied_and_one_that_fails(devices: ControlPlane) -> None:
    with devices.namespace() as namespace, stowplan(devices, "refused", kubeconfig=account(devices)) as program:
        bad = {"cel": {"expression": f'device.attributes["{DRIVER}"].missing == 1'}}
        apply(devices, namespace, a_claim("large", 5), a_claim("bad", selectors=[bad]))
        apply(devices, namespace, a_live_pod("large", **of_claim("large")), a_live_pod("bad", **of_claim("bad")))
        wanted = {
            "large": (
                "Unschedulable",
                "0/3 nodes are available: 3 cannot allocate all claims. still not schedulable, preemption: "
                "0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            ),
            "bad": (
                "SchedulerError",
                f'running "DynamicResources" filter plugin: claim {namespace}/bad: selector #0: CEL runtime error: '
                "no such key: missing",
            ),
        }
        for name, (reason, message) in wanted.items():
            until("the pod is told", partial(condition, devices, namespace, name), 60, program.explain)
            found = condition(devices, namespace, name)
            assert (found["reason"], found["message"]) == (reason, message)
            until("it has an event", partial(noted, devices, namespace, name), 30, program.explain)
            assert noted(devices, namespace, name)[0] == message
        assert given(devices, namespace) == []


def test_an_extended_resource(devices: ControlPlane) -> None:
    resource = "example.com/gpu"
    with devices.namespace() as namespace, stowplan(devices, "extended", kubeconfig=account(devices)) as program:
        devices.kubectl("apply", "--filename=-", input=json.dumps(a_class(resource)))
        containers = [
            {"name": "main", "image": "registry.example/main:1", "resources": {"limits": {resource: "2", "cpu": "1"}}}
        ]
        apply(devices, namespace, *(a_live_pod(f"pod-{number}", containers=containers) for number in range(3)))
        wait_until_bound(devices, namespace, 3, 120, program.explain)
        check_claims(devices, namespace)
        assert len(given(devices, namespace)) == 6
        for number in range(3):
            pod = devices.api().must("GET", f"/api/v1/namespaces/{namespace}/pods/pod-{number}")
            told = pod["status"]["extendedResourceClaimStatus"]
            assert told["resourceClaimName"] in {each["metadata"]["name"] for each in claims(devices, namespace)}


@pytest.mark.parametrize("times", KILLS)
def test_killed_between_the_writes(devices: ControlPlane, tmp_path: Path, times: int) -> None:
    """However often: afterwards every pod is bound, no device is given twice, and no claim is allocated for nobody."""
    with devices.namespace() as namespace:
        config = configuration(tmp_path, namespace, QUICK_LEASE % "stowplan")  # the one that the account may hold
        apply(devices, namespace, a_template("one"))
        for round_ in range(times):
            with stowplan(devices, f"killed-{round_}", "--config", config, kubeconfig=account(devices)) as program:
                program.wait_until_leading()
                devices.kubectl("-n", namespace, "delete", "pods", "--all", "--wait=true")
                before = Counter(given(devices, namespace))
                apply(devices, namespace, *(a_live_pod(f"r{round_}-{n}", **OF_TEMPLATE) for n in range(12)))
                until("a claim is written", partial(_more_given, devices, namespace, before), 60)
                program.kill()
                check_claims(devices, namespace)
        with stowplan(devices, "killed-last", "--config", config, kubeconfig=account(devices)) as program:
            wait_until_bound(devices, namespace, 12, 120, program.explain)
            check_claims(devices, namespace)


def test_a_claim_deleted_and_a_slice_that_vanishes(devices: ControlPlane) -> None:
    with devices.namespace() as namespace, stowplan(devices, "vanishing", kubeconfig=account(devices)) as program:
        apply(devices, namespace, a_template("one"), a_claim("gone", 5))
        apply(devices, namespace, a_live_pod("waits", **of_claim("gone")))
        until("the pod is told", lambda: condition(devices, namespace, "waits"), 60, program.explain)
        devices.kubectl("-n", namespace, "delete", "resourceclaim", "gone")
        devices.kubectl("delete", "resourceslice", "gpu-2-gpu")
        apply(devices, namespace, a_deployment("web", 12, **OF_TEMPLATE))
        wait_until_bound(devices, namespace, 8, 120, program.explain)
        time.sleep(1)  # nothing more may come
        assert len(bound(devices, namespace)) == 8
        assert {pool for pool, _ in given(devices, namespace)} == {"gpu-0", "gpu-1"}
        check_claims(devices, namespace)
        devices.kubectl("apply", "--filename=-", input=json.dumps(a_slice("gpu-2", 4)))
        wait_until_bound(devices, namespace, 12, 120, program.explain)
        check_claims(devices, namespace)
        program.check()
