"""For tests of FlavourClusterWide: the seed's files, OpenShift's operator played by a test, and where pods landed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import pods

ROOT = Path(__file__).parents[2]
SEEDS, OPENSHIFT = ROOT / "tests" / "seeds" / "flavour_cluster_wide", ROOT / "deploy" / "openshift"
NAMESPACE, ACCOUNT = "openshift-secondary-scheduler-operator", "secondary-scheduler"
CONFIG_MAP = "secondary-scheduler-config"
WORKER = {"node-role.kubernetes.io/worker": ""}
FLAVOURS = ("gold", "silver", "bronze")
STUB: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "secondaryschedulers.operator.openshift.io"},
    "spec": {
        "group": "operator.openshift.io",
        "names": {"kind": "SecondaryScheduler", "plural": "secondaryschedulers", "singular": "secondaryscheduler"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@contextmanager
def operator(cluster: Cluster) -> Iterator[None]:
    """What is there before anybody's files are applied: its namespace, its account, its kind of resource."""
    made = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
    ]
    api = cluster.api()
    with cluster.having(STUB, *made):
        until("the stub is served", lambda: api.answers("/apis/operator.openshift.io/v1/secondaryschedulers"))
        yield
    for path in (f"/api/v1/namespaces/{NAMESPACE}", f"/apis/{STUB['apiVersion']}/customresourcedefinitions/{crd()}"):
        until(f"{path} is gone", lambda path=path: api.get(path).status == 404, 120)  # type: ignore[misc]


def crd() -> str:
    return str(STUB["metadata"]["name"])


@contextmanager
def granted(cluster: Cluster) -> Iterator[None]:
    """The account has the rights of deploy/openshift, and no others."""
    file = str(OPENSHIFT / "rbac.yaml")
    cluster.kubectl("apply", "--filename", file)
    try:
        yield
    finally:
        cluster.kubectl("delete", "--ignore-not-found", "--filename", file)


def mount(cluster: Cluster, file: Path) -> None:
    """What the ConfigMap says goes into the file, as a kubelet would put it there."""
    found = cluster.api().must("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/{CONFIG_MAP}")
    other = file.with_suffix(".new")
    other.write_text(found["data"]["config.yaml"], encoding="utf-8")
    other.replace(file)  # all at once: a scheduler looks at it every second


def documents() -> dict[str, str]:
    """The seed's Deployments, each as it stands, by flavour."""
    parts = (SEEDS / "deployments.yaml").read_text(encoding="utf-8").split("---\n")
    return dict(zip(FLAVOURS, parts, strict=True))


def landed(cluster: Cluster, label: str = "flavour") -> Counter[tuple[str, str]]:
    """How many pods of each flavour each node has, in all namespaces."""
    found = ((pod["metadata"].get("labels", {}).get(label), pod["spec"].get("nodeName")) for pod in pods(cluster))
    return Counter((flavour, node) for flavour, node in found if flavour and node)
