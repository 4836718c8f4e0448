"""`stowplan demo`: a small cluster in memory, pods decided one by one, and the reasons on screen.

It needs Python and nothing else. The cluster and its workloads are data (`demo.yaml`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from itertools import cycle, islice
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from stowplan.apps import wiring
from stowplan.columns.state import ClusterState
from stowplan.columns.views import Cluster
from stowplan.framework.evaluate import schedule_one
from stowplan.framework.verdict import Decision
from stowplan.objects import kinds
from stowplan.objects.changes import Put
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod


def run() -> int:
    """Place every pod that fits and say why the others do not; 0 if at least one was placed."""
    console = Console(highlight=False)
    script = yaml.safe_load(resources.files("stowplan.apps").joinpath("demo.yaml").read_text(encoding="utf-8"))
    state = ClusterState()
    for node in nodes(script["nodes"]):
        state.apply(Put(node))
    _, profiles = wiring.defaults()
    decisions = []
    for pod in pods(script["workloads"]):
        decision = schedule_one(pod, state, profiles["default-scheduler"])
        if decision.node is not None:
            state.add_pod(pod, decision.node)
        decisions.append(decision)
    console.print(decided(decisions))
    console.print(node_map(state))
    placed = sum(decision.node is not None for decision in decisions)
    console.print(f"{placed} of {len(decisions)} pods placed on {len(Cluster(state).nodes)} nodes.")
    return 0 if placed else 1


def nodes(groups: list[Mapping[str, Any]]) -> Iterator[Node]:
    for group in groups:
        for number, zone in enumerate(islice(cycle(group["zones"]), group["count"])):
            name = f"{group['name']}-{number}"
            offered = {"cpu": group["cpu"], "memory": group["memory"], "pods": "110"}
            if "gpus" in group:
                offered["nvidia.com/gpu"] = group["gpus"]
            taints = [{"key": group["taint"], "effect": "NoSchedule"}] if "taint" in group else []
            labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
            described = {
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": taints},
                "status": {"allocatable": offered},
            }
            yield kinds.convert(Node, described)


def pods(workloads: list[Mapping[str, Any]]) -> Iterator[Pod]:
    for workload in workloads:
        for number in range(workload["replicas"]):
            name = f"{workload['name']}-{number}"
            meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": workload["name"]}}
            yield kinds.convert(Pod, {"metadata": meta, "spec": workload["pod"]})


def decided(decisions: list[Decision]) -> Table:
    table = Table("pod", "node", "why", title="Decisions", title_justify="left")
    for decision in decisions:
        table.add_row(decision.pod.name, decision.node or "pending", why(decision))
    return table


def why(decision: Decision) -> str:
    """The winner's lead, or the reasons in kube-scheduler's own words."""
    if decision.node is None:
        return decision.full_message
    trail = decision.trail
    scores = next(scores for name, scores, _ in trail.scored() if name == decision.node)
    told = ", ".join(f"{plugin} {score}" for plugin, score in scores.items() if score and plugin != "TaintToleration")
    refused = "; ".join(f"{number} {reason}" for reason, number in trail.reasons().most_common())
    best = f"best of {len(trail.feasible)} with {int(trail.totals.max())} points ({told})"
    return f"{best}; not: {refused}" if refused else best


def node_map(state: ClusterState) -> Table:
    table = Table("node", "zone", "cpu used", "pods", title="Nodes", title_justify="left")
    view = Cluster(state).nodes
    for node in view:
        used, room = node.requested("cpu"), node.allocatable("cpu")
        bar = "█" * round(10 * used / room) + "░" * (10 - round(10 * used / room))
        names = " ".join(sorted(pod.name for pod in node.pods))
        table.add_row(node.name, node.labels.get("topology.kubernetes.io/zone", ""), f"{bar} {used}m/{room}m", names)
    return table
