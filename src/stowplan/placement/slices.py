"""Which PlacementDecision holds which clusters: a hundred at the most, and every cluster stays where it is if it can.

Whoever watches decisions takes a cluster that is in none of them for one that was given up, and tears down what runs
there. So objects are written in phases, each after the one before it has succeeded: new objects; then each with all it
is to have and, still, those of its clusters that are on their way to another object; only then without those; then
surplus objects go. Whatever is written, in whatever order within a phase, no cluster that stays chosen is ever in no
object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stowplan.framework.placement.decision_groups import ChosenGroup
from stowplan.objects.placements import MOST_IN_A_SLICE


@dataclass(frozen=True, slots=True)
class ExistingSlice:
    """An object as it is: the index and name of its group, as its labels have them, and its clusters."""

    index: str
    name: str
    clusters: tuple[str, ...]


@dataclass(slots=True)
class PlannedSlice:
    """An object as it is to be; `number` 0 until it has one."""

    number: int
    index: int
    name: str
    clusters: list[str] = field(default_factory=list)
    room: int = MOST_IN_A_SLICE


@dataclass(slots=True)
class SliceLayout:
    slots: list[PlannedSlice]
    surplus: list[int]

    def moving(self, current: Mapping[int, ExistingSlice]) -> dict[int, list[str]]:
        """For each object, its clusters that another one is to have and does not have yet."""
        target = {cluster: slot.number for slot in self.slots for cluster in slot.clusters}
        return {
            number: [
                cluster
                for cluster in held.clusters
                if (to := target.get(cluster, number)) != number
                and (to not in current or cluster not in current[to].clusters)
            ]
            for number, held in current.items()
        }


def layout(groups: Sequence[ChosenGroup], current: Mapping[int, ExistingSlice]) -> SliceLayout:
    """Where each cluster goes."""
    chosen = {cluster: index for index, group in enumerate(groups) for cluster in group.clusters}
    left = dict(sorted(current.items()))
    slots: list[PlannedSlice] = []
    for index, group in enumerate(groups):
        slots += _of_group(index, group, chosen, left)
    _number(slots, left, chosen)
    return SliceLayout(slots, list(left))


def _of_group(
    index: int, group: ChosenGroup, chosen: Mapping[str, int], left: dict[int, ExistingSlice]
) -> list[PlannedSlice]:
    """The group's objects; those of the existing ones that it keeps are taken out of `left`."""
    need = len(group.slices())
    slots, settled = [], set[str]()
    for number in _kept(index, chosen, left, need):
        held = left.pop(number)
        staying = [c for c in dict.fromkeys(held.clusters) if chosen.get(c) == index and c not in settled]
        leaving = sum(1 for c in held.clusters if chosen.get(c, index) != index)
        settled.update(staying[:MOST_IN_A_SLICE])
        slot = PlannedSlice(number, index, group.name, staying[:MOST_IN_A_SLICE])
        slot.room = max(MOST_IN_A_SLICE - len(slot.clusters) - leaving, 0)
        slots.append(slot)
    _fill(slots, [c for c in group.clusters if c not in settled], index, group.name)
    order = {cluster: place for place, cluster in enumerate(group.clusters)}
    for slot in slots:
        slot.clusters.sort(key=order.__getitem__)
    return slots


def _kept(index: int, chosen: Mapping[str, int], left: Mapping[int, ExistingSlice], need: int) -> list[int]:
    """As many of the existing objects as are needed: the group's own, those with most of its clusters before others,
    and those of other groups that hold nobody else's clusters.
    """
    shares = []
    for number, held in left.items():
        share = sum(1 for cluster in held.clusters if chosen.get(cluster) == index)
        strangers = any(chosen.get(cluster, index) != index for cluster in held.clusters)
        if held.index == str(index) or (share and not strangers):
            shares.append((held.index != str(index), -share, number))
    return sorted(number for _, _, number in sorted(shares)[:need])


def _fill(slots: list[PlannedSlice], clusters: list[str], index: int, name: str) -> None:
    for slot in slots:
        taken, clusters = clusters[: slot.room], clusters[slot.room :]
        slot.clusters += taken
    while clusters or not slots:
        slots.append(PlannedSlice(0, index, name, clusters[:MOST_IN_A_SLICE]))
        clusters = clusters[MOST_IN_A_SLICE:]


def _number(slots: Iterable[PlannedSlice], left: dict[int, ExistingSlice], chosen: Mapping[str, int]) -> None:
    """New objects take over surplus ones that hold nothing of use, or the lowest number that is free."""
    idle = [number for number, held in left.items() if not any(cluster in chosen for cluster in held.clusters)]
    taken = {slot.number for slot in slots} | left.keys()
    free = 1
    for slot in slots:
        if slot.number:
            continue
        if idle:
            slot.number = idle.pop(0)
            del left[slot.number]
            continue
        while free in taken:
            free += 1
        slot.number = free
        taken.add(free)
