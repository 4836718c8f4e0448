"""All of `deploy/` in an embedded cluster with RBAC: it takes every manifest, and the rights are enough, and needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from tests.controlplane import deployed_placement, flavours
from tests.controlplane.cluster import KubectlError
from tests.controlplane.deployed import ACCOUNT, DEPLOY, NAMESPACE, check_no_limit_met, configuration, deployed
from tests.controlplane.fixtures import kubectl
from tests.controlplane.place_process import Hub
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.embedded.running import EmbeddedCluster, served

# A component is applied together with what it changes.
BASES = {
    "profiles/bin-packing": ".",
    "profiles/kubenexus-scheduler": ".",
    "profiles/sp-priority": ".",
    "profiles/kosmos-scheduler": ".",
    "profiles/kosmos-scheduler/keep-ratios": ".",
    "profiles/kosmos-scheduler/leaf-nodes": ".",
    "profiles/secondary-scheduler": ".",
    "profiles/all": ".",
    "plugins": ".",
    "replace-kube-scheduler": ".",
    "scores/on-demand": "scores/static",
    "scores/usage/hub/renewal": "scores/usage/hub",
    "scores/usage/cluster/renewal": "scores/usage/cluster",
    "scores/usage/cluster/metrics-server": "scores/usage/cluster",
    "placement/failover": "placement",
}
FOLDERS = sorted(str(file.parent.relative_to(DEPLOY)) for file in DEPLOY.rglob("kustomization.yaml"))
APPLIED = ("created", "configured", "unchanged")
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
BINDS = {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]}


@pytest.fixture(scope="module")
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """An embedded cluster with RBAC, and the namespaces that docs/scores.md says to create first."""
    with served(rbac=True) as found:
        cluster = EmbeddedCluster(found, kubectl(request.config), tmp_path_factory.mktemp("rbac"))
        cluster.kubectl("apply", "--filename", str(DEPLOY / "scores" / "namespace.yaml"))
        cluster.kubectl("create", "namespace", "cluster1")
        yield cluster


def as_plane(cluster: EmbeddedCluster) -> ControlPlane:
    """For what asks for a plane and needs a cluster with users."""
    return cast("ControlPlane", cluster)


def whole(folder: str, where: Path) -> Path:
    """The folder itself, or a kustomization with the component and its base."""
    if folder not in BASES:
        return DEPLOY / folder
    own = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": [os.path.relpath(DEPLOY / BASES[folder], where)],
        "components": [os.path.relpath(DEPLOY / folder, where)],
    }  # fmt: skip
    (where / "kustomization.yaml").write_text(yaml.safe_dump(own))
    return where


def test_components_are_known() -> None:
    kinds = {folder: yaml.safe_load((DEPLOY / folder / "kustomization.yaml").read_text())["kind"] for folder in FOLDERS}
    assert {folder for folder, kind in kinds.items() if kind == "Component"} == BASES.keys()


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_kustomization_is_taken(guarded: EmbeddedCluster, folder: str, tmp_path: Path) -> None:
    if folder == "openshift":
        with flavours.operator(guarded):
            take(guarded, DEPLOY / folder)
    else:
        take(guarded, whole(folder, tmp_path))


def take(cluster: EmbeddedCluster, folder: Path) -> None:
    wanted = list(yaml.safe_load_all(cluster.kubectl("kustomize", str(folder))))
    said = cluster.kubectl("apply", "--kustomize", str(folder)).splitlines()
    assert len(said) == len(wanted)
    assert all(line.endswith(APPLIED) for line in said), said


def a_pod(cluster: EmbeddedCluster, namespace: str, name: str) -> str:
    """A pod for the scheduler of deploy/; its path."""
    spec = {"schedulerName": "stowplan", "containers": [{"name": "c", "image": "pause"}]}
    path = f"/api/v1/namespaces/{namespace}/pods"
    cluster.api().must("POST", path, {"metadata": {"name": name}, "spec": spec})
    return f"{path}/{name}"


def phase(cluster: EmbeddedCluster, path: str) -> str:
    return str(cluster.api().must("GET", path)["status"]["phase"])


def set_rules(cluster: EmbeddedCluster, rules: list[Any]) -> None:
    path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{ACCOUNT}"
    cluster.api().must("PUT", path, {**cluster.api().must("GET", path), "rules": rules})


def test_the_account_of_the_scheduler_is_enough_and_its_rights_are_needed(
    guarded: EmbeddedCluster, tmp_path: Path
) -> None:
    """With its own token; then without one right, and with it again."""
    with deployed(as_plane(guarded), tmp_path, configuration()) as scheduler, guarded.nodes(2), \
            guarded.namespace("rbac") as namespace:  # fmt: skip
        paths = [a_pod(guarded, namespace, f"p{number}") for number in range(5)]
        until("all run", lambda: {phase(guarded, path) for path in paths} == {"Running"}, 120, scheduler.program.tail)
        check_no_limit_met(scheduler.program.log)
        scheduled = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events?fieldSelector=reason%3DScheduled"
        until("it tells of them", lambda: len(guarded.api().must("GET", scheduled)["items"]) == 5, 120)
        role = guarded.api().must("GET", f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{ACCOUNT}")
        assert BINDS in role["rules"]
        set_rules(guarded, [rule for rule in role["rules"] if rule != BINDS])
        last = a_pod(guarded, namespace, "last")
        refused = f'pods "last" is forbidden: User "{USER}" cannot create resource "pods/binding" in API group ""'

        def told() -> str:
            return scheduler.program.log.read_text(encoding="utf-8").replace("\\", "")

        until("it is refused", lambda: refused in told(), 120, scheduler.program.tail)
        assert phase(guarded, last) == "Pending"
        set_rules(guarded, role["rules"])
        until("it runs", lambda: phase(guarded, last) == "Running", 120, scheduler.program.tail)
    guarded.check()


def test_a_right_that_is_taken_away_counts_at_once(guarded: EmbeddedCluster) -> None:
    guarded.kubectl("apply", "--filename", str(DEPLOY / "rbac.yaml"))
    own = guarded.service_account_kubeconfig(NAMESPACE, ACCOUNT)
    assert guarded.kubectl("auth", "can-i", "list", "nodes", kubeconfig=own) == "yes\n"
    path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{ACCOUNT}"
    rules = guarded.api().must("GET", path)["rules"]
    set_rules(guarded, [rule for rule in rules if "nodes" not in rule["resources"]])
    may = {line.split(" ")[0] for line in guarded.kubectl("auth", "can-i", "--list", kubeconfig=own).splitlines()}
    assert "nodes" not in may and "pods/binding" in may
    with pytest.raises(KubectlError, match=f'User "{USER}" cannot list resource "nodes" in API group ""'):
        guarded.kubectl("get", "nodes", kubeconfig=own)
    set_rules(guarded, rules)
    guarded.kubectl("get", "nodes", kubeconfig=own)


def test_the_account_of_placement_is_enough(guarded: EmbeddedCluster, tmp_path: Path) -> None:
    """What it is refused would be in its log."""
    plane = as_plane(guarded)
    guarded.kubectl("delete", "namespace", deployed_placement.NAMESPACE, "--ignore-not-found")
    with deployed_placement.granted(plane, tmp_path), guarded.namespace("hub") as namespace:
        hub = Hub(guarded, namespace)
        with deployed_placement.running(plane, tmp_path) as (_, program):
            hub.explain = program.tail
            hub.clusters("d1", "d2")
            hub.bind()
            hub.place()
            hub.gets("d1", "d2")
            hub.tidy()
    guarded.check()
