"""deploy/scores on a real hub: what it grants is enough for each producer, and for nothing else."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.kube.service_account_tokens import claims
from tests.controlplane import flags
from tests.controlplane.api import Api
from tests.controlplane.deployed import DEPLOY
from tests.controlplane.http_fakes import Prometheus, Server, ThirdParty, answering
from tests.controlplane.hubs import GROUP, a_placement, define, managed, scores_of
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until
from tests.embedded.running import EmbeddedCluster

pytestmark = pytest.mark.controlplane

SCORES = DEPLOY / "scores"
NAMESPACE = "stowplan-scores"
RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
FOLDERS = ("prometheus", "http", "static", "usage/hub", "usage/cluster")
CLUSTERS = ("cluster1", "primary", "backup")


@pytest.fixture(scope="module")
def hub(plane: ControlPlane) -> Iterator[ControlPlane]:
    define(plane)
    plane.kubectl("apply", "--filename", str(SCORES / "namespace.yaml"))
    until("the namespace has its service account", lambda: plane.has_default_account(NAMESPACE))
    with managed(plane, *CLUSTERS):
        yield plane
    plane.kubectl("delete", "--filename", str(SCORES / "namespace.yaml"))


def rendered(hub: ControlPlane, folder: Path) -> list[Any]:
    return list(yaml.safe_load_all(hub.kubectl("kustomize", str(folder))))


@contextmanager
def granted(hub: ControlPlane, *folders: Path) -> Iterator[None]:
    """The accounts and their rights, and nothing that runs."""
    found = [each for folder in folders for each in rendered(hub, folder) if each["kind"] in RIGHTS]
    text = yaml.safe_dump_all(found)
    hub.kubectl("apply", "--filename=-", input=text)
    try:
        yield
    finally:
        hub.kubectl("delete", "--filename=-", "--ignore-not-found", input=text)


def arguments(hub: ControlPlane, folder: Path) -> list[str]:
    (deployment,) = (each for each in rendered(hub, folder) if each["kind"] == "Deployment")
    found: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


def run(words: list[str], *more: str) -> subprocess.CompletedProcess[str]:
    """One round, in which it never met its limits."""
    whole = [sys.executable, "-m", "stowplan.apps.cli", "score-agent", *words, *more, "--once", "-v", "2"]
    done = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "forbidden" not in done.stderr
    return done


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_server_takes_the_manifests(hub: ControlPlane, folder: str) -> None:
    said = hub.kubectl("apply", "--dry-run=server", "--kustomize", str(SCORES / folder))
    assert "(server dry run)" in said


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "usage/hub"])
def test_the_pods_keep_the_strictest_pod_security_standard(hub: ControlPlane, folder: str) -> None:
    documents = rendered(hub, SCORES / folder)
    template = next(each for each in documents if each["kind"] == "Deployment")["spec"]["template"]
    template["spec"]["serviceAccountName"] = "default"
    made = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": "probe", "namespace": NAMESPACE}}
    said = hub.kubectl("create", "--dry-run=server", "--filename=-", input=json.dumps(made))
    assert "created (server dry run)" in said


@pytest.mark.parametrize(
    ("folder", "server", "written"),
    [
        pytest.param(
            "prometheus", Prometheus(cluster1=100e9), ("cluster1", "prometheus", {"memory": 100}), id="a PromQL query"
        ),
        pytest.param("http", ThirdParty(cluster1={"sla": 7}), ("cluster1", "scorer", {"sla": 7}), id="a scorer"),
        pytest.param("static", None, ("primary", "disasterrecovery", {"workload": 100}), id="fixed values"),
    ],
)
def test_a_producer_on_the_hub_has_the_rights_it_needs(
    hub: ControlPlane, folder: str, server: Server | None, written: tuple[str, str, dict[str, int]]
) -> None:
    words = arguments(hub, SCORES / folder)
    with ExitStack() as stack:
        stack.enter_context(granted(hub, SCORES / folder))
        if server is not None:
            stack.enter_context(answering(server))
            path = "/score" if folder == "http" else ""
            words = [f"--url={server.url}{path}" if each.startswith("--url=") else each for each in words]
            words = [f"--query={Prometheus.METRIC}" if each.startswith("--query=") else each for each in words]
        account = hub.service_account_kubeconfig(NAMESPACE, f"scores-{folder}")
        run(words, "--hub-kubeconfig", str(account))
        cluster, resource, scores = written
        assert scores_of(hub, cluster, resource) == scores


def test_on_demand_is_two_lines_more(hub: ControlPlane, tmp_path: Path) -> None:
    """As its kustomization says: by uncommenting them."""
    shutil.copytree(SCORES, tmp_path / "scores")
    folder = tmp_path / "scores" / "static"
    file = folder / "kustomization.yaml"
    file.write_text(file.read_text().replace("# components:", "components:").replace("# - --on", "- --on"))
    words = arguments(hub, folder)
    assert words[-1] == "--on-demand"
    words = [*words[:1], "--resource-name=disasterrecovery", "--score-name=demanded", "--value=backup=3", "--on-demand"]
    with granted(hub, folder), hub.namespace("scores") as place:
        account = str(hub.service_account_kubeconfig(NAMESPACE, "scores-static"))
        run(words, "--hub-kubeconfig", account)
        assert "demanded" not in scores_of(hub, "backup", "disasterrecovery")
        wish = a_placement("p", ("disasterrecovery", "demanded", 1))
        hub.kubectl("apply", "-n", place, "-f", "-", input=wish)
        run(words, "--hub-kubeconfig", account)
        assert scores_of(hub, "backup", "disasterrecovery") == {"demanded": 3}


def test_an_agent_pushes_from_its_cluster_to_the_hub(hub: ControlPlane, embedded: EmbeddedCluster) -> None:
    """Another cluster than the hub; there it may write one object of its namespace."""
    words = ["usage", "--cluster-name=cluster1", "--kubeconfig", str(embedded.kubeconfig()), "--cpu-bounds=0:8"]
    with granted(hub, SCORES / "usage/hub"), embedded.nodes(2, prefix="pushed", capacity={"cpu": "4"}):
        run(words, "--hub-kubeconfig", str(hub.service_account_kubeconfig("cluster1", "stowplan-scores")))
    found = scores_of(hub, "cluster1")
    assert (found["cpu"], found["cpuratio"], sorted(found)) == (100, 100, ["cpu", "cpuratio", "mem", "memratio"])


def test_an_agent_has_the_rights_it_needs_in_its_cluster(hub: ControlPlane) -> None:
    with granted(hub, SCORES / "usage/hub", SCORES / "usage/cluster"), hub.nodes(1, prefix="own"):
        own = hub.service_account_kubeconfig(NAMESPACE, "scores")
        on_hub = hub.service_account_kubeconfig("cluster1", "stowplan-scores")
        words = [each for each in arguments(hub, SCORES / "usage/cluster") if not each.startswith("--hub-kubeconfig")]
        run(words, "--kubeconfig", str(own), "--hub-kubeconfig", str(on_hub))


# --- what is opt-in


def with_components(folder: Path, *names: str) -> Path:
    """deploy/scores with these components, as its kustomizations say: by uncommenting them."""
    shutil.copytree(SCORES, folder / "scores")
    file = folder / "scores" / "usage" / "hub" / "kustomization.yaml"
    if "renewal" in names:
        file.write_text(file.read_text().replace("# components: [renewal]", "components: [renewal]"))
    file = folder / "scores" / "usage" / "cluster" / "kustomization.yaml"
    text = file.read_text().replace("# components:", "components:")
    for name in names:
        text = text.replace(f"#   - {name}", f"  - {name}")
    file.write_text(text)
    return folder / "scores" / "usage"


def test_an_agent_renews_its_token(hub: ControlPlane, tmp_path: Path) -> None:
    """By TokenRequests of its own, kept in its own Secret; here the cluster is its own hub. A token for two hours is
    too old for one who asks for ten minutes.
    """
    folder = with_components(tmp_path, "renewal")
    words = arguments(hub, folder / "cluster")
    assert words[-2:] == ["--hub-token-lifetime=24h", f"--hub-token-secret={NAMESPACE}/hub-kubeconfig"]
    with granted(hub, folder / "hub", folder / "cluster"), hub.nodes(1, prefix="renewing"):
        first = hub.kubectl("create", "token", "stowplan-scores", "-n", "cluster1", "--duration=2h").strip()
        (tmp_path / "token").write_text(first)
        config = json.loads(hub.service_account_kubeconfig("cluster1", "stowplan-scores").read_text())
        config["users"][0]["user"] = {"tokenFile": "token"}
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        files = ("--from-file", str(tmp_path / "kubeconfig"), "--from-file", str(tmp_path / "token"))
        hub.kubectl("create", "secret", "generic", "hub-kubeconfig", "-n", NAMESPACE, *files)
        words = [each for each in words if not each.startswith(("--hub-kubeconfig", "--hub-token-lifetime"))]
        words += ["--hub-token-lifetime=10m", f"--hub-kubeconfig={tmp_path / 'kubeconfig'}", "--interval=1s"]
        port = flags.free_port()
        words += [f"--kubeconfig={hub.service_account_kubeconfig(NAMESPACE, 'scores')}", f"--secure-port={port}"]
        words += [f"--bind-address={flags.LOOPBACK}", "-v=2"]
        whole = ["-m", "stowplan.apps.cli", "score-agent", *words]
        with Program(Path(sys.executable), whole, tmp_path / "agent.log") as agent:
            until("the Secret has another token", lambda: secret_token(hub) != first, 60, agent.tail)
            second = secret_token(hub)
            (tmp_path / "token").write_text(second)  # the kubelet's part
            pages = Api(f"https://{flags.LOOPBACK}:{port}", token=hub.tokens["admin"])
            until("it is ready", lambda: pages.answers("/readyz"), 60, agent.tail)
            assert Api(pages.url).get("/metrics").status == 403, "not for everybody"
            text = pages.get("/metrics").body.decode()
            assert 'stowplan_scores_token_renewals_total{result="done"} 1.0' in text
            assert 'stowplan_scores_score{cluster="cluster1",score="cpuratio"} 100.0' in text
            agent.check()
            assert "forbidden" not in agent.tail(1000)
            agent.stop(grace=60)
        assert agent.code == 0, agent.tail()
        life = claims(second)
        assert life.account == "cluster1/stowplan-scores"
        assert life.expires_at is not None and life.expires_at - life.issued_at <= 660
        hub.kubectl("delete", "secret", "hub-kubeconfig", "-n", NAMESPACE)


def secret_token(hub: ControlPlane) -> str:
    found = hub.api().must("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/hub-kubeconfig")
    return base64.b64decode(found["data"]["token"]).decode()


def test_real_usage_by_metrics_server(hub: ControlPlane, tmp_path: Path) -> None:
    """In its place stands a definition with the same objects at the same address."""
    folder = with_components(tmp_path, "metrics-server")
    words = [each for each in arguments(hub, folder / "cluster") if not each.startswith("--hub-kubeconfig")]
    assert words[-1] == "--actual"
    with granted(hub, folder / "hub", folder / "cluster"), hub.nodes(1, prefix="used", capacity={"cpu": "4"}):
        words += ["--kubeconfig", str(hub.service_account_kubeconfig(NAMESPACE, "scores"))]
        words += ["--hub-kubeconfig", str(hub.service_account_kubeconfig("cluster1", "stowplan-scores"))]
        whole = [sys.executable, "-m", "stowplan.apps.cli", "score-agent", *words, "--once"]
        done = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 2 and "install metrics-server, or leave --actual out" in done.stderr, done.stderr
        with node_metrics(hub, "used-0", cpu="1", memory="0"):
            run(words)
    found = scores_of(hub, "cluster1")
    assert (found["cpuratio"], found["cpuratio-actual"], found["memratio-actual"]) == (100, 50, 100)


@contextmanager
def node_metrics(hub: ControlPlane, node: str, **usage: str) -> Iterator[None]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "nodes", "singular": "nodemetrics", "kind": "NodeMetrics", "listKind": "NodeMetricsList"}
    annotations = {"api-approved.kubernetes.io": "unapproved, for a test"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "nodes.metrics.k8s.io", "annotations": annotations},
        "spec": {"group": "metrics.k8s.io", "scope": "Cluster", "names": names, "versions": [version]},
    }
    with hub.having(definition):
        path = "/apis/metrics.k8s.io/v1beta1/nodes"
        until("it is served", lambda: hub.api().answers(path), 60)
        about = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "metadata": {"name": node}}
        hub.api().must("POST", path, about | {"usage": usage})
        yield


# --- and nothing else

OWN = f"system:serviceaccount:{NAMESPACE}:scores-prometheus"
PUSHED = "system:serviceaccount:cluster1:stowplan-scores"
LOCAL = f"system:serviceaccount:{NAMESPACE}:scores"


def of_scores(verb: str, name: str = "", namespace: str = "cluster1", **more: str) -> dict[str, str]:
    return {
        "verb": verb,
        "resource": "addonplacementscores",
        "group": GROUP,
        "name": name,
        "namespace": namespace,
        **more,
    }


@pytest.fixture(scope="module")
def limited(hub: ControlPlane) -> Iterator[ControlPlane]:
    with granted(hub, SCORES / "prometheus", SCORES / "usage/hub", SCORES / "usage/cluster"):
        known = (
            (OWN, of_scores("get", "prometheus")),
            (PUSHED, of_scores("patch", "default", subresource="status")),
            (LOCAL, {"verb": "list", "resource": "pods"}),
        )
        until("the bindings are known", lambda: all(allowed(hub, *each) for each in known), 60)
        yield hub


def allowed(hub: ControlPlane, user: str, attributes: dict[str, str]) -> bool:
    spec = {
        "user": user,
        "groups": ["system:serviceaccounts", "system:authenticated"],
        "resourceAttributes": attributes,
    }
    review = hub.api().must("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    return bool(review["status"]["allowed"])


@pytest.mark.parametrize(
    ("user", "may", "attributes"),
    [
        pytest.param(OWN, True, of_scores("patch", "prometheus", subresource="status"), id="writes its scores"),
        pytest.param(OWN, True, of_scores("create"), id="makes objects"),
        pytest.param(OWN, False, of_scores("patch", "default", subresource="status"), id="no scores of others"),
        pytest.param(OWN, False, of_scores("get", "default"), id="nor does it read them"),
        pytest.param(OWN, False, of_scores("delete", "prometheus"), id="deletes nothing"),
        pytest.param(OWN, False, of_scores("patch", "prometheus"), id="changes no labels"),
        pytest.param(
            OWN, False, {"verb": "update", "resource": "managedclusters", "group": GROUP}, id="changes no cluster"
        ),
        pytest.param(OWN, False, {"verb": "list", "resource": "placements", "group": GROUP}, id="reads no Placements"),
        pytest.param(OWN, False, {"verb": "get", "resource": "secrets", "namespace": NAMESPACE}, id="reads no secrets"),
        pytest.param(
            PUSHED, True, of_scores("patch", "default", subresource="status"), id="an agent writes its scores"
        ),
        pytest.param(
            PUSHED, False, of_scores("patch", "default", "primary", subresource="status"), id="not those of others"
        ),
        pytest.param(PUSHED, False, of_scores("create", namespace="primary"), id="makes no objects elsewhere"),
        pytest.param(PUSHED, False, of_scores("list"), id="lists nothing"),
        pytest.param(
            PUSHED, False, {"verb": "get", "resource": "managedclusters", "group": GROUP}, id="sees no other cluster"
        ),
        pytest.param(LOCAL, True, {"verb": "list", "resource": "pods"}, id="an agent counts pods"),
        pytest.param(LOCAL, False, {"verb": "get", "resource": "pods"}, id="looks at none of them"),
        pytest.param(LOCAL, False, {"verb": "patch", "resource": "nodes"}, id="changes no node"),
    ],
)
def test_what_the_accounts_may(limited: ControlPlane, user: str, may: bool, attributes: dict[str, str]) -> None:
    assert allowed(limited, user, attributes) is may
