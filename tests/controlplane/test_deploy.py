"""What `deploy/` grants is enough for a scheduler's pages (and for its work: `test_work.py`), and for nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.apps.profiling.test_pprof import pprof
from tests.controlplane.api import Api
from tests.controlplane.cluster import KubectlError
from tests.controlplane.deployed import ACCOUNT, DEPLOY, NAMESPACE, Deployed, configuration, deployed, document, grant
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module")
def scheduler(each_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("stowplan")
    with deployed(each_plane, folder, configuration()) as found:
        yield found


@pytest.fixture(scope="module")
def granted(plane: ControlPlane) -> ControlPlane:
    grant(plane)
    binds = {"verb": "create", "resource": "pods", "subresource": "binding"}
    renews = {"verb": "update", "group": "coordination.k8s.io", "resource": "leases", "name": "stowplan"}
    until("the rights are known", lambda: all(allowed(plane, each) for each in (binds, renews)))  # to those who check
    return plane


@pytest.fixture
def where(scheduler: Deployed) -> Iterator[str]:
    """A namespace of that scheduler's plane."""
    with scheduler.plane.namespace("deploy") as name:
        yield name


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
    with plane.having(reader):
        until("the binding is known", lambda: scheduler.page("/metrics", tokens["prometheus"])[0] == 200)
        _, text = scheduler.page("/metrics", tokens["prometheus"])
        for page in ("/configz", "/debug/pprof/profile?seconds=1"):
            assert scheduler.page(page, tokens["prometheus"])[0] == 403, "that role is for metrics and health"
    assert "scheduler_schedule_attempts_total" in text
    assert scheduler.page("/configz", plane.tokens["admin"])[0] == 200


@pytest.mark.full  # Go builds the tool first
def test_go_reads_the_profile_of_a_scheduler(scheduler: Deployed, tmp_path: Path) -> None:
    """As an operator takes it: with a token, over the secure port."""
    api = Api(scheduler.url, token=scheduler.plane.tokens["admin"])
    answer = api.get("/debug/pprof/profile?seconds=2")
    assert answer.status == 200, answer.body
    file = tmp_path / "cpu.pb.gz"
    file.write_bytes(answer.body)
    assert "stowplan.apps" in pprof(file, "-top", "-cum")


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
        pytest.param(False, {"verb": "impersonate", "resource": "users"}, id="impersonates no user"),
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
    assert allowed(granted, attributes) is may


def allowed(plane: ControlPlane, attributes: dict[str, str]) -> bool:
    spec = {
        "user": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"],
        "resourceAttributes": {"namespace": NAMESPACE, **attributes},
    }
    review = plane.api().must("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    return bool(review["status"]["allowed"])


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
