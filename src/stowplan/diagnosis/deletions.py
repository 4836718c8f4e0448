"""Deleting pods for others that wait: what a disruption budget says to it, what does the same, and what follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stowplan.diagnosis import ranking
from stowplan.diagnosis.edits import Edits, minimal
from stowplan.diagnosis.rehearsing import Rehearsing
from stowplan.diagnosis.remedies import budgets, free_room, scale_down
from stowplan.diagnosis.remedy import DeleteObject, ObjectChange


def variants(sets: Sequence[Edits], trying: Rehearsing) -> Iterator[Edits]:
    """Yield sets of edits that help, those that delete pods in every way that has the same effect.

    If no budget protects the pods: the workload that makes all of them scaled down, too. If one does, and edits of the
    same kind do without these pods, nothing; else with the budget changed first, and with a note that a deletion
    ignores it.
    """
    protected = [budgets.violated(free_room.deleted_pods(edits, trying), trying.state) for edits in sets]
    allowed = {ranking.code(edits) for edits, pods in zip(sets, protected, strict=True) if not pods}
    for edits, pods in zip(sets, protected, strict=True):
        if not pods:
            yield edits
            yield from _scaled_down(edits, trying)
        elif ranking.code(edits) not in allowed:
            changed = budgets.allowing(free_room.deleted_pods(edits, trying), trying.state)
            if changed:
                yield (*changed, *edits)
            yield free_room.against_budgets(edits, pods, trying.state)


def _scaled_down(edits: Edits, trying: Rehearsing) -> Iterator[Edits]:
    pods, workloads = free_room.deleted_pods(edits, trying), scale_down.Workloads(trying.state)
    workload = workloads.of(pods) if pods else None
    scaled = None if workload is None else scale_down.scaled(workload, pods)
    if workload is None or scaled is None:
        return
    trying.add_document(workload.kind, workload.key, {"spec": {}})
    others = tuple(edit for edit in edits if not free_room.deletes(edit))
    if trying.runs((*others, scaled)):
        smaller = minimal((*others, scaled), trying.runs)
        if trying.surely_runs(smaller):
            yield smaller


def gone(edits: Edits, changes: tuple[ObjectChange, ...]) -> tuple[str, ...]:
    """Return the pods that edits delete, and those that a controller deletes because of them."""
    deleted = [each.key for each in changes if isinstance(each, DeleteObject) and each.kind == "Pod"]
    return tuple(dict.fromkeys([*deleted, *(key for edit in edits for key in edit.gone)]))


def consequences(edits: Edits, nodes: Mapping[str, str], trying: Rehearsing) -> tuple[str, ...]:
    """Return what else follows from edits, a sentence each. `nodes`: where the pods would be that wait, by key."""
    follows = free_room.consequences(edits, nodes, trying) if any(map(free_room.deletes, edits)) else []
    return (*follows, *dict.fromkeys(edit.also for edit in edits if edit.also))
