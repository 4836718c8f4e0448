"""One decision for a placement: which clusters it gets, and why not the others.

    1 candidates   the clusters of the sets that are bound to the placement's namespace
    2 filter       filters, in order; what each keeps is recorded
    3 weigh        which prioritizers count, and their weights
    4 score        each prioritizer's scores times its weight, added up
    5 select       the highest totals; of equal totals the first names

Candidates are ordered by name, and every step keeps that order, so the first of equal totals has the first name.
"""

from __future__ import annotations

import math

import numpy as np

from stowplan.columns.arrays import Ints, Rows
from stowplan.columns.fleet.cluster_sets import ClusterSets
from stowplan.framework.placement.choice import (
    ERROR,
    MISCONFIGURED,
    WARNING,
    ClusterPluginStatus,
    ClusterPolicy,
    FilterStage,
    PlacementChoice,
    PlacementQuestion,
    Prioritized,
    Prioritizer,
    ScoresUsed,
)
from stowplan.objects.placements import BUILT_IN, Placement, ScoreCoordinate

CONFIGURATIONS = "spec.prioritizerPolicy.configurations"
RENEW = "renew them, or set whenMissing"
WeightedPrioritizers = list[tuple[Prioritizer, int]]


def choose(question: PlacementQuestion, sets: ClusterSets, policy: ClusterPolicy) -> PlacementChoice:
    """Decide a placement."""
    choice = PlacementChoice(question)
    choice.status = _decide(choice, sets, policy)
    return choice


def _decide(choice: PlacementChoice, sets: ClusterSets, policy: ClusterPolicy) -> ClusterPluginStatus:
    question, number = choice.question, choice.question.placement.spec.number_of_clusters
    if number is not None and number < 0:
        problem, remedy = f"numberOfClusters is {number}", "set 0 or more, or omit it to select all clusters"
        return ClusterPluginStatus(MISCONFIGURED, "", problem, "spec.numberOfClusters", remedy)
    problem = _candidates(choice, sets)
    if problem:
        return ClusterPluginStatus(ERROR, "", problem)
    status = _filter(choice, policy)
    if status.failed:
        return status
    prioritizers = weigh(question.placement, policy, ocm=question.ocm)
    if isinstance(prioritizers, ClusterPluginStatus):
        return prioritizers
    _exclude(choice, prioritizers)
    status = _score(choice, prioritizers)
    _select(choice, policy)
    for plugin in policy.filters:
        lapses = getattr(plugin, "lapses", None)
        if lapses is not None:
            choice.requeue_at = lapses(question, question.own)
    return status


def _candidates(choice: PlacementChoice, sets: ClusterSets) -> str:
    """Set the candidates. Return why that is not possible, or ""."""
    placement = choice.question.placement
    choice.bindings = len(sets.bound(placement.namespace))
    choice.sets = sets.eligible(placement)
    problem = sets.problem(choice.sets)
    if not problem:
        choice.candidates = choice.rows = sets.rows(choice.sets)
    return problem


def _filter(choice: PlacementChoice, policy: ClusterPolicy) -> ClusterPluginStatus:
    for plugin in policy.filters:
        kept = plugin.filter(choice.question, choice.rows)
        if isinstance(kept, ClusterPluginStatus):
            choice.rows = choice.rows[:0]
            return kept
        choice.stages.append(FilterStage(plugin, choice.rows, kept))
        choice.rows = choice.rows[kept]
    return ClusterPluginStatus()


def _exclude(choice: PlacementChoice, prioritizers: WeightedPrioritizers) -> None:
    """Drop the clusters that a prioritizer excludes, because they have no score."""
    for plugin, _ in prioritizers:
        excludes = getattr(plugin, "filter", None)
        kept = None if excludes is None or choice.question.ocm else excludes(choice.question, choice.rows)
        if kept is not None and not kept.all():
            choice.stages.append(FilterStage(plugin, choice.rows, kept))  # type: ignore[arg-type]
            choice.rows = choice.rows[kept]


def _score(choice: PlacementChoice, prioritizers: WeightedPrioritizers) -> ClusterPluginStatus:
    status = ClusterPluginStatus()
    totals: Ints = np.zeros(len(choice.rows), np.int64)
    for plugin, weight in prioritizers:
        scored = plugin.score(choice.question, choice.rows)
        choice.prioritized.append(Prioritized(plugin.name, weight, scored))
        totals += weight * scored.values
        if scored.warning:
            status = ClusterPluginStatus(WARNING, plugin.name, scored.warning, CONFIGURATIONS, RENEW)
    choice.totals = totals
    return status


def _select(choice: PlacementChoice, policy: ClusterPolicy) -> None:
    question, wanted = choice.question, choice.question.placement.spec.number_of_clusters
    number = len(choice.rows) if wanted is None else min(wanted, len(choice.rows))
    spread = question.placement.spec.spread_policy.spread_constraints
    if spread and policy.spread is not None and not question.ocm:
        weight = spread_weight(question.placement, policy)
        indexes = policy.spread.select(question, choice.rows, choice.totals, number, weight)
    else:
        indexes = best(choice.totals, number)
    choice.picked, choice.picked_totals = choice.rows[indexes], choice.totals[indexes]
    choice.unscheduled = 0 if wanted is None else wanted - len(indexes)


def best(totals: Ints, number: int) -> Rows:
    """Return the indexes of the highest totals; of equal totals the first."""
    size = len(totals)
    if number * 4 >= size:
        return np.argsort(-totals, kind="stable")[:number]
    key = totals * size - np.arange(size)  # no two are equal, so a partition is enough
    indexes = np.argpartition(key, size - number)[size - number :] if number else np.zeros(0, np.int64)
    return indexes[np.argsort(-key[indexes])]


# -- weights


def weigh(placement: Placement, policy: ClusterPolicy, *, ocm: bool) -> WeightedPrioritizers | ClusterPluginStatus:
    """Return the prioritizers that count, with their weights.

    `ocm`: of two built-in prioritizers of one name the last counts, and an add-on score may be listed twice. Otherwise
    each may be listed once.
    """
    weights = _weights(placement, policy) if ocm else _repeated(placement) or _weights(placement, policy)
    if isinstance(weights, ClusterPluginStatus):
        return weights
    found: WeightedPrioritizers = []
    for path, coordinate, weight in weights:
        if weight == 0 or (coordinate.built_in == "Spread" and policy.spread is not None and not ocm):
            continue
        plugin = _prioritizer(path, coordinate, weight, policy)
        if isinstance(plugin, ClusterPluginStatus):
            return plugin
        found.append((plugin, weight))
    return found


def _repeated(placement: Placement) -> ClusterPluginStatus | None:
    first: dict[object, int] = {}
    for index, config in enumerate(placement.spec.prioritizer_policy.configurations):
        coordinate = config.coordinate
        if coordinate is None:
            continue
        named = coordinate.built_in if coordinate.add_on is None else coordinate.add_on
        if first.setdefault((coordinate.type, named), index) != index:
            problem = f"the same as configurations[{first[coordinate.type, named]}]"
            remedy = "list it once, with one weight"
            return ClusterPluginStatus(MISCONFIGURED, "", problem, f"{CONFIGURATIONS}[{index}].scoreCoordinate", remedy)
    return None


def _weights(
    placement: Placement, policy: ClusterPolicy
) -> list[tuple[str, ScoreCoordinate, int]] | ClusterPluginStatus:
    given = placement.spec.prioritizer_policy
    if given.mode not in ("", "Additive", "Exact"):
        problem = f"incorrect prioritizer policy mode: {given.mode}"
        return ClusterPluginStatus(MISCONFIGURED, "", problem, "spec.prioritizerPolicy.mode", "use Additive or Exact")
    defaults = policy.always if given.mode == "Exact" else policy.defaults | policy.always
    named: dict[tuple[object, ...], tuple[str, ScoreCoordinate, int]] = {}
    for name, weight in defaults.items():
        named[BUILT_IN, name] = "", ScoreCoordinate(BUILT_IN, name), weight
    for index, config in enumerate(given.configurations):
        coordinate, path = config.coordinate, f"{CONFIGURATIONS}[{index}].scoreCoordinate"
        if coordinate is None:
            return ClusterPluginStatus(
                MISCONFIGURED, "", "scoreCoordinate field is required", path, "name a prioritizer"
            )
        unique = () if coordinate.add_on is None else (index,)  # add-on scores never replace each other
        named[coordinate.type, coordinate.built_in, *unique] = path, coordinate, config.weight
    return list(named.values())


def _prioritizer(
    path: str, coordinate: ScoreCoordinate, weight: int, policy: ClusterPolicy
) -> Prioritizer | ClusterPluginStatus:
    if coordinate.type == BUILT_IN:
        plugin = policy.prioritizers.get(coordinate.built_in)
        if plugin is not None:
            return plugin
        problem = f"incorrect builtin prioritizer: {coordinate.built_in}"
        return ClusterPluginStatus(MISCONFIGURED, "", problem, path, f"use one of {', '.join(policy.prioritizers)}")
    if coordinate.add_on is None:
        return ClusterPluginStatus(
            MISCONFIGURED, "", "addOn should not be empty", path, "set resourceName and scoreName"
        )
    made = policy.add_on(coordinate, weight)
    return (
        ClusterPluginStatus(made.code, made.plugin, made.message, path, made.remedy)
        if isinstance(made, ClusterPluginStatus)
        else made
    )


def spread_weight(placement: Placement, policy: ClusterPolicy) -> int:
    """Return the weight of spreading beside the prioritizers."""
    named = (
        each.weight
        for each in placement.spec.prioritizer_policy.configurations
        if each.coordinate is not None and each.coordinate.built_in == "Spread"
    )
    return next(named, policy.spread_weight)


def scores_used(placement: Placement, policy: ClusterPolicy) -> ScoresUsed:
    """Return the AddOnPlacementScores that a placement's prioritizers and filters read."""
    coordinates = set[tuple[str, str]]()
    for config in placement.spec.prioritizer_policy.configurations:
        coordinate = config.coordinate
        if coordinate is not None and coordinate.add_on is not None and config.weight:
            coordinates.add((coordinate.add_on.resource_name, coordinate.add_on.score_name))
    objects: frozenset[str] | None = frozenset()
    for plugin in policy.filters:
        reads = getattr(plugin, "reads", None)
        names = frozenset[str]() if reads is None else reads(placement)
        objects = None if objects is None or names is None else objects | names
    return ScoresUsed(frozenset(coordinates), objects)


def changes_at(choice: PlacementChoice, policy: ClusterPolicy) -> float:
    """Return when time alone may change the choice, because a toleration ends; infinity if it cannot."""
    question, moments = choice.question, list[float | None]()
    rows = np.concatenate([question.own, choice.picked])
    for plugin in policy.filters:
        if hasattr(plugin, "lapses"):
            moments.append(plugin.lapses(question, rows))
        if hasattr(plugin, "changes_at"):
            moments.append(plugin.changes_at(question))
    return min((moment for moment in moments if moment is not None), default=math.inf)
