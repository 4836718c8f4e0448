"""A scheduler's whole work, in the embedded cluster and on real ones; there with the rights of `deploy/` alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import EVERYWHERE, ON_EACH_SERVER
from tests.controlplane.deployed import check_no_limit_met, configuration, deployed
from tests.controlplane.fixtures import on_server
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import stowplan

PACKED = {
    "schedulerName": "packed",
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {
                "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]},
            },
        }
    ],
}


@pytest.fixture(
    scope="module",
    params=[EVERYWHERE[0], *ON_EACH_SERVER],
)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """With our scheduler at work in it: the ConfigMap's configuration, a second profile, and kube-scheduler nowhere."""
    folder, config = tmp_path_factory.mktemp("stowplan"), configuration()
    config["profiles"].append(PACKED)
    if request.param == "embedded":
        file, found = folder / "config.yaml", request.getfixturevalue("embedded")
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        with stowplan(found, "at-work", "--config", str(file)) as program:
            program.wait_until_leading()
            yield found
    else:
        with on_server(request.param, request) as plane, deployed(plane, folder, config) as scheduler:
            yield plane
            check_no_limit_met(scheduler.program.log)


def a_pod(cluster: Cluster, namespace: str, name: str, cpu: str = "100m", **spec: Any) -> None:
    finalizers = spec.pop("finalizers", [])
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    body = {
        "metadata": {"name": name, "finalizers": finalizers},
        "spec": {"schedulerName": "stowplan", "containers": [container], **spec},
    }
    cluster.api().must("POST", f"/api/v1/namespaces/{namespace}/pods", body)


def pod(cluster: Cluster, namespace: str, name: str) -> Any:
    answer = cluster.api().get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    return answer.json() if answer.status == 200 else None


def node_of(cluster: Cluster, namespace: str, name: str) -> str:
    return str(pod(cluster, namespace, name)["spec"].get("nodeName", ""))


def condition(found: Any, kind: str) -> Any:
    return next((each for each in found["status"].get("conditions", []) if each["type"] == kind), None)


def refused(cluster: Cluster, namespace: str, name: str) -> bool:
    scheduled = condition(pod(cluster, namespace, name), "PodScheduled")
    return scheduled is not None and scheduled["reason"] == "Unschedulable"


def events(cluster: Cluster, namespace: str, name: str, reason: str) -> list[Any]:
    found = cluster.api().must("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    return [each for each in found if each["regarding"]["name"] == name and each["reason"] == reason]


def test_deployments_run_and_each_pod_has_its_event(cluster: Cluster, namespace: str) -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"schedulerName": "stowplan", "containers": [{"name": "c", "image": "pause"}]},
    }
    body = {
        "metadata": {"name": "web"},
        "spec": {"replicas": 6, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    with cluster.nodes(3) as nodes:
        cluster.api().must("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", body)
        cluster.kubectl("rollout", "status", "deployment/web", "--timeout=120s", "--namespace", namespace)
        pods = cluster.api().must("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        names = [each["metadata"]["name"] for each in pods]
        until("each pod has its event", lambda: all(events(cluster, namespace, name, "Scheduled") for name in names))
        written = [event for name in names for event in events(cluster, namespace, name, "Scheduled")]
    assert sorted(each["spec"]["nodeName"] for each in pods) == sorted(2 * nodes), "equal pods are spread"
    assert all(each["status"]["phase"] == "Running" for each in pods)
    assert len(written) == 6
    assert {event["reportingController"] for event in written} == {"stowplan"}


def test_a_pending_pod_says_why_and_a_freed_node_wakes_it(cluster: Cluster, namespace: str) -> None:
    with cluster.nodes(1, prefix="small", capacity={"cpu": "1"}) as (node,):
        a_pod(cluster, namespace, "first", "800m")
        until("the first is bound", lambda: node_of(cluster, namespace, "first"))
        a_pod(cluster, namespace, "second", "800m")
        until("the second is refused", lambda: refused(cluster, namespace, "second"))
        expected = "0/1 nodes are available: 1 Insufficient cpu."
        until("describe shows it", lambda: expected in cluster.kubectl("describe", "pod", "second", "-n", namespace))
        described = cluster.kubectl("describe", "pod", "second", "-n", namespace)
        assert "FailedScheduling" in described
        assert "stowplan" in described
        cluster.kubectl("delete", "pod", "first", "-n", namespace, "--now")
        # A wake, not the flush after five minutes.
        until("the second is bound", lambda: node_of(cluster, namespace, "second") == node, 60)


def test_preemption_nominates_and_evicts(cluster: Cluster, namespace: str) -> None:
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "deploy-urgent"},
        "value": 1000,
    }
    with cluster.having(urgent), cluster.nodes(1, prefix="full", capacity={"cpu": "1"}) as (node,):
        # The finalizer holds the victim back, so that what happens in between can be seen.
        a_pod(cluster, namespace, "low", "800m", finalizers=["stowplan.test/held"])
        until("the low one is bound", lambda: node_of(cluster, namespace, "low"))
        a_pod(cluster, namespace, "high", "800m", priorityClassName="deploy-urgent")
        until("it is nominated", lambda: pod(cluster, namespace, "high")["status"].get("nominatedNodeName") == node)
        until("the victim is deleted", lambda: pod(cluster, namespace, "low")["metadata"].get("deletionTimestamp"))
        assert condition(pod(cluster, namespace, "low"), "DisruptionTarget")["reason"] == "PreemptionByScheduler"
        cluster.kubectl(
            "patch", "pod", "low", "-n", namespace, "--type=merge", '--patch={"metadata":{"finalizers":null}}'
        )
        until("the high one has its place", lambda: node_of(cluster, namespace, "high") == node)
        until("the victim has its event", lambda: events(cluster, namespace, "low", "Preempted"))


def test_a_volume_that_waits_for_its_first_consumer_is_bound(cluster: Cluster, namespace: str) -> None:
    on = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["disk-1"]}
    late = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "deploy-late"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"disk-of-{namespace}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "deploy-late",
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on]}]}},
        },
    }
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "deploy-late",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    with cluster.having(late, volume), cluster.nodes(3, prefix="disk"):
        cluster.api().must("POST", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", claim)
        a_pod(cluster, namespace, "db", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
        until("the pod is where its volume is", lambda: node_of(cluster, namespace, "db") == "disk-1")
        # The claim's phase is the controller's to write, who may do so after the pod is bound.
        wanted = (f"disk-of-{namespace}", "Bound")
        until("the claim is bound", lambda: volume_and_phase(cluster, namespace) == wanted)


def volume_and_phase(cluster: Cluster, namespace: str) -> tuple[str, str]:
    claim = cluster.api().must("GET", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/data")
    return claim["spec"].get("volumeName", ""), claim["status"].get("phase", "")


def test_a_gate_holds_a_pod_until_it_is_taken_away(cluster: Cluster, namespace: str) -> None:
    with cluster.nodes(1):
        a_pod(cluster, namespace, "gated", schedulingGates=[{"name": "stowplan.test/gate"}])
        a_pod(cluster, namespace, "later")
        until("one that came later is bound", lambda: node_of(cluster, namespace, "later"))
        assert not node_of(cluster, namespace, "gated")
        cluster.kubectl(
            "patch", "pod", "gated", "-n", namespace, "--type=merge", '--patch={"spec":{"schedulingGates":null}}'
        )
        until("it is bound", lambda: node_of(cluster, namespace, "gated"))


def test_two_profiles_place_differently(cluster: Cluster, namespace: str) -> None:
    with cluster.nodes(3) as nodes:
        a_pod(cluster, namespace, "stone", "2", nodeName=nodes[1])
        for name, profile in (("spread", "stowplan"), ("packed", "packed")):
            a_pod(cluster, namespace, name, "1", schedulerName=profile)
            until(f"{name} is bound", lambda name=name: node_of(cluster, namespace, name))  # type: ignore[misc]
        assert node_of(cluster, namespace, "packed") == nodes[1], "where most is taken"
        assert node_of(cluster, namespace, "spread") != nodes[1]
        until("its event", lambda: events(cluster, namespace, "packed", "Scheduled"))
        (event,) = events(cluster, namespace, "packed", "Scheduled")
    assert event["reportingController"] == "packed"
