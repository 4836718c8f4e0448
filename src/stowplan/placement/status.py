"""A placement's status: its conditions in Open Cluster Management's words, its decision groups, and the patch for them.

A status that was written is assumed until the API server shows it, as decisions are (`decision_cache`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from stowplan.framework.placement.choice import ERROR, MISCONFIGURED, WARNING, ClusterPluginStatus, PlacementChoice
from stowplan.framework.placement.decision_groups import ChosenGroup
from stowplan.objects import placements as api
from stowplan.objects.actions import Patch
from stowplan.objects.clusters import ClusterCondition
from stowplan.objects.placements import DecisionGroupStatus, Placement, PlacementStatus
from stowplan.placement.decision_cache import ASSUMED_FOR
from stowplan.placement.decision_writes import Phase, PlannedWrite
from stowplan.placement.slices import SliceLayout

LONGEST_CONDITION = 4096
KEPT = "the last good decisions are kept"
Comparable: TypeAlias = tuple[int, tuple[DecisionGroupStatus, ...], list[tuple[str, str, str, str, int]]]


class StatusCache:
    """The statuses that were written and are not shown yet, by the placement's key, and until when each is assumed."""

    def __init__(self) -> None:
        self._assumed: dict[str, tuple[PlacementStatus, float]] = {}

    def current(self, placement: Placement, now: float) -> PlacementStatus:
        """Return the placement's status as it is, or is assumed to be."""
        status, until = self._assumed.get(placement.key, (placement.status, 0.0))
        return status if now < until else placement.status

    def put(self, old: Placement, new: Placement, now: float) -> bool:
        """Take in a shown placement. True if its status differs from what was known or assumed."""
        expected = comparable(self.current(old, now))
        shown, assumed = comparable(new.status), self._assumed.get(new.key)
        if assumed is not None and shown == comparable(assumed[0]):
            del self._assumed[new.key]
        return shown != expected

    def write(self, placement: Placement, wanted: PlacementStatus, scored_at: float | None, now: float) -> list[Phase]:
        """Return the phase that writes this status, and assume that it succeeds; none if there is no need to write."""
        before = self.current(placement, now)
        if comparable(wanted) == comparable(before) and scored_at is None:
            return []
        self._assumed[placement.key] = wanted, now + ASSUMED_FOR
        patch = Patch(kind="Placement", key=placement.key, body=_body(wanted, before, scored_at))
        return [Phase([PlannedWrite(patch)])]

    def drop_assumed(self, key: str) -> None:
        """A write failed, or the placement is gone: the status is as the API server shows it."""
        self._assumed.pop(key, None)


# -- the status that a placement shall have


def decided(
    choice: PlacementChoice, status: ClusterPluginStatus, groups: Sequence[ChosenGroup], layout: SliceLayout
) -> PlacementStatus:
    """Return the status after a decision. The objects of a group are listed in the order of their numbers."""
    placement = choice.question.placement
    listed = []
    for index, group in enumerate(groups):
        numbers = sorted(each.number for each in layout.slices if each.index == index)
        names = tuple(f"{placement.name}-decision-{number}" for number in numbers)
        listed.append(DecisionGroupStatus(index, group.name, names, len(group.clusters)))
    found = conditions(choice, status, len(choice.picked))
    return PlacementStatus(len(choice.picked), tuple(listed), _observed(placement, found))


def undecided(choice: PlacementChoice, status: ClusterPluginStatus, before: PlacementStatus) -> PlacementStatus:
    """Return the status of a placement that cannot be decided: as before, with conditions that say why."""
    found = next((each for each in before.conditions if each.type == api.SATISFIED), None)
    if status.code == ERROR:
        message = f"{status.message}; {KEPT}"
        found = ClusterCondition(api.SATISFIED, "False", "NotAllDecisionsScheduled", message)
    elif found is None:
        found = _satisfied(choice, status, before.number_of_selected_clusters)
    both = [_misconfigured(status, ocm=choice.question.ocm), found]
    observed = _observed(choice.question.placement, both)
    return PlacementStatus(before.number_of_selected_clusters, before.decision_groups, observed)


def _observed(placement: Placement, conditions: Sequence[ClusterCondition]) -> tuple[ClusterCondition, ...]:
    generation = placement.metadata.generation
    return tuple(msgspec.structs.replace(each, observed_generation=generation) for each in conditions)


# -- conditions


def conditions(choice: PlacementChoice, status: ClusterPluginStatus, selected: int) -> list[ClusterCondition]:
    """Return both conditions, sorted by type. `status` is that of the choice, or of its decision groups."""
    return [_misconfigured(status, ocm=choice.question.ocm), _satisfied(choice, status, selected)]


def _misconfigured(status: ClusterPluginStatus, *, ocm: bool) -> ClusterCondition:
    if status.code != MISCONFIGURED:
        return ClusterCondition(api.MISCONFIGURED, "False", "Succeedconfigured", "Placement configurations check pass")
    message = status.message if ocm else f"{status.text}; {KEPT}"
    return ClusterCondition(api.MISCONFIGURED, "True", "Misconfigured", f"{status.plugin}:{message}")


def _satisfied(choice: PlacementChoice, status: ClusterPluginStatus, selected: int) -> ClusterCondition:
    reason, message = _satisfied_reason(choice, status, selected)
    if status.code == WARNING and not choice.question.ocm:
        message = f"{message}; {status.text}"[:LONGEST_CONDITION]
    return ClusterCondition(api.SATISFIED, str(reason == "AllDecisionsScheduled"), reason, message)


def _satisfied_reason(choice: PlacementChoice, status: ClusterPluginStatus, selected: int) -> tuple[str, str]:
    """Return the first reason that applies, and its message."""
    if not choice.bindings:
        return "NoManagedClusterSetBindings", "No valid ManagedClusterSetBindings found in placement namespace"
    if not choice.sets:
        listed = ",".join(choice.question.placement.spec.cluster_sets)
        return "NoIntersection", f"None of ManagedClusterSets [{listed}] is bound to placement namespace"
    if status.code == ERROR:
        return "NotAllDecisionsScheduled", status.message
    if not len(choice.candidates):
        listed = ",".join(choice.sets)
        return "AllManagedClusterSetsEmpty", f"All ManagedClusterSets [{listed}] have no member ManagedCluster"
    if not selected:
        return "NoManagedClusterMatched", "No ManagedCluster matches any of the cluster predicate"
    if not choice.unscheduled:
        return "AllDecisionsScheduled", "All cluster decisions scheduled"
    return "NotAllDecisionsScheduled", f"{choice.unscheduled} cluster decisions unscheduled"


# -- comparing and writing


def comparable(status: PlacementStatus) -> Comparable:
    """Return what counts when two statuses are compared: no foreign conditions, no transition times."""
    conditions = sorted(
        (each.type, each.status, each.reason, each.message, each.observed_generation)
        for each in status.conditions
        if each.type in (api.SATISFIED, api.MISCONFIGURED)
    )
    return status.number_of_selected_clusters, status.decision_groups, conditions


def _body(wanted: PlacementStatus, before: PlacementStatus, scored_at: float | None) -> dict[str, Any]:
    """Return the body of a merge patch. It has foreign conditions, too, since a merge patch replaces the whole list.

    A condition keeps its transition time if its status stays; otherwise the writer sets it.
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
