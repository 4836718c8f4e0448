"""WorkloadPolicy: how many replicas a zone gets."""

from __future__ import annotations

from stowplan.apps.demo import pictures
from stowplan.apps.demo.objects import ZONE, deployment, nodes, profiles
from stowplan.apps.demo.scene import Scene
from stowplan.apps.demo.stage import NodeStage

STORY = (
    "Seven replicas of a ledger, in three zones. kube-scheduler makes the zones alike. The WorkloadPolicy mostly-a "
    "asks for four replicas in zone a and two in zone b, and allows no others: the seventh waits, and says why."
)
POLICY = "WorkloadPolicy"
CONFIGURATION = profiles(
    "default-scheduler", kosmos_scheduler={"plugins": {"multiPoint": {"enabled": [{"name": POLICY, "weight": 10}]}}}
)
SHARES = {
    "apiVersion": "kosmos.io/v1alpha1",
    "kind": "WorkloadPolicy",
    "metadata": {"name": "mostly-a"},
    "spec": {
        "topologyKey": ZONE,
        "labelSelector": {"matchLabels": {"app": "ledger"}},
        "allocationPolicy": [{"name": "a", "replicas": 4}, {"name": "b", "replicas": 2}],
        "allocationType": "Required",
    },
}


def play(seed: int) -> Scene:
    without, policy = _played(seed, "default-scheduler"), _played(seed, "kosmos-scheduler")
    columns = {"ledger pods without": _zones(without), f"with {POLICY}": _zones(policy)}
    picture = pictures.counts("zone", ("a", "b", "c", "none: pending"), columns)
    last = next(pod for pod in policy.pods("ledger") if not pod.node_name)
    why = [f"{last.name} waits: {pictures.message_of(last)}"]
    went_well = _zones(policy) == {"a": 4, "b": 2, "none: pending": 1}
    return Scene(f"{POLICY}: a share of the replicas for each zone", STORY, [picture], why, went_well)


def _played(seed: int, scheduler: str) -> NodeStage:
    stage = NodeStage(seed, CONFIGURATION)
    stage.create(SHARES, *nodes("worker", "abcabc"))
    labels = {"workload-policy/kosmos.io": "mostly-a"} if scheduler == "kosmos-scheduler" else {}
    stage.create(deployment("ledger", 7, "500m", labels=labels, schedulerName=scheduler))
    return stage


def _zones(stage: NodeStage) -> dict[str, int]:
    """Return the number of pods in each zone."""
    zones = {each["metadata"]["name"]: each["metadata"]["labels"][ZONE] for each in stage.documents("nodes")}
    found: dict[str, int] = {}
    for pod in stage.pods("ledger"):
        zone = zones.get(pod.node_name, "none: pending")
        found[zone] = found.get(zone, 0) + 1
    return found
