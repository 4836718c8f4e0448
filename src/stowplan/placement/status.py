"""A placement's status: what it is to say, and whether it says so already."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from stowplan.framework.placement.decision import ERROR, PlacementChoice, PluginStatus
from stowplan.framework.placement.decision_groups import ChosenGroup
from stowplan.objects import placements as api
from stowplan.objects.clusters import ClusterCondition
from stowplan.objects.placements import DecisionGroupStatus, Placement, PlacementStatus
from stowplan.placement import messages
from stowplan.placement.slices import SliceLayout


def fulfilled(
    choice: PlacementChoice, status: PluginStatus, groups: Sequence[ChosenGroup], layout: SliceLayout
) -> PlacementStatus:
    """After a decision. A group's decisions are listed by their numbers."""
    placement = choice.asked.placement
    listed = tuple(
        DecisionGroupStatus(
            index,
            group.name,
            tuple(_names(placement, layout, index)),
            len(group.clusters),
        )
        for index, group in enumerate(groups)
    )
    said = messages.conditions(choice, status, len(choice.picked))
    return PlacementStatus(len(choice.picked), listed, _observed(placement, said))


def _names(placement: Placement, layout: SliceLayout, index: int) -> list[str]:
    numbers = sorted(slot.number for slot in layout.slots if slot.index == index)
    return [f"{placement.name}-decision-{number}" for number in numbers]


def unfulfilled(choice: PlacementChoice, status: PluginStatus, before: PlacementStatus) -> PlacementStatus:
    """What cannot be decided leaves all as it was, but says so."""
    placement = choice.asked.placement
    wrong = messages.misconfigured(status, plain=choice.asked.ocm)
    kept = next((each for each in before.conditions if each.type == api.SATISFIED), None)
    if status.code == ERROR:
        message = f"{status.message}; {messages.KEPT}"
        kept = ClusterCondition(api.SATISFIED, "False", "NotAllDecisionsScheduled", message)
    elif kept is None:
        kept = messages.satisfied(choice, status, before.number_of_selected_clusters)
    return PlacementStatus(
        before.number_of_selected_clusters, before.decision_groups, _observed(placement, [wrong, kept])
    )


def _observed(placement: Placement, conditions: Sequence[ClusterCondition]) -> tuple[ClusterCondition, ...]:
    generation = placement.metadata.generation
    return tuple(msgspec.structs.replace(each, observed_generation=generation) for each in conditions)


def comparable(status: PlacementStatus) -> tuple[Any, ...]:
    """What counts when two statuses are compared: conditions of ours, without the times of their transitions."""
    conditions = sorted(
        (each.type, each.status, each.reason, each.message, each.observed_generation)
        for each in status.conditions
        if each.type in (api.SATISFIED, api.MISCONFIGURED)
    )
    return status.number_of_selected_clusters, status.decision_groups, conditions


def body(wanted: PlacementStatus, before: PlacementStatus, scored_at: float | None) -> dict[str, Any]:
    """For a merge patch: lists are written whole, so conditions of others go along; those whose status stays keep the
    time since when it is so, the others get it when they are written.
    """
    since = {(each.type, each.status): each.last_transition_time for each in before.conditions}
    ours = {each.type for each in wanted.conditions}
    conditions = [
        *(msgspec.structs.replace(each, last_transition_time=since.get((each.type, each.status)))
          for each in wanted.conditions),
        *(each for each in before.conditions if each.type not in ours),
    ]  # fmt: skip
    status: dict[str, Any] = {
        "numberOfSelectedClusters": wanted.number_of_selected_clusters,
        "decisionGroups": [_group(each) for each in wanted.decision_groups],
        "conditions": [_condition(each) for each in conditions],
    }
    if scored_at is not None:
        moment = datetime.fromtimestamp(scored_at, UTC)
        status["lastScoreUpdateTime"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"status": status}


def _group(group: DecisionGroupStatus) -> dict[str, Any]:
    return {
        "decisionGroupIndex": group.decision_group_index,
        "decisionGroupName": group.decision_group_name,
        "decisions": list(group.decisions),
        "clusterCount": group.cluster_count,
    }


def _condition(condition: ClusterCondition) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }
    if condition.observed_generation:
        found["observedGeneration"] = condition.observed_generation
    if condition.last_transition_time is not None:
        found["lastTransitionTime"] = condition.last_transition_time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return found
