"""Decision groups: the chosen clusters, cut into groups as the placement's strategy says, and groups into slices.

Named groups claim the clusters that their selectors match, in the order given; the rest goes into groups without a
name. Each is ordered by name (or by score) and cut to the size asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.columns.fleet.clusters import CLAIMS, LABELS
from stowplan.framework.placement.decision import FINE, MISCONFIGURED, PlacementChoice, PluginStatus
from stowplan.objects import selectors
from stowplan.objects.placements import MOST_IN_A_SLICE, DecisionGroup, Placement

STRATEGY = "spec.decisionStrategy.groupStrategy"


@dataclass(frozen=True, slots=True)
class ChosenGroup:
    """Clusters that go together; `name` is "" for those that no named group wanted."""

    name: str
    clusters: tuple[str, ...]

    def slices(self) -> list[tuple[str, ...]]:
        """Up to a hundred at a time; one that is empty, if there are none."""
        size = MOST_IN_A_SLICE
        return [self.clusters[at : at + size] for at in range(0, max(len(self.clusters), 1), size)]


def grouped(choice: PlacementChoice) -> tuple[list[ChosenGroup], PluginStatus]:
    """The groups; where one cannot be made, those before it, and why."""
    placement, names = choice.asked.placement, choice.names
    size = _size(placement, len(names))
    if isinstance(size, PluginStatus):
        return [], size
    order = _order(choice)
    left, groups = dict.fromkeys(names), list[ChosenGroup]()
    for index, wanted in enumerate(placement.spec.decision_strategy.group_strategy.decision_groups):
        matching = _matching(choice, index, wanted)
        if isinstance(matching, PluginStatus):
            return groups, matching
        claimed = [name for name in left if name in matching]
        for name in claimed:
            del left[name]
        groups += _cut(wanted.group_name, sorted(claimed, key=order), size)
    groups += _cut("", sorted(left, key=order), size)
    return groups or [ChosenGroup("", ())], FINE


def _size(placement: Placement, total: int) -> int | PluginStatus:
    """How many clusters a group has; all, where that says nothing."""
    given = placement.spec.decision_strategy.group_strategy.clusters_per_decision_group
    if isinstance(given, str):
        share = _share(given)
        if share is None:
            problem, path = f"{given} invalid type: string is not a percentage", f"{STRATEGY}.clustersPerDecisionGroup"
            return PluginStatus(MISCONFIGURED, "", problem, path, "a number or a percentage such as 25% is right")
        given = math.ceil(share / 100 * total)
    return given if 0 < given <= total else total


def _share(text: str) -> float | None:
    try:
        share = float(text.removesuffix("%")) if text.endswith("%") and "_" not in text else math.nan
    except ValueError:
        return None
    return share if math.isfinite(share) else None


def _order(choice: PlacementChoice):  # type: ignore[no-untyped-def]
    """By name; or, if the placement wants that, the highest total first."""
    if not choice.asked.placement.by_score or choice.asked.ocm:
        return str.encode
    totals = choice.best()
    return lambda name: (-totals[name], name.encode())


def _matching(choice: PlacementChoice, index: int, wanted: DecisionGroup) -> frozenset[str] | PluginStatus:
    given = wanted.group_cluster_selector
    for part, selector in (("labelSelector", given.label_selector), ("claimSelector", given.claim_selector.as_labels)):
        problem = selectors.problem(selector)
        if problem:
            path = f"{STRATEGY}.decisionGroups[{index}].groupClusterSelector.{part}"
            remedy = "In, NotIn, Exists and DoesNotExist, with valid keys and values, are right"
            return PluginStatus(MISCONFIGURED, "", problem, path, remedy)
    fleet, rows = choice.asked.fleet, choice.picked
    labels = fleet.matching(LABELS, selectors.compile_selector(given.label_selector))[rows]
    claims = fleet.matching(CLAIMS, selectors.compile_selector(given.claim_selector.as_labels))[rows]
    return frozenset(fleet.named(rows[labels & claims]))


def _cut(name: str, clusters: Sequence[str], size: int) -> list[ChosenGroup]:
    return [ChosenGroup(name, tuple(clusters[at : at + size])) for at in range(0, len(clusters), size)] if size else []
