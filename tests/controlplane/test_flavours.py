"""deploy/profiles/secondary-scheduler and deploy/openshift at work; on real ones with the rights that go with each."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.controlplane.deployed import DEPLOY, check_no_limit_met, deployed
from tests.controlplane.flavours import FLAVOURS, SEEDS, WORKER, landed, operator
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import stowplan

PROFILE = DEPLOY / "profiles" / "secondary-scheduler"


def configuration(**args: Any) -> Any:
    """The profile's, with further arguments for the policy."""
    config = yaml.safe_load((PROFILE / "config.yaml").read_text(encoding="utf-8"))
    config["profiles"][0]["pluginConfig"][0]["args"] |= args
    return config


@contextmanager
def scheduled(cluster: Cluster, folder: Path, config: Any) -> Iterator[Callable[[], str]]:
    """A scheduler at work, as the account of deploy/rbac.yaml where there are accounts; the answer is its metrics."""
    if isinstance(cluster, ControlPlane):
        with deployed(cluster, folder, config) as found:
            yield lambda: found.page("/metrics", cluster.tokens["admin"])[1]
            check_no_limit_met(found.program.log)
        return
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    with stowplan(cluster, "flavours", "--config", str(file)) as program:
        program.wait_until_leading()
        yield lambda: program.page("/metrics")
        program.stop(grace=60)


def figures(text: str, name: str) -> list[float]:
    lines = (line for line in text.splitlines() if line.startswith(name))
    return [float(line.rsplit(" ", 1)[1]) for line in lines]


def create(cluster: Cluster, namespaces: list[str], number: int) -> None:
    """So many gold pods, without an owner that others would spread them by."""
    container = {"name": "app", "image": "nginx:latest", "resources": {"requests": {"cpu": "10m"}}}
    spec = {"schedulerName": "secondary-scheduler", "containers": [container], "terminationGracePeriodSeconds": 0}

    def one(at: int) -> None:
        body = {"metadata": {"name": f"gold-{at}", "labels": {"flavour": "gold"}}, "spec": spec}
        cluster.api().must("POST", f"/api/v1/namespaces/{namespaces[at % len(namespaces)]}/pods", body)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(number)))


def test_a_burst_of_300_over_30_nodes_ends_at_10_per_node(cluster: Cluster, tmp_path: Path) -> None:
    """All are there before the scheduler is. Every second what it counts is compared with the API's objects."""
    with ExitStack() as stack:
        nodes = stack.enter_context(cluster.nodes(30, prefix="worker", labels=WORKER))
        create(cluster, [stack.enter_context(cluster.namespace("burst")) for _ in range(3)], 300)
        metrics = stack.enter_context(scheduled(cluster, tmp_path, configuration(cacheTTL=1)))
        until("300 pods are bound", lambda: landed(cluster).total() == 300, 240)
        assert landed(cluster) == {("gold", node): 10 for node in nodes}
        shown = lambda: figures(metrics(), "stowplan_flavour_pods{") == [10.0] * 30  # noqa: E731
        until("the figures say so", shown, 60, metrics)
        until("it was recounted", lambda: sum(figures(metrics(), "stowplan_recounts_total{")) >= 3, 60, metrics)
        assert figures(metrics(), "stowplan_drift{") == [0.0]
        assert figures(metrics(), "stowplan_flavour_skew{") == [0.0]


def test_the_seeds_file_in_each_of_three_namespaces_ends_at_three_of_each_per_worker(
    cluster: Cluster, tmp_path: Path
) -> None:
    """No namespace knows of the others; together they are in balance."""
    with ExitStack() as stack:
        workers = stack.enter_context(cluster.nodes(3, prefix="worker", labels=WORKER))
        stack.enter_context(scheduled(cluster, tmp_path, configuration()))
        for _ in range(3):
            namespace = stack.enter_context(cluster.namespace("team"))
            cluster.kubectl("apply", "--namespace", namespace, "--filename", str(SEEDS / "deployments.yaml"))
        until("27 pods are bound", lambda: landed(cluster).total() == 27, 180)
        assert landed(cluster) == {(flavour, node): 3 for flavour in FLAVOURS for node in workers}


# -- the manifests


@pytest.mark.controlplane
def test_a_server_takes_the_profiles_manifests(plane: ControlPlane, tmp_path: Path) -> None:
    """As their comment says: by naming the component."""
    folder = tmp_path / "deploy"
    shutil.copytree(DEPLOY, folder)
    with (folder / "kustomization.yaml").open("a", encoding="utf-8") as file:
        file.write("components: [profiles/secondary-scheduler]\n")
    plane.kubectl("apply", "--dry-run=server", "--kustomize", str(folder))
    rendered = Counter[str]()
    for each in yaml.safe_load_all(plane.kubectl("kustomize", str(folder))):
        rendered[each["kind"]] += 1
        if each["kind"] == "ConfigMap":
            assert each["metadata"]["name"] == "stowplan"
            assert each["data"] == {"config.yaml": (PROFILE / "config.yaml").read_text(encoding="utf-8")}
    assert rendered["ConfigMap"] == rendered["Deployment"] == 1


@pytest.mark.controlplane
def test_a_server_takes_the_manifests_for_openshift(plane: ControlPlane) -> None:
    with operator(plane):
        said = plane.kubectl("apply", "--dry-run=server", "--kustomize", str(DEPLOY / "openshift"))
        assert "secondaryscheduler.operator.openshift.io/cluster created (server dry run)" in said
        other = DEPLOY / "openshift" / "config-custom-label.yaml"
        plane.kubectl("apply", "--dry-run=server", "--filename", str(other))
