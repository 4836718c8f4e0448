"""The first scene: kube-scheduler's own rules, with the reasons."""

from __future__ import annotations

from typing import Any

from stowplan.apps.demo import pictures
from stowplan.apps.demo.objects import ZONE, deployment, node, nodes
from stowplan.apps.demo.scene import Scene
from stowplan.apps.demo.stage import NodeStage

STORY = (
    "Without a policy of yours, Stowplan decides as kube-scheduler 1.36 does. Six web pods must be spread over the "
    "zones. Seven cache pods must be apart, and only five nodes are open to them: the sixth has a taint."
)
HOSTNAME = "kubernetes.io/hostname"


def play(seed: int) -> Scene:
    stage = NodeStage(seed)
    stage.create(*nodes("worker", "abcab"), node("spot-0", "c", taint="spot"), deployment("db", 2, "2"))
    before = pictures.usage(stage.engine.state)
    stage.create(deployment("web", 6, "500m", **_spread("web")), deployment("cache", 7, "250m", **_apart("cache")))
    after, apps = pictures.usage(stage.engine.state), pictures.applications(stage.engine.state)
    table = pictures.table("node", "zone", "CPU before", "CPU after", "pods")
    for each in stage.documents("nodes"):
        name, labels = each["metadata"]["name"], each["metadata"]["labels"]
        table.add_row(name, labels[ZONE], before[name], after[name], apps[name])
    last = [pod for pod in stage.pods("web") if pod.node_name][-1]
    why = [pictures.chosen(stage.decision(last))]
    waiting = sum(not pod.node_name for pod in stage.pods())
    return Scene("kube-scheduler's own rules", STORY, [table, pictures.pending(stage.pods())], why, waiting == 2)


def _spread(app: str) -> dict[str, Any]:
    selector = {"labelSelector": {"matchLabels": {"app": app}}}
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **selector}
    return {"topologySpreadConstraints": [rule]}


def _apart(app: str) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
