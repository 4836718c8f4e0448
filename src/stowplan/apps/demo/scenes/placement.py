"""A Placement: clusters for a workload, on a hub."""

from __future__ import annotations

from typing import Any

from stowplan.apps.demo import pictures
from stowplan.apps.demo.scene import Scene
from stowplan.apps.demo.stage import HubStage

STORY = (
    "One level up, a Placement of Open Cluster Management asks for the two clusters with the most CPU. Then oslo "
    "is tainted for maintenance, and the next best cluster takes over. When the taint is removed, oslo is back."
)
GROUP = "cluster.open-cluster-management.io"
CLUSTERS = {"lima": 40, "oslo": 96, "pune": 64, "rome": 16}
TAINT = {"key": "maintenance", "effect": "NoSelect"}
COLUMNS = ("cluster", "CPU", "at first", "oslo is tainted", "taint removed")


def play(seed: int) -> Scene:
    stage = HubStage(seed)
    stage.create(*_fleet())
    for name, cpu in CLUSTERS.items():
        amounts = {"cpu": str(cpu)}
        status = {"capacity": amounts, "allocatable": amounts}
        _patch(stage, name, {"op": "add", "path": "/status", "value": status}, "status")
    stage.create(_placement())
    seen = [stage.chosen()]
    _patch(stage, "oslo", {"op": "add", "path": "/spec/taints", "value": [TAINT]})
    seen.append(stage.chosen())
    choice = stage.choice("default/shop")
    _patch(stage, "oslo", {"op": "remove", "path": "/spec/taints"})
    seen.append(stage.chosen())
    table = pictures.table(*COLUMNS)
    for name, cpu in CLUSTERS.items():
        table.add_row(name, str(cpu), *("chosen" if name in each else "–" for each in seen))
    points = ", ".join(f"{name} {total}" for name, total in sorted(choice.ranking(), key=lambda each: -each[1]))
    why = [f"{name} was left out by {plugin}: {reason}." for name, plugin, reason in choice.dropped()]
    why.append(f"points of the others by ResourceAllocatableCPU: {points}.")
    went_well = [set(each) for each in seen] == [{"oslo", "pune"}, {"pune", "lima"}, {"oslo", "pune"}]
    return Scene("Placement: clusters for a workload", STORY, [table], why, went_well)


def _patch(stage: HubStage, cluster: str, operation: dict[str, Any], subresource: str = "") -> None:
    stage.patch(f"{GROUP}/v1", "ManagedCluster", cluster, [operation], subresource)


def _fleet() -> list[dict[str, Any]]:
    own = {f"{GROUP}/clusterset": "default"}
    sets: list[dict[str, Any]] = [
        {"kind": "ManagedClusterSet", "spec": {}},
        {"kind": "ManagedClusterSetBinding", "spec": {"clusterSet": "default"}},
    ]
    return [
        *({"apiVersion": f"{GROUP}/v1beta2", "metadata": {"name": "default"}, **each} for each in sets),
        *(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "ManagedCluster",
                "metadata": {"name": name, "labels": own},
                "spec": {"hubAcceptsClient": True},
            }
            for name in CLUSTERS
        ),
    ]


def _placement() -> dict[str, Any]:
    by_cpu = {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"}, "weight": 1}
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "Placement",
        "metadata": {"name": "shop"},
        "spec": {"numberOfClusters": 2, "prioritizerPolicy": {"mode": "Exact", "configurations": [by_cpu]}},
    }
