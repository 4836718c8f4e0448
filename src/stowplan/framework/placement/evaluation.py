"""One decision for a placement: which clusters it gets, and why not the others.

    1 candidates   the clusters of the sets that are bound to the placement's namespace
    2 filter       filters, in order; what each keeps is recorded
    3 weigh        which prioritizers count, and their weights
    4 score        each prioritizer's scores times its weight, added up
    5 select       the highest totals; of equal totals the first names; with hysteresis, clusters that are chosen stay

Candidates are ordered by name, and every step keeps that order, so the first of equal totals has the first name.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stowplan.columns.arrays import Ints, Rows
from stowplan.columns.fleet.cluster_sets import ClusterSets
from stowplan.columns.fleet.views import Clusters, WholeFleet
from stowplan.framework.placement import hysteresis
from stowplan.framework.placement.choice import (
    ERROR,
    MISCONFIGURED,
    SUCCEEDED,
    WARNING,
    ClusterPluginStatus,
    FilterStage,
    PlacementChoice,
    PlacementQuestion,
    Prioritized,
)
from stowplan.framework.placement.interfaces import Misconfigured, UnfinishedError
from stowplan.framework.placement.plugin_calls import (
    NO_SCORES,
    NOTHING_REJECTED,
    Rejected,
    call_changes_at,
    call_cluster_filter,
    call_cluster_score,
    call_exclude,
)
from stowplan.framework.placement.policy import ClusterPolicy
from stowplan.framework.placement.weights import CONFIGURATIONS, WeightedPrioritizers, spread_weight, weigh
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.errors import PluginError

RENEW = "renew them, or set whenMissing"


def choose(question: PlacementQuestion, sets: ClusterSets, policy: ClusterPolicy) -> PlacementChoice:
    """Decide a placement."""
    choice, fleet = PlacementChoice(question), question.view(track=policy.tracked)
    try:
        choice.status = _decide(choice, fleet, sets, policy)
    except PluginError as error:
        _drop(choice)
        choice.status, choice.error = ClusterPluginStatus(ERROR, error.plugin, str(error)), error
    except UnfinishedError as error:
        _drop(choice)
        choice.status, choice.unfinished = ClusterPluginStatus(ERROR, "", str(error)), True
    if fleet.reads:
        choice.reads = frozenset(fleet.reads)
    return choice


def finished(ask: Callable[[], PlacementChoice]) -> PlacementChoice:
    """Ask for a choice until it is finished: for a caller that has nothing else to decide."""
    choice = ask()
    while choice.unfinished:  # each time, more clusters are evaluated
        choice = ask()
    return choice


def _drop(choice: PlacementChoice) -> None:
    """Drop what was chosen before a plugin failed."""
    choice.rows = choice.totals = choice.picked = choice.picked_totals = choice.settled_totals = choice.rows[:0]
    choice.prioritized.clear()


def _decide(
    choice: PlacementChoice, fleet: WholeFleet, sets: ClusterSets, policy: ClusterPolicy
) -> ClusterPluginStatus:
    question, number = choice.question, choice.question.placement.spec.number_of_clusters
    if number is not None and number < 0:
        problem, remedy = f"numberOfClusters is {number}", "set 0 or more, or omit it to select all clusters"
        return ClusterPluginStatus(MISCONFIGURED, "", problem, "spec.numberOfClusters", remedy)
    problem = _candidates(choice, sets)
    if problem:
        return ClusterPluginStatus(ERROR, "", problem)
    candidates = Clusters(fleet, choice.rows)
    clusters = _filter(choice, candidates, policy)
    if isinstance(clusters, ClusterPluginStatus):
        return clusters
    prioritizers = weigh(question.placement, policy, ocm=question.ocm)
    if isinstance(prioritizers, ClusterPluginStatus):
        return prioritizers
    points = 0 if question.ocm else hysteresis.noise(question.placement, question.hysteresis)
    if isinstance(points, ClusterPluginStatus):
        return points
    choice.margin = hysteresis.margin(points, prioritizers, policy)
    clusters = _exclude(choice, clusters, prioritizers, policy)
    status = _score(choice, clusters, prioritizers, policy)
    if status.failed:
        return status
    indexes = _select(choice, clusters, policy)
    choice.settled_totals = _settled(choice, indexes, prioritizers, policy)
    _look_ahead(choice, candidates, policy)
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


def _filter(choice: PlacementChoice, clusters: Clusters, policy: ClusterPolicy) -> Clusters | ClusterPluginStatus:
    """Return the clusters that all filters keep. No filter is asked about no clusters."""
    placement = choice.question.placement
    for enabled in policy.filters:
        found = call_cluster_filter(enabled, placement, clusters) if len(clusters) else NOTHING_REJECTED
        if isinstance(found, Misconfigured):
            choice.rows = choice.rows[:0]
            return _misconfigured(enabled, found)
        clusters = _keep(choice, enabled, clusters, found)
    return clusters


def _keep(choice: PlacementChoice, enabled: EnabledPlugin[object], clusters: Clusters, found: Rejected) -> Clusters:
    """Record what a plugin rejected. Return the others."""
    stage = FilterStage(enabled.name, enabled.plugin, clusters.rows, found.kept, found.rejects)
    choice.stages.append(stage)
    if found.kept is not None:
        clusters = clusters.where(found.kept)
        choice.rows = clusters.rows
    return clusters


def _misconfigured(enabled: EnabledPlugin[object], found: Misconfigured) -> ClusterPluginStatus:
    return ClusterPluginStatus(MISCONFIGURED, enabled.name, found.message, found.path, found.remedy)


def _exclude(
    choice: PlacementChoice, clusters: Clusters, prioritizers: WeightedPrioritizers, policy: ClusterPolicy
) -> Clusters:
    """Drop the clusters that a prioritizer excludes, because they have no score."""
    for enabled, _ in prioritizers:
        if policy.hook(enabled, "exclude") is not None and not choice.question.ocm:
            found = call_exclude(enabled, choice.question.placement, clusters)  # type: ignore[arg-type]
            if found.kept is not None:
                clusters = _keep(choice, enabled, clusters, found)
    return clusters


def _score(
    choice: PlacementChoice, clusters: Clusters, prioritizers: WeightedPrioritizers, policy: ClusterPolicy
) -> ClusterPluginStatus:
    """Score the clusters. No plugin is asked about no clusters."""
    status, placement = SUCCEEDED, choice.question.placement
    totals: Ints = np.zeros(len(clusters), np.int64)
    clusters.fleet.asked_held = False
    for enabled, weight in prioritizers:
        bounded = enabled.name in policy.third_party
        scored = call_cluster_score(enabled, placement, clusters, bounded=bounded) if len(clusters) else NO_SCORES
        if isinstance(scored, Misconfigured):
            _drop(choice)
            return _misconfigured(enabled, scored)
        choice.prioritized.append(Prioritized(enabled.name, weight, scored))
        totals += weight * scored.values
        warning = policy.hook(enabled, "warning")
        if warning is not None and (text := warning(clusters)):
            status = ClusterPluginStatus(WARNING, enabled.name, text, CONFIGURATIONS, RENEW)
    choice.totals, choice.by_held = totals, clusters.fleet.asked_held
    return status


def _select(choice: PlacementChoice, clusters: Clusters, policy: ClusterPolicy) -> Rows:
    """Choose clusters. Return their indexes."""
    wanted = choice.question.placement.spec.number_of_clusters
    number = len(choice.rows) if wanted is None else min(wanted, len(choice.rows))
    favours = choice.margin > 0 and clusters.fleet.holds_any and number < len(choice.rows)
    choice.compared = choice.totals
    if favours:
        choice.compared = hysteresis.favoured(choice.totals, clusters.current, choice.margin)
    indexes = _selected(choice, clusters, policy, choice.compared, number)
    choice.picked, choice.picked_totals = choice.rows[indexes], choice.totals[indexes]
    if favours:
        otherwise = choice.rows[_selected(choice, clusters, policy, choice.totals, number)]
        choice.kept = np.setdiff1d(choice.picked, otherwise)
    choice.unscheduled = 0 if wanted is None else wanted - len(indexes)
    return indexes


def _selected(choice: PlacementChoice, clusters: Clusters, policy: ClusterPolicy, totals: Ints, number: int) -> Rows:
    """Return the indexes that have the highest of these totals, or that spread clusters best."""
    placement = choice.question.placement
    if placement.spec.spread_policy.spread_constraints and policy.spread is not None:
        return policy.spread.select(placement, clusters, totals, number, spread_weight(placement, policy))
    return best(totals, number)


def _settled(choice: PlacementChoice, indexes: Rows, prioritizers: WeightedPrioritizers, policy: ClusterPolicy) -> Ints:
    """Return the totals of the chosen clusters once the placement has them: Steady asks for that, say."""
    question = choice.question
    if question.ocm or not choice.by_held or np.array_equal(np.unique(question.own), np.sort(choice.picked)):
        return choice.picked_totals
    after = Clusters(question.view(held=choice.picked), choice.rows)
    totals: Ints = np.zeros(len(after), np.int64)
    for enabled, weight in prioritizers:
        scored = call_cluster_score(enabled, question.placement, after, bounded=enabled.name in policy.third_party)
        if isinstance(scored, Misconfigured):
            return choice.picked_totals
        totals += weight * scored.values
    return totals[indexes]


def _look_ahead(choice: PlacementChoice, candidates: Clusters, policy: ClusterPolicy) -> None:
    """Note when time alone may change the choice, because a toleration ends, say."""
    question, placement = choice.question, choice.question.placement
    for enabled in policy.lapsing:
        choice.requeue_at = enabled.plugin.lapses(placement, Clusters(candidates.fleet, question.own))
    for enabled in policy.timed:
        moment = call_changes_at(enabled, placement, candidates)
        if moment > question.now:  # what has passed changes nothing any more
            choice.changes_at = min(choice.changes_at, moment)


def best(totals: Ints, number: int) -> Rows:
    """Return the indexes of the highest totals; of equal totals the first."""
    size = len(totals)
    if number * 4 >= size:
        return np.argsort(-totals, kind="stable")[:number]
    key = totals * size - np.arange(size)  # no two are equal, so a partition is enough
    indexes = np.argpartition(key, size - number)[size - number :] if number else np.zeros(0, np.int64)
    return indexes[np.argsort(-key[indexes])]
