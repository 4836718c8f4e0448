"""What `stowplan explain` prints for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.engine.explain import Explanation, GroupExplanation
from stowplan.framework.decision import Decision
from stowplan.objects.pods import Pod

MAX_NEAREST, MAX_MEMBERS, MAX_SCORES, MAX_REJECTIONS = 5, 20, 20, 50


def show_all(console: Console, answers: list[Explanation]) -> None:
    if not answers:
        console.print("No pod is pending.")
        return
    table = Table("namespace", "pod", "node", "why")
    for answer in answers:
        pod = answer.decision.pod
        why = _margin(answer.decision) if answer.node else answer.why_not
        table.add_row(pod.namespace, pod.name, answer.node or "", why)
    console.print(table)


def show(console: Console, answer: Explanation, state: ClusterState, bound_to: str) -> None:
    decision = answer.decision
    if bound_to:
        console.print(f"{decision.pod.key} is on {bound_to}; this is how it would be scheduled now.")
    if decision.gated is not None:
        console.print(f"{decision.pod.key} is gated: {answer.why_not}")
        return
    if answer.node is None:
        console.print(answer.why_not)
    else:
        console.print(f"{decision.pod.key} would be scheduled to {answer.node} ({_margin(decision)})")
    if answer.group is not None:
        console.print(_members(answer.group))
    if decision.node is None:
        for line in nearest(decision, state):
            console.print(f"  {line}")
    else:
        console.print(_scores(decision))
    if decision.trail.verdicts:
        console.print(_rejections(decision))


def _members(group: GroupExplanation) -> Table:
    """Return the pods of a group that were attempted."""
    found = sum(node is not None for node in group.nodes.values())
    caption = f"pod group {group.name}: {found} of {len(group.nodes)} pods found a node, {group.needed} needed"
    table = Table("pod", "node, together with the others", caption=caption)
    for key, node in list(group.nodes.items())[:MAX_MEMBERS]:
        table.add_row(key, node or "none")
    if len(group.nodes) > MAX_MEMBERS:
        table.add_row("…", f"and {len(group.nodes) - MAX_MEMBERS} more; -o json has all")
    return table


def _margin(decision: Decision) -> str:
    totals = sorted(decision.trail.totals.tolist(), reverse=True)
    ahead = totals[0] - totals[1] if len(totals) > 1 else None
    how = "the only feasible node" if ahead is None else f"{ahead} ahead" if ahead else "drawn from the best"
    return f"{how}; {len(totals)} of {decision.trail.total} nodes feasible"


def _scores(decision: Decision) -> Table:
    weights = {name: weight for name, (weight, _) in decision.trail.scores.items()}
    table = Table("node", "total", *(f"{name} ×{weight}" for name, weight in weights.items()))
    rows = sorted(decision.trail.scored(), key=lambda row: (-row[2], row[0] != decision.node, row[0]))
    for name, each, total in rows[:MAX_SCORES]:
        table.add_row(name, str(total), *(str(each[plugin]) for plugin in weights))
    if len(rows) > MAX_SCORES:
        table.caption = f"and {len(rows) - MAX_SCORES} more; -o json has all"
    return table


def _rejections(decision: Decision) -> Table:
    table = Table("node", "rejected by", "because")
    refused = [(name, verdict) for name, verdict in decision.trail.rejections() if verdict is not None]
    for name, verdict in refused[:MAX_REJECTIONS]:
        table.add_row(name, verdict.plugin, ", ".join(verdict.reasons))
    if len(refused) > MAX_REJECTIONS:
        table.caption = f"and {len(refused) - MAX_REJECTIONS} more; -o json has all"
    return table


def nearest(decision: Decision, state: ClusterState) -> Iterator[str]:
    """Return the nodes that lack least of the pod's request, among those that were rejected for resources only."""
    nodes = Cluster(state).nodes
    lacking: list[tuple[float, str]] = []
    for at, (name, verdict) in enumerate(decision.trail.rejections()):
        if verdict is not None and verdict.plugin == "NodeResourcesFit":
            short = dict(_short(decision.pod, nodes, at, state))
            share = max((amount / decision.pod.request[what] for what, amount in short.items()), default=0.0)
            lacking.append((share, f"{name} lacks {', '.join(_amount(*each) for each in short.items()) or 'room'}"))
    return (text for _, text in sorted(lacking)[:MAX_NEAREST])


def _short(pod: Pod, nodes: Nodes, at: int, state: ClusterState) -> Iterator[tuple[str, int]]:
    placed = state.pods.get(pod.uid)
    its_node = placed is not None and placed.row == int(nodes.rows[at])  # then its own room is free for it
    for resource, wanted in pod.request.items():
        missing = int(wanted) - int(nodes.free[resource][at]) - (int(wanted) if its_node else 0)
        if wanted and missing > 0:
            yield resource, missing


def _amount(resource: str, missing: int) -> str:
    if resource == "cpu":
        return f"{missing}m cpu" if missing % 1000 else f"{missing // 1000} cpu"
    if resource in ("memory", "ephemeral-storage"):
        return f"{-(-missing // 2**20)}Mi {resource}"
    return f"{missing} {resource}"
