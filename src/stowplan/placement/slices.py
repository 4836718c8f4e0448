"""Which PlacementDecision lists which clusters: at most a hundred each, and a cluster stays where it is if possible.

A consumer of decisions takes a cluster that no decision lists for one that was deselected, and tears down what runs
there. So a cluster that moves from one object to another is listed in both for a while: an object keeps its `leaving`
clusters until their new object has them (`decision_writes` has the order of writes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stowplan.framework.placement.decision_groups import ChosenGroup
from stowplan.objects.placements import (
    GROUP_INDEX_LABEL,
    GROUP_NAME_LABEL,
    MOST_IN_A_SLICE,
    Placement,
    PlacementDecision,
)


@dataclass(frozen=True, slots=True)
class ExistingSlice:
    """An object as it is: the index and name of its group, as its labels have them, and its clusters."""

    index: str
    name: str
    clusters: tuple[str, ...]


@dataclass(slots=True)
class PlannedSlice:
    """An object as it shall be. `number` is 0 until the object has one."""

    number: int
    index: int
    name: str
    clusters: list[str] = field(default_factory=list)
    room: int = MOST_IN_A_SLICE
    leaving: list[str] = field(default_factory=list)  # clusters that another object shall have and does not have yet


@dataclass(slots=True)
class SliceLayout:
    slices: list[PlannedSlice]
    surplus: list[int]  # the numbers of objects that are not needed


def by_number(
    placement: Placement, current: Mapping[str, PlacementDecision]
) -> tuple[dict[int, PlacementDecision], list[str]]:
    """Return a placement's objects by number, and the keys of those whose names are not ours."""
    numbered, unnumbered, prefix = dict[int, PlacementDecision](), list[str](), f"{placement.key}-decision-"
    for key, decision in current.items():
        digits = key.removeprefix(prefix) if key.startswith(prefix) else ""
        if digits.isdecimal() and digits[0] != "0":
            numbered[int(digits)] = decision
        else:
            unnumbered.append(key)
    return numbered, unnumbered


def layout_of(groups: Sequence[ChosenGroup], current: Mapping[int, PlacementDecision]) -> SliceLayout:
    """Return where each cluster goes, given the objects there are, by number."""
    existing = {}
    for number, each in current.items():
        labels = each.labels
        index, name = labels.get(GROUP_INDEX_LABEL, ""), labels.get(GROUP_NAME_LABEL, "")
        existing[number] = ExistingSlice(index, name, each.cluster_names)
    return layout(groups, existing)


def layout(groups: Sequence[ChosenGroup], current: Mapping[int, ExistingSlice]) -> SliceLayout:
    chosen = {cluster: index for index, group in enumerate(groups) for cluster in group.clusters}
    left = dict(sorted(current.items()))
    slices: list[PlannedSlice] = []
    for index, group in enumerate(groups):
        slices += _of_group(index, group, chosen, left)
    _number(slices, left, chosen)
    _keep_leaving(slices, current)
    return SliceLayout(slices, list(left))


def _of_group(
    index: int, group: ChosenGroup, chosen: Mapping[str, int], left: dict[int, ExistingSlice]
) -> list[PlannedSlice]:
    """Return the group's objects. The existing objects that the group keeps are removed from `left`."""
    needed = len(group.slices())
    slices, placed = [], set[str]()
    for number in _kept(index, chosen, left, needed):
        existing = left.pop(number)
        staying = [c for c in dict.fromkeys(existing.clusters) if chosen.get(c) == index and c not in placed]
        leaving = sum(1 for c in existing.clusters if chosen.get(c, index) != index)
        placed.update(staying[:MOST_IN_A_SLICE])
        planned = PlannedSlice(number, index, group.name, staying[:MOST_IN_A_SLICE])
        planned.room = max(MOST_IN_A_SLICE - len(planned.clusters) - leaving, 0)
        slices.append(planned)
    _fill(slices, [c for c in group.clusters if c not in placed], index, group.name)
    order = {cluster: place for place, cluster in enumerate(group.clusters)}
    for planned in slices:
        planned.clusters.sort(key=order.__getitem__)
    return slices


def _kept(index: int, chosen: Mapping[str, int], left: Mapping[int, ExistingSlice], needed: int) -> list[int]:
    """Return the numbers of the existing objects that a group keeps, as many as needed.

    The group's own objects come first, those with most of its clusters before others. Then come objects of other groups
    that list clusters of this group and of no other.
    """
    ranked = []
    for number, existing in left.items():
        share = sum(1 for cluster in existing.clusters if chosen.get(cluster) == index)
        mixed = any(chosen.get(cluster, index) != index for cluster in existing.clusters)
        if existing.index == str(index) or (share and not mixed):
            ranked.append((existing.index != str(index), -share, number))
    return sorted(number for _, _, number in sorted(ranked)[:needed])


def _fill(slices: list[PlannedSlice], clusters: list[str], index: int, name: str) -> None:
    """Put clusters into objects that have room, and the rest into new objects."""
    for planned in slices:
        taken, clusters = clusters[: planned.room], clusters[planned.room :]
        planned.clusters += taken
    while clusters or not slices:
        slices.append(PlannedSlice(0, index, name, clusters[:MOST_IN_A_SLICE]))
        clusters = clusters[MOST_IN_A_SLICE:]


def _number(slices: Iterable[PlannedSlice], left: dict[int, ExistingSlice], chosen: Mapping[str, int]) -> None:
    """Give each new object the number of a surplus object that lists no chosen cluster, or the lowest free number."""
    unused = [number for number, existing in left.items() if not any(c in chosen for c in existing.clusters)]
    taken = {planned.number for planned in slices} | left.keys()
    free = 1
    for planned in slices:
        if planned.number:
            continue
        if unused:
            planned.number = unused.pop(0)
            del left[planned.number]
            continue
        while free in taken:
            free += 1
        planned.number = free
        taken.add(free)


def _keep_leaving(slices: Iterable[PlannedSlice], current: Mapping[int, ExistingSlice]) -> None:
    """Note in each object its clusters that another object shall have and does not have yet."""
    target = {cluster: planned.number for planned in slices for cluster in planned.clusters}
    for planned in slices:
        existing = current.get(planned.number)
        for cluster in () if existing is None else existing.clusters:
            to = target.get(cluster, planned.number)
            if to != planned.number and (to not in current or cluster not in current[to].clusters):
                planned.leaving.append(cluster)
