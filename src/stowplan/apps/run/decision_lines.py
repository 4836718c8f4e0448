"""The log lines for decisions, and the verbosity of each.

    v=4   each decision: how many nodes were looked at, and how many are feasible
    v=5   the verdict on each node: feasible, or which plugin rejects it and why
    v=6   the score of each feasible node: every plugin's, with its weight, and the total
    v=8   the trail: the whole decision as JSON, as the page /debug/decisions shows it

OpenShift's operators know words instead: `logLevel: Debug` is v=4, Trace is v=6 and TraceAll is v=8. On a large cluster
the lines per node are many: five thousand for each pod on five thousand nodes.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stowplan.apps import json_output
from stowplan.apps.logging import Log
from stowplan.framework.decision import UNSEEN, Decision, Verdict

DECISIONS, VERDICTS, SCORES, TRAIL = 4, 5, 6, 8


def writer(log: Log) -> Callable[[Decision], None] | None:
    """Return what writes the lines of a decision; None if the log is not that verbose."""
    return (lambda decision: write(log, decision)) if log.v >= DECISIONS else None


def write(log: Log, decision: Decision) -> None:
    pod, trail = decision.pod.key, decision.trail
    answer = {"err": decision.full_message} if decision.node is None else {"node": decision.node}
    log.info(
        "Decided about pod", level=DECISIONS, pod=pod, **answer,
        evaluatedNodes=int((trail.verdict_of != UNSEEN).sum()), feasibleNodes=len(trail.feasible),
    )  # fmt: skip
    if log.v >= VERDICTS:
        _write_verdicts(log, decision)
    if log.v >= SCORES:
        _write_scores(log, decision)
    if log.v >= TRAIL:
        text = msgspec.json.encode(json_output.decision(decision), enc_hook=str).decode()
        log.info("Trail of the decision", level=TRAIL, pod=pod, trail=text)


def _write_verdicts(log: Log, decision: Decision) -> None:
    pod = decision.pod.key
    for whole in filter(None, (decision.gated, decision.refused)):
        log.info("Pod is rejected", level=VERDICTS, pod=pod, **_fields(whole))
    for node, verdict in decision.trail.rejections():
        if verdict is not None:
            log.info("Node is rejected", level=VERDICTS, pod=pod, node=node, **_fields(verdict))
        elif decision.refused is None and decision.gated is None:  # otherwise no filter was asked
            log.info("Node is feasible", level=VERDICTS, pod=pod, node=node)


def _fields(verdict: Verdict) -> dict[str, str]:
    return {"plugin": verdict.plugin, "code": verdict.code, "reason": ", ".join(verdict.reasons)}


def _write_scores(log: Log, decision: Decision) -> None:
    weights = {name: weight for name, (weight, _) in decision.trail.scores.items()}
    for node, scores, total in decision.trail.scored():
        told = ", ".join(f"{name} {score}*{weights[name]}" for name, score in scores.items())
        log.info("Node is scored", level=SCORES, pod=decision.pod.key, node=node, total=total, scores=told)
