"""SPPriority: a pod that is deleted again and again."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from stowplan.apps.demo import pictures
from stowplan.apps.demo.objects import deployment, nodes, profiles
from stowplan.apps.demo.scene import Scene
from stowplan.apps.demo.stage import NodeStage

STORY = (
    "A workload with one replica is deleted three times. For kube-scheduler the emptiest node stays the best one, so "
    "the pod returns to it, even if that node made it fail. SPPriority keeps the history of the workload, and its pod "
    "gets the node that it used least, and not the one that it used last."
)
POLICY = "SPPriority"
DELETED = 3
CONFIGURATION = profiles(
    "default-scheduler",
    sp_scheduler={
        "plugins": {"multiPoint": {"enabled": [{"name": POLICY, "weight": 5}]}},
        "pluginConfig": [{"name": POLICY, "args": {"strict": True}}],
    },
)


def play(seed: int) -> Scene:
    without, _ = _played(seed, "default-scheduler")
    policy, stage = _played(seed, "sp-scheduler")
    names = [each["metadata"]["name"] for each in stage.documents("nodes")]
    columns = {"pods so far without": Counter(without), f"with {POLICY}": Counter(policy)}
    why = [pictures.chosen(stage.decision(stage.pods("nomad")[-1]))]
    paths = f"without: {' → '.join(without)}", f"with:    {' → '.join(policy)}"
    stayed, moved = len(set(without)) == 1, all(here != there for here, there in pairwise(policy))
    title = f"{POLICY}: a pod that does not return to the same node"
    return Scene(title, STORY, [pictures.counts("node", names, columns), lambda _: paths], why, stayed and moved)


def _played(seed: int, scheduler: str) -> tuple[list[str], NodeStage]:
    """Return the nodes of the pod, one after the other. The first worker is emptier than the others."""
    stage = NodeStage(seed, CONFIGURATION)
    load = [deployment(f"load-{number}", 1, "1", nodeName=f"worker-{number}") for number in range(1, 4)]
    stage.create(*nodes("worker", "aaaa"), *load, deployment("nomad", 1, "100m", schedulerName=scheduler))
    found = [_node(stage)]
    for _ in range(DELETED):
        stage.delete("v1", "Pod", *(pod.name for pod in stage.pods("nomad")))
        found.append(_node(stage))
    return found, stage


def _node(stage: NodeStage) -> str:
    (pod,) = stage.pods("nomad")
    return pod.node_name
