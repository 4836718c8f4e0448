"""What the demo shows: the nodes, the pending pods with the reasons, and the last decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from stowplan.apps.run.service import SchedulerService
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import Decision
from stowplan.objects.pods import Pod

COMMANDS = ("get pods -o wide", "scale deployment web --replicas=60", "describe pod -l app=train")


def summary(
    console: Console, script: Mapping[str, Any], program: SchedulerService, pods: Sequence[Pod], journey: Sequence[str]
) -> None:
    """Print everything once."""
    engine = program.engine_loop.engine
    console.print(_workloads(script, pods))
    console.print(_journey(script, journey))
    console.print(node_map(engine.state))
    console.print(_pending(pods))
    decided = [engine.decisions.latest(pod.uid) for pod in sorted(pods, key=lambda pod: pod.name)]
    console.print(_decisions([each for each in decided if each is not None and each.node is not None][:8]))
    placed = sum(bool(pod.node_name) for pod in pods)
    console.print(f"{placed} of {len(pods)} pods placed on {len(Cluster(engine.state).nodes)} nodes.")


def fleet(console: Console, script: Mapping[str, Any], clusters: Sequence[str]) -> None:
    """Print the clusters that a placement was given."""
    given = script["fleet"]
    went = " → ".join(clusters) or "none yet"
    console.print(
        f"Placement {given['placement']}, whose cluster {given['primary']} is deleted and created again: {went}"
    )


def drawn(
    program: SchedulerService,
    pods: Sequence[Pod],
    kubeconfig: Path,
    height: int,
    script: Mapping[str, Any],
    journey: Sequence[str],
) -> Group:
    """Return the same for a terminal, with commands to try first. The end is cut off if it does not fit."""
    if not program.synced:
        return Group(Text("starting …"))
    engine = program.engine_loop.engine
    latest = [each for each in (engine.decisions.latest(pod.uid) for pod in pods[-60:]) if each is not None]
    rows = max(height // 4, 4)
    placed = sum(bool(pod.node_name) for pod in pods)
    commands = "\n".join(f"    kubectl --kubeconfig {kubeconfig} {line}" for line in COMMANDS)
    return Group(
        Text(f"{placed} of {len(pods)} pods placed. Ctrl-C ends it. Try:\n{commands}\n"),
        Text(_journey(script, journey[-6:])),
        _decisions([each for each in latest if each.node is not None][-rows // 2 :]),
        node_map(engine.state, rows),
        _pending(pods),
    )


def node_map(state: ClusterState, most: int = 1000) -> Table:
    table = Table("node", "zone", "cpu used", "pods", title="Nodes", title_justify="left")
    view = Cluster(state).nodes
    for node in list(view)[:most]:
        used, room = node.requested("cpu"), node.allocatable("cpu")
        bar = "█" * round(10 * used / room) + "░" * (10 - round(10 * used / room))
        apps = Counter(pod.labels.get("app", pod.name) for pod in node.pods)
        names = " ".join(f"{app}×{number}" if number > 1 else app for app, number in sorted(apps.items()))
        table.add_row(node.name, node.labels.get("topology.kubernetes.io/zone", ""), f"{bar} {used}m/{room}m", names)
    if len(view) > most:
        table.caption = f"and {len(view) - most} more"
    return table


def _workloads(script: Mapping[str, Any], pods: Sequence[Pod]) -> Table:
    table = Table("workload", "placed", "what it wants", title="Workloads", title_justify="left")
    for workload in (*script["workloads"], script["spark"]):
        own = [pod for pod in pods if pod.labels.get("app") == workload["name"]]
        table.add_row(workload["name"], f"{sum(bool(pod.node_name) for pod in own)} of {len(own)}", workload["wants"])
    return table


def _journey(script: Mapping[str, Any], journey: Sequence[str]) -> str:
    return f"{script['moved']['workload']}, deleted again and again: {' → '.join(journey) or '…'}\n"


def _pending(pods: Sequence[Pod]) -> Table:
    table = Table("pod", "why it is pending", title="Pending", title_justify="left")
    for pod in sorted((pod for pod in pods if not pod.node_name), key=lambda pod: pod.name)[:12]:
        condition = pod.condition("PodScheduled")
        table.add_row(pod.name, condition.message if condition is not None else "not attempted yet")
    return table


def _decisions(decisions: Sequence[Decision]) -> Table:
    table = Table("pod", "node", "why", title="Decisions", title_justify="left")
    for decision in decisions:
        table.add_row(decision.pod.name, decision.node or "pending", why(decision))
    return table


def why(decision: Decision) -> str:
    """Return the points of the chosen node, and the reasons against other nodes."""
    trail = decision.trail
    scores = next((scores for name, scores, _ in trail.scored() if name == decision.node), {})
    points = ", ".join(f"{plugin} {score}" for plugin, score in scores.items() if score and plugin != "TaintToleration")
    refused = "; ".join(f"{number} {reason}" for reason, number in trail.reasons().most_common())
    best = f"best of {len(trail.feasible)} with {int(trail.totals.max())} points ({points})"
    return f"{best}; not: {refused}" if refused else best
