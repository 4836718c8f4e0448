"""TaintToleration: a cluster is not chosen if it has a taint that the placement does not tolerate.

NoSelect keeps everybody out, NoSelectIfNew those who do not have the cluster already. A toleration may be for so many
seconds since the taint was added. PreferNoSelect keeps nobody out; but such a cluster scores -100, so that it is taken
if no other will do (an addition of ours: Open Cluster Management does nothing with it).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints, Rows
from stowplan.framework.placement.decision import MISCONFIGURED, ClusterScores, PlacementQuestion, PluginStatus
from stowplan.objects.clusters import NO_SELECT_IF_NEW, PREFER_NO_SELECT, ClusterTaint
from stowplan.objects.placements import ClusterToleration

NEVER = float("inf")
Tolerations = tuple[ClusterToleration, ...]


@dataclass(frozen=True, slots=True)
class TaintResults:
    """For each set of taints there is: does it let a cluster in that is new, or one that the placement has; until when
    (`lapses`); is there one that would rather not (`avoided`)? Good from `since` until `until`.
    """

    new: Bools
    held: Bools
    lapses: Floats
    avoided: Bools
    since: float
    until: float


class ClusterTaintToleration:
    name = "TaintToleration"

    def filter(self, asked: PlacementQuestion, rows: Rows) -> Bools | PluginStatus:
        tolerations = asked.placement.spec.tolerations
        if not len(rows):
            return np.ones(0, np.bool_)
        problem = _problem(tolerations)
        if problem is not None:
            return problem
        codes, answers = asked.fleet.taint_code[rows], _answers(asked)
        kept = answers.new[codes]
        if len(asked.own):
            held = np.zeros(asked.fleet.capacity, np.bool_)
            held[asked.own] = True
            kept = np.where(held[rows], answers.held[codes], kept)
        return kept

    def why(self, asked: PlacementQuestion, row: int) -> str:
        taints = asked.fleet.taints.values[int(asked.fleet.taint_code[row])] or ()
        held = row in asked.own.tolist()
        for taint in taints:
            tolerated, _ = tolerance(taint, asked.placement.spec.tolerations, held, asked.now)
            if not tolerated:
                value = f"={taint.value}" if taint.value else ""
                return f"it has the taint {taint.key}{value}:{taint.effect}, which is not tolerated"
        return ""

    def lapses(self, asked: PlacementQuestion, rows: Rows) -> float | None:
        """When the first toleration lapses that clusters of these rows, which the placement has, depend on."""
        clusters = asked.fleet.clusters
        there = [row for row in rows.tolist() if clusters[row] is not None]
        if not there or not any(each.toleration_seconds is not None for each in asked.placement.spec.tolerations):
            return None
        answers, codes = _answers(asked), asked.fleet.taint_code[there]
        first = float(np.where(answers.held, answers.lapses, NEVER)[codes].min())
        return None if first == NEVER else first

    def changes_at(self, asked: PlacementQuestion) -> float | None:
        """When the next toleration lapses of any cluster: it may not be chosen, and yet others be ranked beside it."""
        if not any(each.toleration_seconds is not None for each in asked.placement.spec.tolerations):
            return None
        until = _answers(asked).until
        return None if until == NEVER else until

    def score(self, asked: PlacementQuestion, rows: Rows) -> ClusterScores:
        avoided: Ints = np.where(_answers(asked).avoided[asked.fleet.taint_code[rows]], -100, 0)
        return ClusterScores(avoided)


def _problem(tolerations: Tolerations) -> PluginStatus | None:
    for index, each in enumerate(tolerations):
        path = f"spec.tolerations[{index}]"
        if not each.key and each.operator != "Exists":
            problem, remedy = "If the key is empty, operator must be Exists.", "give a key, or operator Exists"
        elif each.operator == "Exists" and each.value:
            problem, remedy = "If the operator is Exists, the value should be empty.", "leave the value out"
        else:
            continue
        return PluginStatus(MISCONFIGURED, "TaintToleration", problem, path, remedy)
    return None


def _answers(asked: PlacementQuestion) -> TaintResults:
    """Each set of taints is looked at once, for all placements that tolerate the same."""
    fleet, tolerations = asked.fleet, asked.placement.spec.tolerations
    return fleet.cached(
        ("taints", tolerations),
        fleet.taints.version,
        lambda: _work_out(asked, tolerations),
        good=lambda answers: answers.since <= asked.now < answers.until,
    )


def _work_out(asked: PlacementQuestion, tolerations: Tolerations) -> TaintResults:
    sets = [taints or () for taints in asked.fleet.taints.values]
    new = [_set_tolerance(taints, tolerations, False, asked.now) for taints in sets]
    held = [_set_tolerance(taints, tolerations, True, asked.now) for taints in sets]
    avoided = [any(_avoids(taint, tolerations, asked.now) for taint in taints) for taints in sets]
    seconds = [each.toleration_seconds for each in tolerations if each.toleration_seconds is not None]
    ends = (taint.added + each for taints in sets for taint in taints for each in seconds)
    return TaintResults(
        np.array([fine for fine, _ in new]),
        np.array([fine for fine, _ in held]),
        np.array([end for _, end in held]),
        np.array(avoided),
        asked.now,
        min((end for end in ends if end > asked.now), default=NEVER),
    )


def _set_tolerance(
    taints: tuple[ClusterTaint, ...], tolerations: Tolerations, held: bool, now: float
) -> tuple[bool, float]:
    found = [tolerance(taint, tolerations, held, now) for taint in taints]
    return all(fine for fine, _ in found), min((end for _, end in found), default=NEVER)


def tolerance(taint: ClusterTaint, tolerations: Tolerations, held: bool, now: float) -> tuple[bool, float]:
    """Is the taint tolerated, and until when; `held`: by a placement that has the cluster."""
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
    if taint.effect != PREFER_NO_SELECT:
        return False
    live = (t for t in tolerations if t.toleration_seconds is None or now < taint.added + t.toleration_seconds)
    return not any(_matches(toleration, taint) for toleration in live)
