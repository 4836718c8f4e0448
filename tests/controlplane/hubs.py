"""A cluster as a hub: the definitions of cluster.open-cluster-management.io, managed clusters and their namespaces."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.controlplane.deployed import DEPLOY
from tests.controlplane.process import until

GROUP = "cluster.open-cluster-management.io"
CRDS = DEPLOY / "crds" / "placement"
SEED = Path(__file__).parents[1] / "seeds" / "placement"
PLACEHOLDER = "example-score-of-each-cluster.yaml"


def define(cluster: Cluster) -> None:
    """The definitions, served when this returns; again and again, if need be."""
    cluster.kubectl("apply", "--kustomize", str(CRDS))
    names = [f"crd/{file.stem}" for file in CRDS.glob("*.io.yaml")]
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", *names)
    path = f"/apis/{GROUP}/v1alpha1/addonplacementscores"
    until("scores are served", lambda: cluster.api().answers(path), 60)


@contextlib.contextmanager
def managed(cluster: Cluster, *names: str, **more: Mapping[str, Any]) -> Iterator[list[str]]:
    """ManagedClusters with their namespaces; gone afterwards, with all that is in them."""
    api = cluster.api()
    for name in names:
        api.must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        document = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ManagedCluster",
            "metadata": {"name": name, "labels": {"name": name}},
            "spec": {"hubAcceptsClient": True},
            **more,
        }
        api.must("POST", f"/apis/{GROUP}/v1/managedclusters", document)
    try:
        yield list(names)
    finally:
        for name in names:
            api.ask("DELETE", f"/apis/{GROUP}/v1/managedclusters/{name}")
            api.ask("DELETE", f"/api/v1/namespaces/{name}")
        wait_until_gone(cluster, *names)


def wait_until_gone(cluster: Cluster, *namespaces: str) -> None:
    """The next test may want namespaces of these names."""
    api, gone = cluster.api(), f"namespaces {', '.join(namespaces)} are gone"
    until(gone, lambda: all(api.get(f"/api/v1/namespaces/{name}").status == 404 for name in namespaces), 180)


def scores_of(cluster: Cluster, name: str, resource: str = "default") -> dict[str, int]:
    """What the hub has of a managed cluster; nothing if there is no object."""
    status = score_status(cluster, name, resource)
    return {each["name"]: each["value"] for each in status.get("scores", ())}


def score_status(cluster: Cluster, name: str, resource: str = "default") -> dict[str, Any]:
    answer = cluster.api().get(f"/apis/{GROUP}/v1alpha1/namespaces/{name}/addonplacementscores/{resource}")
    found: dict[str, Any] = answer.json().get("status", {}) if answer.status == 200 else {}
    return found


def apply_status(cluster: Cluster, text: str) -> None:
    """An object and, through its own door, its status."""
    cluster.kubectl("apply", "--filename=-", input=text)
    cluster.kubectl("replace", "--subresource=status", "--filename=-", input=text)


def a_placement(name: str, *coordinates: tuple[str, str, int], **spec: Any) -> str:
    configurations = [
        {
            "scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": score}},
            "weight": weight,
        }
        for resource, score, weight in coordinates
    ]
    policy = {"mode": "Exact", "configurations": configurations}
    document = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "Placement",
        "metadata": {"name": name},
        "spec": {"prioritizerPolicy": policy, **spec},
    }
    return json.dumps(document)
