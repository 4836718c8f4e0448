"""Small pictures of a cluster: how full nodes are, how many pods they have, and which pods wait. All fit 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.table import Table

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import Decision
from stowplan.objects.pods import Pod

FULL, FREE = "█", "░"
BAR = 8  # characters of a bar of how full a node is


def table(*columns: str) -> Table:
    """Return an empty table. What does not fit is wrapped, and never cut."""
    found = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
    for name in columns:
        found.add_column(name, overflow="fold")
    return found


def counts(label: str, names: Sequence[str], columns: Mapping[str, Mapping[str, int]]) -> Table:
    """Return a row for each name, with a bar for each column: how many pods a node has, before and after."""
    found = table(label, *columns)
    for name in names:
        found.add_row(name, *(bar(numbers.get(name, 0)) for numbers in columns.values()))
    return found


def bar(number: int) -> str:
    return f"{FULL * number} {number}" if number else "0"


def usage(state: ClusterState) -> dict[str, str]:
    """Return a bar for each node: how much of its CPU is requested."""
    found = {}
    for node in Cluster(state).nodes:
        used, room = node.requested("cpu"), node.allocatable("cpu")
        full = round(BAR * used / room)
        found[node.name] = f"{FULL * full}{FREE * (BAR - full)} {used / 1000:g}/{room / 1000:g}"
    return found


def applications(state: ClusterState) -> dict[str, str]:
    """Return the pods on each node, by application."""
    return {node.name: counted(pod.labels.get("app", pod.name) for pod in node.pods) for node in Cluster(state).nodes}


def counted(names: Iterable[str]) -> str:
    """Return "cache, web×2"."""
    return ", ".join(f"{name}×{number}" if number > 1 else name for name, number in sorted(Counter(names).items()))


def per_node(pods: Iterable[Pod]) -> Counter[str]:
    return Counter(pod.node_name for pod in pods if pod.node_name)


def pending(pods: Iterable[Pod]) -> Table:
    """Return the pods without a node and the messages of their conditions. Pods that are alike are one row."""
    rows: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        if not pod.node_name:
            rows[pod.labels.get("app", pod.name), message_of(pod)] += 1
    found = table("pending", "because")
    for (app, message), number in rows.items():
        found.add_row(f"{app}×{number}" if number > 1 else app, message)
    return found


def message_of(pod: Pod) -> str:
    """Return what the scheduler says of a pod without a node, without the part about preemption."""
    condition = pod.condition("PodScheduled")
    return "not attempted yet" if condition is None else condition.message.partition(" no new claims")[0]


def chosen(decision: Decision) -> str:
    """Return why a pod got its node: how far it is ahead of the next one, by which plugins, and who rejected others."""
    trail = decision.trail
    weights = {plugin: weight for plugin, (weight, _) in trail.scores.items()}
    weighted = {name: {p: score * weights[p] for p, score in each.items()} for name, each, _ in trail.scored()}
    best = trail.best()
    others = {name: total for name, _, total in trail.scored() if name not in best}
    text = f"{decision.pod.name} got {decision.node}, {_among(decision, best)}"
    if others:
        runner_up = max(others, key=lambda name: others[name])
        text += f"{', ' if len(best) > 1 else ''}{_lead(weighted[decision.node or ''], weighted[runner_up], runner_up)}"
    refused = ", ".join(f"{number} {reason}" for reason, number in trail.reasons().items())
    return f"{text}.{f' Not feasible: {refused}.' if refused else ''}"


def _among(decision: Decision, best: Sequence[str]) -> str:
    alike = [name for name in best if name != decision.node]
    if alike:
        return f"drawn from it and {' and '.join(alike) if len(alike) < 3 else f'{len(alike)} others'}"
    return "" if len(decision.trail.feasible) > 1 else "the only feasible node"


def _lead(own: Mapping[str, int], other: Mapping[str, int], name: str) -> str:
    """Return by how many points a node leads: "480 points ahead of worker-0 (FlavourClusterWide +600, …)"."""
    differences = {plugin: own[plugin] - other[plugin] for plugin in own if own[plugin] != other[plugin]}
    ordered = sorted(differences.items(), key=lambda each: -abs(each[1]))
    parts = ", ".join(f"{plugin} {number:+}".replace("-", "−") for plugin, number in ordered)
    return f"{sum(differences.values())} points ahead of {name} ({parts})"
