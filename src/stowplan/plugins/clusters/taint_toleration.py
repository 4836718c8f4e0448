"""TaintToleration: a cluster is not chosen if it has a taint that the placement does not tolerate.

NoSelect excludes the cluster for all placements, NoSelectIfNew for those that do not have it already. A toleration may
end some seconds after the taint was added. PreferNoSelect excludes a cluster for none, but the cluster scores -100, so
that it is chosen last (an addition of ours: Open Cluster Management ignores PreferNoSelect).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints
from stowplan.columns.fleet.clusters import Fleet
from stowplan.columns.fleet.one_cluster import OneCluster
from stowplan.columns.fleet.views import Clusters, WholeFleet
from stowplan.framework.causes import Cause
from stowplan.framework.decision import Reject
from stowplan.framework.placement.interfaces import Misconfigured
from stowplan.objects.clusters import NO_SELECT_IF_NEW, PREFER_NO_SELECT, ClusterTaint
from stowplan.objects.placements import ClusterToleration, Placement

NEVER = float("inf")
Tolerations = tuple[ClusterToleration, ...]


@dataclass(frozen=True, slots=True)
class TaintResults:
    """Arrays over the distinct sets of taints. The results are valid from `since` until `until`."""

    new: Bools  # tolerated, for a cluster that the placement does not have
    held: Bools  # tolerated, for a cluster that the placement has
    lapses: Floats  # when the first of the tolerations for a held cluster ends
    avoided: Bools  # has a PreferNoSelect taint that is not tolerated
    all_tolerated: bool
    any_avoided: bool
    since: float
    until: float


class ClusterTaintToleration:
    counts_always = True  # PreferNoSelect counts in mode Exact as well
    exact = True  # it measures nothing
    additions = ("score",)

    def filter(self, placement: Placement, clusters: Clusters) -> Iterator[Reject | Misconfigured]:
        problem = _problem(placement.spec.tolerations)
        if problem is not None:
            yield problem
            return
        results = _results(placement, clusters.fleet)
        if results.all_tolerated:
            return
        codes = clusters.pick(clusters.fleet.table.taint_code)
        kept = results.new[codes]
        if clusters.fleet.holds_any:
            kept = np.where(clusters.current, results.held[codes], kept)
        yield Reject(~kept, "it has a taint that is not tolerated")

    def why(self, placement: Placement, cluster: OneCluster) -> str:
        for taint in cluster.taints:
            tolerated, _ = tolerance(taint, placement.spec.tolerations, cluster.current, cluster.fleet.now)
            if not tolerated:
                value = f"={taint.value}" if taint.value else ""
                return f"it has the taint {taint.key}{value}:{taint.effect}, which is not tolerated"
        return ""

    def causes_of(self, placement: Placement, cluster: OneCluster) -> Iterator[Cause]:
        for taint in cluster.taints:
            if not tolerance(taint, placement.spec.tolerations, cluster.current, cluster.fleet.now)[0]:
                value = f"={taint.value}" if taint.value else ""
                details = {"key": taint.key, "value": taint.value, "effect": taint.effect}
                yield Cause("taint", f"taint {taint.key}{value}:{taint.effect}", details)

    def lapses(self, placement: Placement, clusters: Clusters) -> float | None:
        """Return when the first toleration ends that keeps one of these clusters for the placement."""
        table = clusters.fleet.table
        existing = [row for row in clusters.rows.tolist() if table.clusters[row] is not None]
        if not existing or not _ends(placement):
            return None
        results, codes = _results(placement, clusters.fleet), table.taint_code[existing]
        first = float(np.where(results.held, results.lapses, NEVER)[codes].min())
        return None if first == NEVER else first

    def changes_at(self, placement: Placement, clusters: Clusters) -> float | None:
        """Return when the next toleration of any cluster ends. The scores of the others may depend on that cluster."""
        if not _ends(placement):
            return None
        until = _results(placement, clusters.fleet).until
        return None if until == NEVER else until

    def score(self, placement: Placement, clusters: Clusters) -> Ints | int:
        results = _results(placement, clusters.fleet)
        if not results.any_avoided:
            return 0
        return np.where(results.avoided[clusters.pick(clusters.fleet.table.taint_code)], -100, 0)

    def depends_on(self, placement: Placement) -> Iterable[Hashable]:  # noqa: ARG002
        return ()  # a change of taints affects every placement that may choose the cluster


def _ends(placement: Placement) -> bool:
    """True if a toleration ends some time after its taint was added."""
    return any(each.toleration_seconds is not None for each in placement.spec.tolerations)


def _problem(tolerations: Tolerations) -> Misconfigured | None:
    for index, each in enumerate(tolerations):
        path = f"spec.tolerations[{index}]"
        if not each.key and each.operator != "Exists":
            problem, remedy = "If the key is empty, operator must be Exists.", "set a key, or the operator Exists"
        elif each.operator == "Exists" and each.value:
            problem, remedy = "If the operator is Exists, the value should be empty.", "omit the value"
        else:
            continue
        return Misconfigured(problem, path, remedy)
    return None


def _results(placement: Placement, fleet: WholeFleet) -> TaintResults:
    """Return the results for each set of taints, cached for all placements with the same tolerations."""
    table, tolerations, now = fleet.table, placement.spec.tolerations, fleet.now
    return table.cached(
        ("taints", tolerations),
        table.taints.version,
        lambda: _compute(table, now, tolerations),
        valid=lambda results: results.since <= now < results.until,
    )


def _compute(table: Fleet, now: float, tolerations: Tolerations) -> TaintResults:
    sets = [taints or () for taints in table.taints.values]
    new = [_set_tolerance(taints, tolerations, False, now) for taints in sets]
    held = [_set_tolerance(taints, tolerations, True, now) for taints in sets]
    avoided = [any(_avoids(taint, tolerations, now) for taint in taints) for taints in sets]
    seconds = [each.toleration_seconds for each in tolerations if each.toleration_seconds is not None]
    ends = (taint.added + each for taints in sets for taint in taints for each in seconds)
    return TaintResults(
        np.array([tolerated for tolerated, _ in new]),
        np.array([tolerated for tolerated, _ in held]),
        np.array([end for _, end in held]),
        np.array(avoided),
        all(tolerated for tolerated, _ in (*new, *held)),
        any(avoided),
        now,
        min((end for end in ends if end > now), default=NEVER),
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
