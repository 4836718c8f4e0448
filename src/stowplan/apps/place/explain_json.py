"""The JSON of an explained placement: the account of its choice, and the outcome.

The outcome is `selected` with totals, `passedOver` with the points that each cluster lacks (the nearest first), the
decision `groups`, and the `conditions` that would be written.
"""

from __future__ import annotations

from typing import Any

from stowplan.framework.placement import decision_groups
from stowplan.framework.placement.choice import ERROR, ClusterPluginStatus, PlacementChoice
from stowplan.placement import status as placement_status
from stowplan.placement.explain import explanation

Answer = dict[str, Any]


def explained(choice: PlacementChoice) -> Answer:
    groups, status = decision_groups.grouped(choice)
    answer = explanation(choice)
    del answer["notSelected"]
    return answer | {
        "error": _error(status),
        "candidates": len(choice.candidates),
        "selected": [{"clusterName": name, "score": total} for name, total in choice.best().items()],
        "groups": [{"name": each.name, "clusters": list(each.clusters)} for each in groups],
        "passedOver": [{"clusterName": name, "needs": needs} for name, needs in missing(choice).items()],
        "status": {"code": status.code, "plugin": status.plugin, "message": status.text},
        "conditions": _conditions(choice, status),
    }


def missing(choice: PlacementChoice) -> dict[str, int]:
    """Return the points that each cluster lacks. With spread constraints points alone do not decide, so it is empty."""
    if choice.question.placement.spec.spread_policy.spread_constraints and not choice.question.ocm:
        return {}
    return dict(sorted(choice.missing().items(), key=lambda each: (each[1], each[0].encode())))


def _error(status: ClusterPluginStatus) -> str:
    if not status.failed:
        return ""
    return status.text if status.code == ERROR else f"{status.plugin}: {status.text}".removeprefix(": ")


def _conditions(choice: PlacementChoice, status: ClusterPluginStatus) -> list[Answer]:
    found = placement_status.conditions(choice, status, len(choice.picked))
    return [
        {"type": each.type, "status": each.status, "reason": each.reason, "message": each.message} for each in found
    ]
