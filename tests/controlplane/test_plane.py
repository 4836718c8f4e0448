"""The control plane itself: it is a whole one, it keeps what it was told, and it can be made to fail."""

from __future__ import annotations

import json
import urllib.error
from typing import Any

import pytest

from tests.controlplane import build, flags
from tests.controlplane.api import Api
from tests.controlplane.cluster import KubectlError
from tests.controlplane.conftest import ON_EACH_SERVER
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until

pytestmark = pytest.mark.controlplane


def test_a_deployment_becomes_available(each_plane: ControlPlane) -> None:
    with each_plane.nodes(3) as nodes, each_plane.namespace() as namespace, each_plane.start_kube_scheduler():
        each_plane.kubectl("create", "deployment", "web", "--image=pause", "--replicas=5", "--namespace", namespace)
        # All of them: a Deployment calls itself available while one of five is still missing.
        each_plane.kubectl("rollout", "status", "deployment/web", "--timeout=120s", "--namespace", namespace)
        pods = items(each_plane, f"/api/v1/namespaces/{namespace}/pods")
    assert len(pods) == 5
    assert {pod["spec"]["nodeName"] for pod in pods} == {*nodes}, "kube-scheduler spreads equal pods"


def test_each_server_says_which_version_it_is(each_plane: ControlPlane) -> None:
    says = each_plane.api().get("/version").json()["gitVersion"]
    assert minor(says) == minor(f"v{each_plane.version}")


def test_kubectl_says_which_version_it_is(plane: ControlPlane) -> None:
    client = json.loads(plane.kubectl("version", "--output=json"))["clientVersion"]
    assert minor(client["gitVersion"]) == f"v{client['major']}.{client['minor']}" == minor(f"v{build.MAIN}")


def test_kubectl_writes_from_its_input_and_reads(plane: ControlPlane, namespace: str) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "box"}, "data": {"key": "value"}}
    plane.kubectl("apply", "--namespace", namespace, "--filename=-", input=json.dumps(manifest))
    assert plane.kubectl("get", "configmap", "box", "-n", namespace, "--output=jsonpath={.data.key}") == "value"


def test_what_kubectl_refuses_is_an_error_with_its_words(plane: ControlPlane) -> None:
    with pytest.raises(KubectlError, match='configmaps "nothing" not found'):
        plane.kubectl("get", "configmap", "nothing")


@pytest.mark.parametrize(
    ("user", "status"),
    [
        pytest.param("admin", 200, id="the admin reads secrets"),
        pytest.param("scheduler", 403, id="the scheduler does not"),
        pytest.param("nobody", 403, id="a user without rights does not"),
    ],
)
def test_rights_are_checked(plane: ControlPlane, user: str, status: int) -> None:
    assert plane.api(user).get("/api/v1/secrets").status == status


def test_an_unknown_token_is_nobody(plane: ControlPlane) -> None:
    assert Api(plane.server, token="made-up", ca=plane.ca).get("/api/v1/pods").status == 401


def test_a_service_account_may_what_its_role_says_and_nothing_else(plane: ControlPlane, namespace: str) -> None:
    plane.kubectl("create", "serviceaccount", "reader", "-n", namespace)
    plane.kubectl("create", "role", "reader", "--verb=list", "--resource=pods", "-n", namespace)
    binding = ["--role=reader", f"--serviceaccount={namespace}:reader"]
    plane.kubectl("create", "rolebinding", "reader", *binding, "-n", namespace)
    kubeconfig = plane.service_account_kubeconfig(namespace, "reader")
    plane.kubectl("get", "pods", "-n", namespace, kubeconfig=kubeconfig)
    with pytest.raises(KubectlError, match="Forbidden"):
        plane.kubectl("get", "nodes", kubeconfig=kubeconfig)


def test_a_killed_server_comes_back_with_its_data(plane: ControlPlane, namespace: str) -> None:
    plane.kubectl("create", "configmap", "box", "--from-literal=key=value", "-n", namespace)
    plane.kill_apiserver()
    assert not plane.api().answers("/readyz")
    plane.restart_apiserver()
    assert plane.kubectl("get", "configmap", "box", "-n", namespace, "--output=jsonpath={.data.key}") == "value"


@pytest.mark.parametrize(
    ("kind", "restart"),
    [
        pytest.param("events", False, id="of events, for which the server asks etcd"),
        pytest.param("configmaps", True, id="of all else, once the server has lost its own memory"),
    ],
)
def test_after_a_compaction_an_old_watch_is_gone(plane: ControlPlane, namespace: str, kind: str, restart: bool) -> None:
    path = f"/api/v1/namespaces/{namespace}/{kind}"
    first = plane.api().must("POST", path, thing(kind, "first", namespace))["metadata"]["resourceVersion"]
    plane.api().must("POST", path, thing(kind, "second", namespace))
    watch = f"{path}?watch=true&resourceVersion={first}&fieldSelector=metadata.name%3Dsecond"
    assert first_line(plane, watch)["object"]["metadata"]["name"] == "second"

    plane.api().must("POST", path, thing(kind, "third", namespace))  # what is newest is never compacted
    plane.compact_etcd()
    if restart:
        plane.restart_apiserver()
    answer = until("the watch is answered", lambda: answered(plane, watch))
    assert (answer["type"], answer["object"]["code"], answer["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_kube_scheduler_follows_its_configuration(plane: ControlPlane, namespace: str) -> None:
    pod = {"schedulerName": "other", "containers": [{"name": "main", "image": "pause"}]}
    config = {"profiles": [{"schedulerName": "other"}]}
    with plane.nodes(1) as [node], plane.start_kube_scheduler(config):
        path = f"/api/v1/namespaces/{namespace}/pods"
        plane.api().must("POST", path, {"metadata": {"name": "lonely"}, "spec": pod})
        bound = until("the pod is bound", lambda: plane.api().get(f"{path}/lonely").json()["spec"].get("nodeName"))
        assert bound == node


def test_kwok_plays_the_kubelets(plane: ControlPlane, namespace: str) -> None:
    """A node that says nothing gets ready, a Job's pod is done, a deleted pod goes."""
    plane.kubectl("create", "--filename=-", input='{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}}')
    try:
        plane.kubectl("wait", "--for=condition=Ready", "node/bare", "--timeout=120s")
        with plane.start_kube_scheduler():
            plane.kubectl("create", "job", "once", "--image=pause", "--namespace", namespace)
            wait_for(plane, namespace, "Complete", "job/once")
            plane.kubectl("run", "forever", "--image=pause", "--namespace", namespace)
            wait_for(plane, namespace, "Ready", "pod/forever")
        plane.kubectl("delete", "pod", "forever", "--namespace", namespace, "--timeout=120s")
    finally:
        plane.kubectl("delete", "node", "bare")


@pytest.mark.parametrize("each_plane", ON_EACH_SERVER[:2], indirect=True)
def test_pod_groups_are_served_if_asked_for(each_plane: ControlPlane) -> None:
    path = f"/apis/{flags.POD_GROUP_APIS[each_plane.version]}"
    assert each_plane.api().get(path).status == 404
    with ControlPlane(each_plane.version, controller_manager=False, kwok=False, pod_groups=True) as asked:
        served = {resource["kind"] for resource in asked.api().must("GET", path)["resources"]}
    assert served >= {"PodGroup", "Workload"}


def test_a_plane_for_benchmarks_admits_nodes_and_pods_by_itself(plane: ControlPlane) -> None:
    """`plane` is asked for only since it knows whether a plane can be had."""
    config = {"clientConnection": {"qps": 5000, "burst": 5000}}
    with (
        ControlPlane(benchmark=True) as alone,
        alone.nodes(2),
        alone.namespace() as namespace,
        alone.start_kube_scheduler(config),
    ):
        alone.kubectl("run", "one", "--image=pause", "--namespace", namespace)
        wait_for(alone, namespace, "PodScheduled", "pod/one")


def minor(version: str) -> str:
    """Ready-made programs may be of another patch release."""
    return version.rpartition(".")[0]


def wait_for(plane: ControlPlane, namespace: str, condition: str, what: str) -> None:
    plane.kubectl("wait", f"--for=condition={condition}", what, "--namespace", namespace, "--timeout=120s")


def items(plane: ControlPlane, path: str) -> list[Any]:
    found: list[Any] = plane.api().must("GET", path)["items"]
    return found


def first_line(plane: ControlPlane, path: str) -> Any:
    with plane.api().stream(path, seconds=60) as lines:
        return json.loads(lines.readline())


def answered(plane: ControlPlane, path: str) -> Any:
    """The first line, or nothing while the server is not ready to be watched, which it may be later than it says."""
    try:
        return first_line(plane, path)
    except urllib.error.HTTPError as refused:
        assert refused.code in (429, 503), refused
        return None


def thing(kind: str, name: str, namespace: str) -> dict[str, Any]:
    """The least that the server takes for an object of this kind."""
    metadata = {"name": name, "namespace": namespace}
    if kind == "events":
        return {"metadata": metadata, "involvedObject": {"namespace": namespace}, "type": "Normal", "reason": "Test"}
    return {"metadata": metadata}
