"""A choice explained: what Open Cluster Management's debug page shows, which clusters were dropped and why, which were
chosen, what the others lack, and which clusters stay because of hysteresis.
"""

from __future__ import annotations

from typing import Any

import msgspec

from stowplan.framework.placement.choice import PlacementChoice, Prioritized


def explanation(choice: PlacementChoice) -> dict[str, Any]:
    """Return the explanation as plain values, for JSON."""
    return {
        "placement": _placement(choice),
        "filteredPipelineResults": _stages(choice),
        "prioritizeResults": [_prioritized(choice, each) for each in choice.prioritized],
        "aggregatedScores": _totals(choice),
        **({"error": choice.status.text} if choice.status.failed else {}),
        "status": {"code": choice.status.code, "plugin": choice.status.plugin, "message": choice.status.text},
        "clusterSets": list(choice.sets),
        "dropped": [{"clusterName": name, "plugin": by, "reason": why} for name, by, why in choice.dropped()],
        "selected": choice.names,
        "unscheduled": choice.unscheduled,
        "notSelected": [
            {"clusterName": name, "needs": needs, "message": f"needs +{needs} to enter"}
            for name, needs in choice.missing().items()
        ],
        **({"hysteresis": hysteresis(choice)} if choice.margin else {}),
    }


def hysteresis(choice: PlacementChoice) -> dict[str, Any]:
    """Return what another cluster must have on a chosen one, and the clusters that are kept because of that."""
    kept = choice.kept_names
    return {"margin": choice.margin, "kept": [name for name in choice.names if name in kept]}


def _placement(choice: PlacementChoice) -> dict[str, Any]:
    placement = choice.question.placement
    metadata = {
        "name": placement.name,
        "namespace": placement.namespace,
        "labels": placement.labels,
        "annotations": placement.annotations,
    }
    return {
        "metadata": {name: value for name, value in metadata.items() if value},
        "spec": msgspec.json.decode(msgspec.json.encode(placement.spec)),
    }


def _stages(choice: PlacementChoice) -> list[dict[str, Any]]:
    names = [stage.name for stage in choice.stages]
    return [
        {"name": ",".join(names[: index + 1]), "filteredClusters": choice.question.fleet.named(stage.rows)}
        for index, stage in enumerate(choice.stages)
    ]


def _prioritized(choice: PlacementChoice, each: Prioritized) -> dict[str, Any]:
    names, present = choice.question.fleet.named(choice.rows), each.scored.present
    scores = {
        name: value
        for index, (name, value) in enumerate(zip(names, each.scored.values.tolist(), strict=True))
        if present is None or present[index]
    }
    return {"name": each.name, "weight": each.weight, "scores": scores}


def _totals(choice: PlacementChoice) -> list[dict[str, Any]]:
    ordered = sorted(choice.ranking(), key=lambda pair: (-pair[1], pair[0].encode()))
    return [{"clusterName": name, "score": total} for name, total in ordered]
