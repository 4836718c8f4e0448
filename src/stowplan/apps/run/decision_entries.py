"""What the decision log (`stowplan run --decision-log`) says of a decision, of a binding and of a failure, as values.

It names pods, nodes, plugins and reasons. Labels, annotations, and everything else of a pod stay out, so no secret that
somebody put into a pod gets into the log. What a plugin says is in it, cut to a length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stowplan.columns.nodes.table import LiveNames
from stowplan.engine import reports
from stowplan.framework.decision import Decision, Trail
from stowplan.framework.unread_trail import UnreadTrail
from stowplan.objects.texts import shortened

BEST = 3  # nodes whose scores are written, the chosen one among them
MOST_REASONS = 20  # of rejections, those of most nodes
MOST_VICTIMS = 50

Entry = dict[str, Any]


def decided(decision: Decision) -> Entry:
    """`event: decided`. A decision is not a binding yet: `bound` or `failed` follows, or another decision."""
    trail: Trail = decision.trail.filled() if isinstance(decision.trail, UnreadTrail) else decision.trail
    entry: Entry = {
        "event": "decided",
        "pod": decision.pod.key,
        "uid": decision.pod.uid,
        "scheduler": decision.pod.scheduler_name,
        "node": decision.node,
        "nodes": trail.total,
        "feasible": len(trail.feasible),
    }
    if decision.node is None:
        entry |= {"error": bool(decision.error), "message": shortened(decision.full_message)}
        entry |= _preemption(decision)
    else:
        entry |= {"weights": {name: weight for name, (weight, _) in trail.scores.items()}}
        entry |= {"scores": _scores(trail, decision.node)}
    for whole in filter(None, (decision.gated, decision.refused)):
        entry["rejectedBy"] = whole.plugin
    rejected = _rejections(trail)
    return entry | ({"rejections": rejected} if rejected else {})


def reported(report: reports.Report) -> Entry | None:
    """`event: bound`, `failed`, `preempting` or `lost`: what became of a decision. None for any other report."""
    match report:
        case reports.PodBound():
            about = {"node": report.node_name, "scheduler": report.profile, "attempts": report.attempts}
            return {"event": "bound", "pod": report.pod, **about}
        case reports.BindingUnconfirmed():
            return {"event": "lost", "pod": report.pod, "node": report.node_name}
        case reports.AttemptFailed(error=True):
            said = shortened(report.message)
            return {"event": "failed", "pod": report.pod, "scheduler": report.profile, "message": said}
        case reports.PreemptionStarted():
            return {"event": "preempting", "pod": report.pod, "node": report.node_name, "victims": report.victims}
    return None


def _preemption(decision: Decision) -> Entry:
    found = decision.post_filter.candidate if decision.post_filter is not None else None
    if found is None:
        return {}
    victims = [victim.key for victim in found.victims[:MOST_VICTIMS]]
    return {"preempts": {"node": found.node, "victims": victims, "budgetsViolated": found.violations}}


def _rejections(trail: Trail) -> list[Entry]:
    """By plugin and reason, on how many nodes; the most frequent first."""
    numbers = np.bincount(trail.verdict_of[trail.verdict_of >= 0], minlength=len(trail.verdicts)).tolist()
    counted: dict[tuple[str, str], int] = {}
    for verdict, number in zip(trail.verdicts, numbers, strict=True):
        for reason in verdict.reasons if number else ():
            counted[verdict.plugin, reason] = counted.get((verdict.plugin, reason), 0) + number
    most = sorted(counted.items(), key=lambda each: (-each[1], each[0]))[:MOST_REASONS]
    return [{"plugin": plugin, "reason": reason, "nodes": number} for (plugin, reason), number in most]


def _scores(trail: Trail, node: str) -> Entry:
    """The scores of the node and of the best others, before weighting, and the weighted totals."""
    if not len(trail.totals):
        return {}
    most = min(BEST, len(trail.totals))
    best = np.argpartition(-trail.totals, most - 1)[:most]
    best = best[np.argsort(-trail.totals[best], kind="stable")].tolist()
    names = {at: trail.names[int(trail.feasible[at])] for at in best}
    if node not in names.values():  # a tie with many nodes, or another's choice: an extender's, a nomination
        at = _feasible_position(trail, node)
        names = ({} if at is None else {at: node}) | dict(list(names.items())[: BEST - 1])
    return {
        name: {
            "total": int(trail.totals[at]),
            "plugins": {
                plugin: score if isinstance(score, int) else int(score[at])
                for plugin, (_, score) in trail.scores.items()
            },
        }
        for at, name in names.items()
    }


def _feasible_position(trail: Trail, node: str) -> int | None:
    """Which of the feasible nodes it is."""
    names = trail.names
    if isinstance(names, LiveNames):
        place = names.position(node)
    else:
        place = next((at for at, name in enumerate(names) if name == node), None)
    found = [] if place is None else (trail.feasible == place).nonzero()[0].tolist()
    return found[0] if found else None
