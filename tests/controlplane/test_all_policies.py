"""deploy/profiles/all: all policies in one process; on a real cluster with the rights of the profiles alone."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import EVERYWHERE
from tests.controlplane.deployed import DEPLOY, check_no_limit_met, deployed
from tests.controlplane.flavours import WORKER, landed
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import a_deployment, apply, bound, pods, stowplan

PROFILES = DEPLOY / "profiles"
COMPONENTS = (
    "components: [profiles/kubenexus-scheduler, profiles/kosmos-scheduler, profiles/sp-priority, profiles/all]\n"
)
RIGHTS = (
    "kosmos-scheduler/rbac.yaml",
    "sp-priority/rbac.yaml",
    "kubenexus-scheduler/rbac.yaml",
    "kubenexus-scheduler/reservations-rbac.yaml",
)
CRDS = (DEPLOY / "crds", DEPLOY / "crds" / "kubenexus")
GROUP = "pod-group.scheduling.kubenexus.io"
STATE = "annotation.sp.io/schedule-state"
POLICY: dict[str, Any] = {
    "apiVersion": "kosmos.io/v1alpha1",
    "kind": "WorkloadPolicy",
    "metadata": {"name": "two-and-one"},
    "spec": {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "placed"}},
        "allocationType": "Required",
        "allocationPolicy": [{"name": "worker-0", "replicas": 2}, {"name": "worker-1", "replicas": 1}],
    },
}


def configuration() -> Any:
    return yaml.safe_load((PROFILES / "all" / "config.yaml").read_text(encoding="utf-8"))


@pytest.fixture(params=EVERYWHERE)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    """With all of them at work in it."""
    found: Cluster = request.getfixturevalue(request.param)
    with ExitStack() as stack:
        if isinstance(found, ControlPlane):
            for name in RIGHTS:
                file = str(PROFILES / name)
                found.kubectl("apply", "--filename", file)
                stack.callback(found.kubectl, "delete", "--filename", file)
            for folder in CRDS:
                found.kubectl("apply", "--kustomize", str(folder))
                stack.callback(found.kubectl, "delete", "--kustomize", str(folder))
                names = [f"crd/{file.stem}" for file in folder.glob("*.io.yaml")]
                found.kubectl("wait", "--for=condition=Established", "--timeout=120s", *names)
            scheduler = stack.enter_context(deployed(found, tmp_path, configuration()))
            yield found
            check_no_limit_met(scheduler.program.log)
        else:
            file = str(tmp_path / "config.yaml")
            Path(file).write_text(yaml.safe_dump(configuration()), encoding="utf-8")
            stack.enter_context(stowplan(found, "all", "--config", file)).wait_until_leading()
            yield found


def history(cluster: Cluster, namespace: str) -> dict[str, Any]:
    (found,) = cluster.api().must("GET", f"/apis/apps/v1/namespaces/{namespace}/replicasets?labelSelector=app%3Dmoved")[
        "items"
    ]
    text = found["metadata"].get("annotations", {}).get(STATE)
    return dict(yaml.safe_load(text)) if text else {}


def test_a_pod_chooses_its_policy_by_the_schedulers_name(cluster: Cluster, namespace: str) -> None:
    with cluster.nodes(3, prefix="worker", labels=WORKER) as workers:
        gold = a_deployment("gold", 6, scheduler="secondary-scheduler")
        gold["spec"]["template"]["metadata"]["labels"]["flavour"] = "gold"
        placed = a_deployment("placed", 4, scheduler="kosmos-scheduler")
        placed["spec"]["template"]["metadata"]["labels"]["workload-policy.kosmos.io"] = "two-and-one"
        apply(cluster, namespace, POLICY, gold, placed, a_deployment("moved", 1, scheduler="sp-scheduler"))
        apply(cluster, namespace, a_gang("whole", 3, 3), a_gang("short", 2, 3))
        until(
            "six, three, one and three are bound",
            lambda: len(bound(cluster, namespace)) == 13,
            120,
            lambda: str(bound(cluster, namespace)),
        )

        assert sum(by_node(cluster, namespace, "whole").values()) == 3 and "" not in by_node(
            cluster, namespace, "whole"
        )
        until("the short one has its pods", lambda: by_node(cluster, namespace, "short") == {"": 2}, 60)
        assert landed(cluster) == {("gold", worker): 2 for worker in workers}
        as_wanted = {"worker-0": 2, "worker-1": 1, "": 1}
        until("the policy has its pods", lambda: by_node(cluster, namespace, "placed") == as_wanted, 60)
        (before,) = by_node(cluster, namespace, "moved")
        until("the first is counted", lambda: history(cluster, namespace).get("latest") == before, 60)
        cluster.kubectl("delete", "pod", "--selector=app=moved", "--namespace", namespace, "--now")
        until("another is bound", lambda: set(by_node(cluster, namespace, "moved")) - {"", before}, 120)
        until("it is counted", lambda: sum(history(cluster, namespace)["node_count"].values()) == 2, 60)


def a_gang(name: str, count: int, needed: int) -> dict[str, Any]:
    found = a_deployment(name, count, scheduler="kubenexus-scheduler")
    labels = {f"{GROUP}/name": name, f"{GROUP}/min-available": str(needed)}
    found["spec"]["template"]["metadata"]["labels"] |= labels
    return found


def by_node(cluster: Cluster, namespace: str, app: str) -> Counter[str]:
    found = (pod for pod in pods(cluster, namespace) if pod["metadata"]["labels"]["app"] == app)
    return Counter(pod["spec"].get("nodeName", "") for pod in found)


@pytest.mark.controlplane
def test_a_server_takes_the_manifests(plane: ControlPlane, tmp_path: Path) -> None:
    """As their comment says: by naming four components, in that order."""
    assert COMPONENTS.strip() in (PROFILES / "all" / "kustomization.yaml").read_text(encoding="utf-8")
    folder = tmp_path / "deploy"
    shutil.copytree(DEPLOY, folder)
    with (folder / "kustomization.yaml").open("a", encoding="utf-8") as file:
        file.write(COMPONENTS)
    said = plane.kubectl("apply", "--dry-run=server", "--kustomize", str(folder))
    assert "customresourcedefinition.apiextensions.k8s.io/workloadpolicies.kosmos.io" in said
    rendered = list(yaml.safe_load_all(plane.kubectl("kustomize", str(folder))))
    (config,) = (each["data"] for each in rendered if each["kind"] == "ConfigMap")
    assert config == {
        "config.yaml": (PROFILES / "all" / "config.yaml").read_text(encoding="utf-8"),
        "sppriority.yaml": (PROFILES / "sp-priority" / "sppriority.yaml").read_text(encoding="utf-8"),
    }
    roles = {each["metadata"]["name"] for each in rendered if each["kind"] == "ClusterRole"}
    added = {
        "stowplan:workload-policy",
        "system:sp-scheduler",
        "stowplan:coscheduling",
        "stowplan:resource-reservation",
    }
    assert roles == {"stowplan", *added}
