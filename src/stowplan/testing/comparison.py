"""A cluster state, or a decision, as plain dictionaries by node name, to be compared with another one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

from stowplan.columns.pods.match_counts import Settled, WeightedQueries
from stowplan.columns.pods.uses import TERMS
from stowplan.columns.state import ClusterState
from stowplan.columns.tally import Tally
from stowplan.framework.decision import Decision
from stowplan.objects.affinity import PodQuery
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import Namespace, Service

Question: TypeAlias = tuple[tuple[PodQuery, ...], Settled]


def contents(
    state: ClusterState, questions: Collection[Question], keys: Collection[str], probe: Pod,
    sums: Collection[WeightedQueries] = (),
) -> dict[str, Any]:  # fmt: skip
    """Return everything that decisions read, by node name: of counts these questions and sums, of labels these keys."""
    table = state.table
    names = {row: name for name, row in table.row_of.items()}
    live = {name for row, name in names.items() if table.live[row]}

    def by_name(columns: Mapping[str, Any]) -> dict[str, dict[str, int]]:
        return {
            resource: {name: int(column[row]) for row, name in names.items() if column[row]}
            for resource, column in columns.items()
            if any(column[row] for row in names)
        }

    def counted(tally: Tally) -> dict[str, int]:
        return {names[row]: count for row, count in tally.items().items()}

    return {
        "names": set(names.values()),
        "nodes": {name: table.nodes[table.row_of[name]] for name in live},
        "rows without a name": table.size - table.reusable - len(names),
        "allocatable": by_name(table.allocatable),
        "requested": by_name(table.requested),
        "presumed": by_name(table.presumed),
        "unschedulable": {name for row, name in names.items() if table.unschedulable[row]},
        "taints": {name: table.taints.values[table.taint_code[row]] for row, name in names.items()},
        "features": {name: table.features.values[table.feature_code[row]] for row, name in names.items()},
        "words": (set(table.taints.codes), set(table.features.codes)),
        "images": {image: (held.size, {names[row] for row in held.rows}) for image, held in table.images.items()},
        "labels": {key: _labels(state, key, names) for key in keys},
        "counts": {
            (queries, settled): counted(state.count(*queries, settled=settled)) for queries, settled in questions
        },
        "weighted sums": {
            queries: (counted(state.weigh(queries).pods), counted(state.weigh(queries).weights)) for queries in sums
        },
        "label sets": state.match_counts.label_sets,
        "stray counters": state.match_counts.stray_counters,
        "uses": {use: counted(tally) for use, tally in state.uses.tallies.items()},
        "carried": {
            kind: {term: counted(tally) for term, tally in state.terms_matching(kind, probe)} for kind in TERMS
        },
        "carried sums": {kind: _sums(state, kind, probe, names) for kind in TERMS},
        "label keys": dict(table.label_keys),
        "pods": {
            name: {uid: placed.pod for uid, placed in state.pods_on[row].items()}
            for row, name in names.items()
            if state.pods_on[row]
        },
        "pods by uid": {uid: (placed.pod, names[placed.row]) for uid, placed in state.pods.items()},
        "nominated": {name: dict(pods) for name, pods in state.nominated_pods.by_node.items()},
        "held": dict(state.held),
        "objects": {kind: dict(state.store.every(kind)) for kind in (Namespace, Service)},
        "services": sorted(service.key for service in state.store.services_of(probe)),
    }


def _sums(state: ClusterState, kind: str, probe: Pod, names: dict[int, str]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return how many pods of each node carry a term that matches, and with which weight, by node and topology key."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for carried in state.carried_sums(kind, probe):
        weights = carried.weights.items()
        for row, count in carried.pods.items().items():
            key = names[row], carried.topology_key
            pods, weight = found.get(key, (0, 0))
            found[key] = pods + count, weight + weights.get(row, 0) * carried.factor
    return found


def _labels(state: ClusterState, key: str, names: Mapping[int, str]) -> dict[str, Any]:
    column = state.table.label(key)
    values = {name: column.values.values[column.codes[row]] for row, name in names.items()}
    return {"values": values, "words": set(column.values.codes)}


def decision_contents(decision: Decision) -> dict[str, Any]:
    """Return a decision by node name, without what depends on the order of rows (which of the best nodes is chosen)."""
    room = decision.post_filter
    return {
        "error": decision.error,
        "message": decision.message,
        "gated": decision.gated,
        "refused": decision.refused,
        "limited to": decision.limited_to,
        "rejections": dict(decision.trail.rejections()),
        "scores": {name: (each, total) for name, each, total in decision.trail.scored()},
        "best": set(decision.trail.best()),
        "room": None if room is None else (room.candidate is not None, room.reasons),
    }


def differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[str]:
    """Describe each part that differs, short enough to be read in a failing test."""
    for part in left:
        if left[part] != right[part]:
            yield f"{part}: {left[part]} instead of {right[part]}"
