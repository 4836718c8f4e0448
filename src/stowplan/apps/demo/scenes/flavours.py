"""FlavourClusterWide, off and on."""

from __future__ import annotations

from stowplan.apps.demo import pictures
from stowplan.apps.demo.objects import deployment, namespaces, nodes, profiles
from stowplan.apps.demo.scene import Scene
from stowplan.apps.demo.stage import NodeStage

STORY = (
    "Three teams run two gold pods each, every team in its own namespace. kube-scheduler spreads the pods of one team, "
    "and each time the same nodes are the emptiest. FlavourClusterWide counts gold pods in all namespaces, and prefers "
    "the nodes with the fewest."
)
POLICY = "FlavourClusterWide"
TEAMS = ("red", "green", "blue")
WORKERS = 4
CONFIGURATION = profiles(
    "default-scheduler",
    secondary_scheduler={"plugins": {"score": {"enabled": [{"name": POLICY, "weight": 6}]}}},
)


def play(seed: int) -> Scene:
    without, policy = _played(seed, "default-scheduler"), _played(seed, "secondary-scheduler")
    names = [each["metadata"]["name"] for each in policy.documents("nodes")]
    columns = {"gold pods without": _gold(without), f"with {POLICY}": _gold(policy)}
    elsewhere = next(pod for pod in policy.pods("gold") if pod.node_name not in _gold(without))
    why = [pictures.chosen(policy.decision(elsewhere))]
    uneven, even = (max(each.values()) - min(each.get(name, 0) for name in names) for each in columns.values())
    title = f"{POLICY}: one flavour, spread over the whole cluster"
    return Scene(title, STORY, [pictures.counts("node", names, columns)], why, uneven > even <= 1)


def _played(seed: int, scheduler: str) -> NodeStage:
    """The first two workers are emptier than the others."""
    stage = NodeStage(seed, CONFIGURATION)
    workers = nodes("worker", "a" * WORKERS, cpu="8")
    load = [deployment(f"load-{number}", 1, "3", nodeName=f"worker-{number}") for number in range(2, WORKERS)]
    stage.create(*namespaces(TEAMS), *workers, *load)
    for team in TEAMS:
        gold = deployment("gold", 2, "100m", namespace=team, labels={"flavour": "gold"}, schedulerName=scheduler)
        stage.create(gold)
    return stage


def _gold(stage: NodeStage) -> dict[str, int]:
    return dict(pictures.per_node(stage.pods("gold")))
