"""What `deploy/` grants and configures is enough for a scheduler's whole work, and for nothing else."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import KubectlError
from tests.controlplane.deployed import ACCOUNT, DEPLOY, NAMESPACE, Deployed, configuration, deployed, document, grant
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until

pytestmark = pytest.mark.controlplane

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
    params=[
        pytest.param("plane", id="on Kubernetes 1.36"),
        pytest.param("plane_137", id="on Kubernetes 1.37", marks=pytest.mark.full),
    ],
)
def scheduler(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """With the ConfigMap's configuration, a second profile beside its own, and kube-scheduler nowhere."""
    config = configuration()
    config["profiles"].append(PACKED)
    with deployed(request.getfixturevalue(request.param), tmp_path_factory.mktemp("stowplan"), config) as found:
        yield found


@pytest.fixture(scope="module")
def granted(plane: ControlPlane) -> ControlPlane:
    grant(plane)
    return plane


@pytest.fixture
def where(scheduler: Deployed) -> Iterator[str]:
    """A namespace of that scheduler's plane."""
    with scheduler.plane.namespace("deploy") as name:
        yield name


# --- objects


def a_pod(plane: ControlPlane, namespace: str, name: str, cpu: str = "100m", **spec: Any) -> None:
    finalizers = spec.pop("finalizers", [])
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    body = {
        "metadata": {"name": name, "finalizers": finalizers},
        "spec": {"schedulerName": "stowplan", "containers": [container], **spec},
    }
    plane.api().must("POST", f"/api/v1/namespaces/{namespace}/pods", body)


def pod(plane: ControlPlane, namespace: str, name: str) -> Any:
    answer = plane.api().get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    return answer.json() if answer.status == 200 else None


def node_of(plane: ControlPlane, namespace: str, name: str) -> str:
    return str(pod(plane, namespace, name)["spec"].get("nodeName", ""))


def condition(found: Any, kind: str) -> Any:
    return next((each for each in found["status"].get("conditions", []) if each["type"] == kind), None)


def refused(plane: ControlPlane, namespace: str, name: str) -> bool:
    scheduled = condition(pod(plane, namespace, name), "PodScheduled")
    return scheduled is not None and scheduled["reason"] == "Unschedulable"


def events(plane: ControlPlane, namespace: str, name: str, reason: str) -> list[Any]:
    found = plane.api().must("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    return [each for each in found if each["regarding"]["name"] == name and each["reason"] == reason]


@contextlib.contextmanager
def cluster_objects(plane: ControlPlane, *objects: Any) -> Iterator[None]:
    """Objects without a namespace, gone afterwards."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    plane.kubectl("apply", "--filename=-", input=text)
    try:
        yield
    finally:
        plane.kubectl("delete", "--wait=false", "--ignore-not-found", "--filename=-", input=text)


# --- a scheduler's work


def test_deployments_run_and_each_pod_has_its_event(scheduler: Deployed, where: str) -> None:
    plane = scheduler.plane
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"schedulerName": "stowplan", "containers": [{"name": "c", "image": "pause"}]},
    }
    body = {
        "metadata": {"name": "web"},
        "spec": {"replicas": 6, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    with plane.nodes(3) as nodes:
        plane.api().must("POST", f"/apis/apps/v1/namespaces/{where}/deployments", body)
        plane.kubectl("rollout", "status", "deployment/web", "--timeout=60s", "--namespace", where)
        pods = plane.api().must("GET", f"/api/v1/namespaces/{where}/pods")["items"]
        names = [each["metadata"]["name"] for each in pods]
        until("each pod has its event", lambda: all(events(plane, where, name, "Scheduled") for name in names))
        written = [event for name in names for event in events(plane, where, name, "Scheduled")]
    assert sorted(each["spec"]["nodeName"] for each in pods) == sorted(2 * nodes), "equal pods are spread"
    assert all(each["status"]["phase"] == "Running" for each in pods)
    assert len(written) == 6
    assert {event["reportingController"] for event in written} == {"stowplan"}


def test_a_pending_pod_says_why_and_a_freed_node_wakes_it(scheduler: Deployed, where: str) -> None:
    plane = scheduler.plane
    with plane.nodes(1, prefix="small", capacity={"cpu": "1"}) as (node,):
        a_pod(plane, where, "first", "800m")
        until("the first is bound", lambda: node_of(plane, where, "first"))
        a_pod(plane, where, "second", "800m")
        until("the second is refused", lambda: refused(plane, where, "second"))
        expected = "0/1 nodes are available: 1 Insufficient cpu."
        until("describe shows it", lambda: expected in plane.kubectl("describe", "pod", "second", "-n", where))
        described = plane.kubectl("describe", "pod", "second", "-n", where)
        assert "FailedScheduling" in described
        assert "stowplan" in described
        plane.kubectl("delete", "pod", "first", "-n", where, "--now")
        freed = time.monotonic()
        until("the second is bound", lambda: node_of(plane, where, "second") == node)
        took = time.monotonic() - freed
    assert took < 15, "a wake, not the flush after five minutes"


def test_preemption_nominates_and_evicts(scheduler: Deployed, where: str) -> None:
    plane = scheduler.plane
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "deploy-urgent"},
        "value": 1000,
    }
    with cluster_objects(plane, urgent), plane.nodes(1, prefix="full", capacity={"cpu": "1"}) as (node,):
        # The finalizer holds the victim back, so that what happens in between can be seen.
        a_pod(plane, where, "low", "800m", finalizers=["stowplan.test/held"])
        until("the low one is bound", lambda: node_of(plane, where, "low"))
        a_pod(plane, where, "high", "800m", priorityClassName="deploy-urgent")
        until("it is nominated", lambda: pod(plane, where, "high")["status"].get("nominatedNodeName") == node)
        until("the victim is deleted", lambda: pod(plane, where, "low")["metadata"].get("deletionTimestamp"))
        assert condition(pod(plane, where, "low"), "DisruptionTarget")["reason"] == "PreemptionByScheduler"
        plane.kubectl("patch", "pod", "low", "-n", where, "--type=merge", '--patch={"metadata":{"finalizers":null}}')
        until("the high one has its place", lambda: node_of(plane, where, "high") == node)
        until("the victim has its event", lambda: events(plane, where, "low", "Preempted"))


def test_a_volume_that_waits_for_its_first_consumer_is_bound(scheduler: Deployed, where: str) -> None:
    plane = scheduler.plane
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
        "metadata": {"name": f"disk-of-{where}"},
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
    with cluster_objects(plane, late, volume), plane.nodes(3, prefix="disk"):
        plane.api().must("POST", f"/api/v1/namespaces/{where}/persistentvolumeclaims", claim)
        a_pod(plane, where, "db", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
        until("the pod is where its volume is", lambda: node_of(plane, where, "db") == "disk-1")
        bound = plane.api().must("GET", f"/api/v1/namespaces/{where}/persistentvolumeclaims/data")
    assert bound["spec"]["volumeName"] == f"disk-of-{where}"
    assert bound["status"]["phase"] == "Bound"


def test_a_gate_holds_a_pod_until_it_is_taken_away(scheduler: Deployed, where: str) -> None:
    plane = scheduler.plane
    with plane.nodes(1):
        a_pod(plane, where, "gated", schedulingGates=[{"name": "stowplan.test/gate"}])
        a_pod(plane, where, "later")
        until("one that came later is bound", lambda: node_of(plane, where, "later"))
        assert not node_of(plane, where, "gated")
        plane.kubectl("patch", "pod", "gated", "-n", where, "--type=merge", '--patch={"spec":{"schedulingGates":null}}')
        until("it is bound", lambda: node_of(plane, where, "gated"))


def test_two_profiles_place_differently(scheduler: Deployed, where: str) -> None:
    plane = scheduler.plane
    with plane.nodes(3) as nodes:
        a_pod(plane, where, "stone", "2", nodeName=nodes[1])
        for name, profile in (("spread", "stowplan"), ("packed", "packed")):
            a_pod(plane, where, name, "1", schedulerName=profile)
            until(f"{name} is bound", lambda name=name: node_of(plane, where, name))  # type: ignore[misc]
        assert node_of(plane, where, "packed") == nodes[1], "where most is taken"
        assert node_of(plane, where, "spread") != nodes[1]
        until("its event", lambda: events(plane, where, "packed", "Scheduled"))
        (event,) = events(plane, where, "packed", "Scheduled")
    assert event["reportingController"] == "packed"


# --- who may see what it serves


def test_the_pages_are_for_those_whom_the_server_lets(scheduler: Deployed, where: str) -> None:
    plane = scheduler.plane
    reader = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "deploy-monitoring"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:monitoring"},
        "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": where}],
    }
    for account in ("prometheus", "stranger"):
        plane.kubectl("create", "serviceaccount", account, "-n", where)
    tokens = {name: plane.kubectl("create", "token", name, "-n", where).strip() for name in ("prometheus", "stranger")}
    for health in ("/livez", "/readyz", "/healthz"):
        assert scheduler.page(health) == (200, "ok")
    assert scheduler.page("/metrics")[0] == 403, "system:anonymous may not"
    assert scheduler.page("/metrics", "nonsense")[0] == 401
    status, text = scheduler.page("/metrics", tokens["stranger"])
    assert (status, json.loads(text)["kind"]) == (403, "Status")
    assert f"system:serviceaccount:{where}:stranger" in text
    with cluster_objects(plane, reader):
        until("the binding is known", lambda: scheduler.page("/metrics", tokens["prometheus"])[0] == 200)
        _, text = scheduler.page("/metrics", tokens["prometheus"])
        assert scheduler.page("/configz", tokens["prometheus"])[0] == 403, "that role is for metrics and health"
    assert "scheduler_schedule_attempts_total" in text
    assert scheduler.page("/configz", plane.tokens["admin"])[0] == 200


def test_nothing_was_refused_to_it(scheduler: Deployed) -> None:
    """Last of those that share the scheduler: whatever it did so far, it never met its limits."""
    scheduler.program.check()
    log = scheduler.program.log.read_text()
    assert "forbidden" not in log.lower()
    assert "lost" not in log.lower(), "neither an event nor the lease"


# --- and nothing else


@pytest.mark.parametrize(
    ("may", "attributes"),
    [
        pytest.param(True, {"verb": "create", "resource": "pods", "subresource": "binding"}, id="binds pods"),
        pytest.param(True, {"verb": "delete", "resource": "pods"}, id="evicts pods"),
        pytest.param(
            True,
            {"verb": "update", "group": "coordination.k8s.io", "resource": "leases", "name": "stowplan"},
            id="renews its lease",
        ),
        pytest.param(True, {"verb": "get", "resource": "pods"}, id="looks at a pod again"),
        pytest.param(True, {"verb": "patch", "resource": "persistentvolumeclaims"}, id="sends claims to nodes"),
        pytest.param(True, {"verb": "patch", "group": "events.k8s.io", "resource": "events"}, id="counts events"),
        pytest.param(False, {"verb": "delete", "resource": "nodes"}, id="deletes no nodes"),
        pytest.param(False, {"verb": "patch", "resource": "nodes"}, id="changes no nodes"),
        pytest.param(False, {"verb": "patch", "resource": "nodes", "subresource": "status"}, id="nor their status"),
        pytest.param(False, {"verb": "get", "resource": "secrets"}, id="reads no secrets"),
        pytest.param(False, {"verb": "list", "resource": "secrets"}, id="lists no secrets"),
        pytest.param(False, {"verb": "list", "resource": "configmaps"}, id="lists no configuration"),
        pytest.param(False, {"verb": "create", "resource": "pods"}, id="creates no pods"),
        pytest.param(False, {"verb": "update", "resource": "pods"}, id="overwrites no pods"),
        pytest.param(False, {"verb": "patch", "resource": "pods"}, id="changes no pod's spec"),
        pytest.param(False, {"verb": "deletecollection", "resource": "pods"}, id="deletes pods one by one"),
        pytest.param(False, {"verb": "create", "resource": "pods", "subresource": "exec"}, id="runs nothing in pods"),
        pytest.param(False, {"verb": "delete", "resource": "persistentvolumes"}, id="deletes no volumes"),
        pytest.param(False, {"verb": "create", "resource": "serviceaccounts", "subresource": "token"}, id="no tokens"),
        pytest.param(False, {"verb": "impersonate", "resource": "users"}, id="is nobody else"),
        pytest.param(
            False,
            {"verb": "update", "group": "coordination.k8s.io", "resource": "leases", "name": "kube-scheduler"},
            id="does not touch kube-scheduler's lease",
        ),
        pytest.param(
            False,
            {"verb": "get", "group": "coordination.k8s.io", "resource": "leases", "name": "other"},
            id="reads no other lease",
        ),
        pytest.param(
            False,
            {"verb": "bind", "group": "rbac.authorization.k8s.io", "resource": "clusterroles"},
            id="gives no rights",
        ),
    ],
)
def test_what_the_account_may(granted: ControlPlane, may: bool, attributes: dict[str, str]) -> None:
    spec = {
        "user": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"],
        "resourceAttributes": {"namespace": NAMESPACE, **attributes},
    }
    review = granted.api().must("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    assert review["status"]["allowed"] is may


# --- the manifests


def test_a_server_takes_the_manifests(each_plane: ControlPlane) -> None:
    said = each_plane.kubectl("apply", "--dry-run=server", "--kustomize", str(DEPLOY))
    assert "deployment.apps/stowplan created (server dry run)" in said
    assert "poddisruptionbudget.policy/stowplan created (server dry run)" in said


def test_the_pods_keep_the_strictest_pod_security_standard(plane: ControlPlane, namespace: str) -> None:
    plane.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    plane.kubectl("create", "serviceaccount", ACCOUNT, "--namespace", namespace)
    template = document("second-scheduler.yaml", "Deployment")["spec"]["template"]
    made = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": "stowplan", **template["metadata"]}}
    apply = ("create", "--dry-run=server", "--namespace", namespace, "--filename=-")
    assert "created (server dry run)" in plane.kubectl(*apply, input=json.dumps(made))
    made["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(KubectlError, match="violates PodSecurity"):
        plane.kubectl(*apply, input=json.dumps(made))


def test_a_server_takes_the_manifests_for_kube_schedulers_place(plane: ControlPlane, tmp_path: Path) -> None:
    """As its README says: by uncommenting two lines."""
    folder = tmp_path / "deploy"
    shutil.copytree(DEPLOY, folder)
    file = folder / "kustomization.yaml"
    file.write_text(file.read_text().replace("# components:", "components:").replace("#   - repl", "  - repl"))
    assert yaml.safe_load(file.read_text())["components"] == ["replace-kube-scheduler"]
    plane.kubectl("apply", "--dry-run=server", "--kustomize", str(folder))
    rendered = {each["kind"]: each for each in yaml.safe_load_all(plane.kubectl("kustomize", str(folder)))}
    config = yaml.safe_load(rendered["ConfigMap"]["data"]["config.yaml"])
    assert [profile["schedulerName"] for profile in config["profiles"]] == ["default-scheduler", "stowplan"]
    assert config["leaderElection"]["resourceName"] == "kube-scheduler"
    assert "--replace" in rendered["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert rendered["Role"]["rules"][2]["verbs"] == ["get", "update"]
