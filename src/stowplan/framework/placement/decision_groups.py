"""Decision groups: the chosen clusters, split into groups by the placement's strategy, and groups into slices.

Named groups take the clusters that their selectors match, in the order given. The rest goes into groups without a
name. Each group is ordered by name (or by score) and split to the given size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stowplan.columns.fleet.clusters import CLAIMS, LABELS
from stowplan.framework.placement import hysteresis
from stowplan.framework.placement.choice import MISCONFIGURED, ClusterPluginStatus, PlacementChoice
from stowplan.objects import selector_errors, selectors
from stowplan.objects.placements import MOST_IN_A_SLICE, DecisionGroup, Placement

STRATEGY = "spec.decisionStrategy.groupStrategy"


@dataclass(frozen=True, slots=True)
class ChosenGroup:
    """A group of clusters. `name` is "" if no named group selects them."""

    name: str
    clusters: tuple[str, ...]

    def slices(self) -> list[tuple[str, ...]]:
        """Return the clusters in slices of up to a hundred; one empty slice if there are none."""
        size = MOST_IN_A_SLICE
        return [self.clusters[at : at + size] for at in range(0, max(len(self.clusters), 1), size)]


def grouped(choice: PlacementChoice) -> tuple[list[ChosenGroup], ClusterPluginStatus]:
    """Return the groups and the status: that of the choice, or why the groups cannot be made."""
    placement, names = choice.question.placement, choice.names
    size = _size(placement, len(names))
    if isinstance(size, ClusterPluginStatus):
        return [], size
    order = _order(choice)
    left, groups = dict.fromkeys(names), list[ChosenGroup]()
    for index, wanted in enumerate(placement.spec.decision_strategy.group_strategy.decision_groups):
        matching = _matching(choice, index, wanted)
        if isinstance(matching, ClusterPluginStatus):
            return groups, matching
        taken = [name for name in left if name in matching]
        for name in taken:
            del left[name]
        groups += _split(wanted.group_name, sorted(taken, key=order), size)
    groups += _split("", sorted(left, key=order), size)
    return groups or [ChosenGroup("", ())], choice.status


def _size(placement: Placement, total: int) -> int | ClusterPluginStatus:
    """Return how many clusters a group has; all if the placement does not say."""
    given = placement.spec.decision_strategy.group_strategy.clusters_per_decision_group
    if isinstance(given, str):
        percent = _percent(given)
        if percent is None:
            problem, path = f"{given} invalid type: string is not a percentage", f"{STRATEGY}.clustersPerDecisionGroup"
            return ClusterPluginStatus(MISCONFIGURED, "", problem, path, "use a number or a percentage such as 25%")
        given = math.ceil(percent / 100 * total)
    return given if 0 < given <= total else total


def _percent(text: str) -> float | None:
    try:
        found = float(text.removesuffix("%")) if text.endswith("%") and "_" not in text else math.nan
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _order(choice: PlacementChoice) -> Callable[[str], tuple[int, bytes]]:
    """Return the key to sort clusters by: the name, or the highest total first if the placement says so.

    With hysteresis the order stays as it is until totals differ enough.
    """
    by_score = choice.question.placement.by_score and not choice.question.ocm
    totals = choice.settled() if by_score else {}
    if choice.margin and by_score:
        so_far = choice.question.fleet.named(choice.question.own)
        names = dict.fromkeys((*(name for name in so_far if name in totals), *totals))
        places = {name: place for place, name in enumerate(hysteresis.ordered(list(names), totals, choice.margin))}
        return lambda name: (places[name], b"")
    return lambda name: (-totals.get(name, 0), name.encode())


def _matching(choice: PlacementChoice, index: int, wanted: DecisionGroup) -> frozenset[str] | ClusterPluginStatus:
    given = wanted.group_cluster_selector
    for part, selector in (("labelSelector", given.label_selector), ("claimSelector", given.claim_selector.as_labels)):
        problem = selector_errors.problem(selector)
        if problem:
            path = f"{STRATEGY}.decisionGroups[{index}].groupClusterSelector.{part}"
            remedy = "use In, NotIn, Exists or DoesNotExist, with valid keys and values"
            return ClusterPluginStatus(MISCONFIGURED, "", problem, path, remedy)
    fleet, rows = choice.question.fleet, choice.picked
    labels = fleet.matching(LABELS, selectors.compile_selector(given.label_selector))[rows]
    claims = fleet.matching(CLAIMS, selectors.compile_selector(given.claim_selector.as_labels))[rows]
    return frozenset(fleet.named(rows[labels & claims]))


def _split(name: str, clusters: Sequence[str], size: int) -> list[ChosenGroup]:
    return [ChosenGroup(name, tuple(clusters[at : at + size])) for at in range(0, len(clusters), size)] if size else []
