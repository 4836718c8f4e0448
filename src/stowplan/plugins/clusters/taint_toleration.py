"""TaintToleration: a cluster is not chosen if it has a taint that the placement does not tolerate.

NoSelect excludes the cluster for all placements, NoSelectIfNew for those that do not have it already. A toleration may
end some seconds after the taint was added. PreferNoSelect excludes a cluster for none, but the cluster scores -100, so
that it is chosen last (an addition of ours: Open Cluster Management ignores PreferNoSelect).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints, Rows
from stowplan.framework.placement.choice import MISCONFIGURED, ClusterPluginStatus, ClusterScores, PlacementQuestion
from stowplan.objects.clusters import NO_SELECT_IF_NEW, PREFER_NO_SELECT, ClusterTaint
from stowplan.objects.placements import ClusterToleration

NEVER = float("inf")
Tolerations = tuple[ClusterToleration, ...]


@dataclass(frozen=True, slots=True)
class TaintResults:
    """Arrays over the distinct sets of taints. The results are valid from `since` until `until`."""

    new: Bools  # tolerated, for a cluster that the placement does not have
    held: Bools  # tolerated, for a cluster that the placement has
    lapses: Floats  # when the first of the tolerations for a held cluster ends
    avoided: Bools  # has a PreferNoSelect taint that is not tolerated
    since: float
    until: float


class ClusterTaintToleration:
    name = "TaintToleration"

    def filter(self, question: PlacementQuestion, rows: Rows) -> Bools | ClusterPluginStatus:
        tolerations = question.placement.spec.tolerations
        if not len(rows):
            return np.ones(0, np.bool_)
        problem = _problem(tolerations)
        if problem is not None:
            return problem
        codes, results = question.fleet.taint_code[rows], _results(question)
        kept = results.new[codes]
        if len(question.own):
            held = np.zeros(question.fleet.capacity, np.bool_)
            held[question.own] = True
            kept = np.where(held[rows], results.held[codes], kept)
        return kept

    def why(self, question: PlacementQuestion, row: int) -> str:
        taints = question.fleet.taints.values[int(question.fleet.taint_code[row])] or ()
        held = row in question.own.tolist()
        for taint in taints:
            tolerated, _ = tolerance(taint, question.placement.spec.tolerations, held, question.now)
            if not tolerated:
                value = f"={taint.value}" if taint.value else ""
                return f"it has the taint {taint.key}{value}:{taint.effect}, which is not tolerated"
        return ""

    def lapses(self, question: PlacementQuestion, rows: Rows) -> float | None:
        """Return when the first toleration ends that keeps a cluster of these rows for the placement."""
        clusters = question.fleet.clusters
        existing = [row for row in rows.tolist() if clusters[row] is not None]
        if not existing or not any(each.toleration_seconds is not None for each in question.placement.spec.tolerations):
            return None
        results, codes = _results(question), question.fleet.taint_code[existing]
        first = float(np.where(results.held, results.lapses, NEVER)[codes].min())
        return None if first == NEVER else first

    def changes_at(self, question: PlacementQuestion) -> float | None:
        """Return when the next toleration of any cluster ends. The scores of the others may depend on that cluster."""
        if not any(each.toleration_seconds is not None for each in question.placement.spec.tolerations):
            return None
        until = _results(question).until
        return None if until == NEVER else until

    def score(self, question: PlacementQuestion, rows: Rows) -> ClusterScores:
        avoided: Ints = np.where(_results(question).avoided[question.fleet.taint_code[rows]], -100, 0)
        return ClusterScores(avoided)


def _problem(tolerations: Tolerations) -> ClusterPluginStatus | None:
    for index, each in enumerate(tolerations):
        path = f"spec.tolerations[{index}]"
        if not each.key and each.operator != "Exists":
            problem, remedy = "If the key is empty, operator must be Exists.", "set a key, or the operator Exists"
        elif each.operator == "Exists" and each.value:
            problem, remedy = "If the operator is Exists, the value should be empty.", "omit the value"
        else:
            continue
        return ClusterPluginStatus(MISCONFIGURED, "TaintToleration", problem, path, remedy)
    return None


def _results(question: PlacementQuestion) -> TaintResults:
    """Return the results for each set of taints, cached for all placements with the same tolerations."""
    fleet, tolerations = question.fleet, question.placement.spec.tolerations
    return fleet.cached(
        ("taints", tolerations),
        fleet.taints.version,
        lambda: _compute(question, tolerations),
        valid=lambda results: results.since <= question.now < results.until,
    )


def _compute(question: PlacementQuestion, tolerations: Tolerations) -> TaintResults:
    sets = [taints or () for taints in question.fleet.taints.values]
    new = [_set_tolerance(taints, tolerations, False, question.now) for taints in sets]
    held = [_set_tolerance(taints, tolerations, True, question.now) for taints in sets]
    avoided = [any(_avoids(taint, tolerations, question.now) for taint in taints) for taints in sets]
    seconds = [each.toleration_seconds for each in tolerations if each.toleration_seconds is not None]
    ends = (taint.added + each for taints in sets for taint in taints for each in seconds)
    return TaintResults(
        np.array([tolerated for tolerated, _ in new]),
        np.array([tolerated for tolerated, _ in held]),
        np.array([end for _, end in held]),
        np.array(avoided),
        question.now,
        min((end for end in ends if end > question.now), default=NEVER),
    )


def _set_tolerance(
    taints: tuple[ClusterTaint, ...], tolerations: Tolerations, held: bool, now: float
) -> tuple[bool, float]:
    """Return whether all taints are tolerated, and until when."""
    found = [tolerance(taint, tolerations, held, now) for taint in taints]
    return all(tolerated for tolerated, _ in found), min((end for _, end in found), default=NEVER)


def tolerance(taint: ClusterTaint, tolerations: Tolerations, held: bool, now: float) -> tuple[bool, float]:
    """Return whether a taint is tolerated, and until when. `held`: by a placement that has the cluster."""
    if taint.effect == PREFER_NO_SELECT or (taint.effect == NO_SELECT_IF_NEW and held):
        return True, NEVER
    for toleration in tolerations:
        if _matches(toleration, taint):
            seconds = toleration.toleration_seconds
            end = NEVER if seconds is None else taint.added + seconds
            if now < end:
                return True, end
    return False, NEVER


def _matches(toleration: ClusterToleration, taint: ClusterTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (toleration.operator in ("", "Equal") and toleration.value == taint.value)


def _avoids(taint: ClusterTaint, tolerations: Tolerations, now: float) -> bool:
    """True for a PreferNoSelect taint that is not tolerated."""
    if taint.effect != PREFER_NO_SELECT:
        return False
    active = (t for t in tolerations if t.toleration_seconds is None or now < taint.added + t.toleration_seconds)
    return not any(_matches(toleration, taint) for toleration in active)
