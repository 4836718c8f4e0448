"""Why clusters are not chosen for a placement, by name. Clusters with the same causes are one group.

Every filter is asked about every cluster of the placement's sets, not only about those that the filters before it left.
Clusters outside of these sets, and those with too low a total, have a cause as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.columns.fleet.one_cluster import OneCluster
from stowplan.columns.fleet.views import Clusters
from stowplan.diagnosis.causes import NodeGroups
from stowplan.diagnosis.diagnosis import CauseGroup, NamedCause
from stowplan.framework.cause_texts import MOST_LISTED, few, listed
from stowplan.framework.causes import REJECTED, Cause, Detail
from stowplan.framework.placement.choice import FilterStage, PlacementChoice
from stowplan.framework.placement.interfaces import UnfinishedError
from stowplan.framework.placement.plugin_calls import Rejected, call_cluster_filter
from stowplan.framework.placement.policy import ClusterPolicy

OUTSIDE, TOTAL, MISCONFIGURED = "cluster-set", "score", "misconfigured"


def placement_causes(choice: PlacementChoice) -> tuple[NamedCause, ...]:
    """Why the placement as a whole gets no clusters, or fewer than it wants."""
    found: list[NamedCause] = []
    placement, status = choice.question.placement, choice.status
    if status.failed:
        details: dict[str, Detail] = {"path": status.path or None, "remedy": status.remedy or None}
        found.append(NamedCause(status.plugin, Cause(MISCONFIGURED, status.text, details)))
    elif not choice.sets:
        wanted, namespace = sorted(placement.spec.cluster_sets), placement.namespace
        which = f"ClusterSet {few(wanted, conjunction='or')}" if wanted else "any ClusterSet"
        text = f"namespace {namespace} is not bound to {which}"
        found.append(NamedCause("", Cause("cluster-set-unbound", text, {"sets": listed(wanted)})))
    elif not len(choice.candidates):
        text = f"no cluster is in ClusterSet {few(choice.sets, conjunction='or')}"
        found.append(NamedCause("", Cause("cluster-set-empty", text, {"sets": listed(choice.sets)})))
    elif choice.unscheduled:
        wanted_number = placement.spec.number_of_clusters
        text = f"it wants {wanted_number} clusters, and {len(choice.picked)} can be chosen"
        details = {"wanted": wanted_number, "chosen": len(choice.picked)}
        found.append(NamedCause("", Cause("too-few-clusters", text, details)))
    return tuple(found)


def cluster_groups(choice: PlacementChoice, policy: ClusterPolicy) -> tuple[CauseGroup, ...]:
    """Why clusters are not chosen, all causes of each, the group with the most clusters first."""
    fleet = choice.question.fleet
    there = np.array([row for row in range(fleet.size) if fleet.clusters[row] is not None], np.int64)
    groups = NodeGroups(len(there))
    for rows, plugin, cause in _causes(choice, policy, there):
        groups.add(np.isin(there, rows), NamedCause(plugin, cause))
    return groups.named(fleet.named(there))


def _causes(choice: PlacementChoice, policy: ClusterPolicy, there: Rows) -> Iterator[tuple[Rows, str, Cause]]:
    outside = np.setdiff1d(there, choice.candidates)
    if len(outside):
        sets = f"ClusterSet {few(choice.sets, conjunction='or')}" if choice.sets else "a ClusterSet of the namespace"
        text = f"it is not in {sets}"
        yield outside, "", Cause(OUTSIDE, text, {"sets": listed(choice.sets)})
    for stage in _stages(choice, policy):
        yield from _of_stage(choice, stage)
    names = choice.missing()
    if names:
        text = "its total is too low: others have more"
        rows = choice.question.fleet.rows(names)
        details: dict[str, Detail] = {"needs": dict(list(names.items())[:MOST_LISTED])}
        yield rows, "", Cause(TOTAL, f"{text} (it lacks {_points(list(names.values()))})", details)


def _points(lacking: Sequence[int]) -> str:
    least, most = min(lacking), max(lacking)
    return f"{most} points" if least == most else f"{least} to {most} points"


def _stages(choice: PlacementChoice, policy: ClusterPolicy) -> Iterator[FilterStage]:
    """Every filter's answer about all candidates, and then what was excluded for the lack of a score."""
    fleet, filters = choice.question.view(), {enabled.name for enabled in policy.filters}
    clusters = Clusters(fleet, choice.candidates)
    for enabled in policy.filters if len(clusters) else ():
        try:
            found = call_cluster_filter(enabled, choice.question.placement, clusters)
        except UnfinishedError:  # there is too much to evaluate for all clusters
            yield from (stage for stage in choice.stages if stage.name == enabled.name)
            continue
        if isinstance(found, Rejected) and found.kept is not None:
            yield FilterStage(enabled.name, enabled.plugin, choice.candidates, found.kept, found.rejects)
    yield from (stage for stage in choice.stages if stage.name not in filters)


def _of_stage(choice: PlacementChoice, stage: FilterStage) -> Iterator[tuple[Rows, str, Cause]]:
    """Yield the causes of one filter's rejections, as its `causes_of` or `why` says; or the reason."""
    fleet, placement = choice.question.view(), choice.question.placement
    causes_of = getattr(stage.plugin, "causes_of", None)
    found: dict[Cause, list[int]] = {}
    for position, row in stage.dropped():
        cluster = OneCluster(fleet, row)
        causes = list(causes_of(placement, cluster)) if causes_of is not None else []
        for cause in causes or [Cause(REJECTED, stage.reason(placement, position, cluster))]:
            found.setdefault(cause, []).append(row)
    for cause, rows in found.items():
        yield np.array(rows, np.int64), stage.name, cause
