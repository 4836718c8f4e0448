"""The PlacementDecisions there are, as the server shows them and as they will be once our own writes are through.

A write counts from the moment it is sent, so that the next placement knows of it (Balance counts decisions), until the
server shows it itself, or refuses it, or too long has passed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from stowplan.columns.fleet.clusters import Fleet
from stowplan.objects.placements import GROUP_INDEX_LABEL, GROUP_NAME_LABEL, PlacementDecision
from stowplan.placement.slices import ExistingSlice

NOBODY: tuple[str, ...] = ()


@dataclass(slots=True)
class AssumedDecision:
    """What a write will make of an object (None: it will be gone), and until when that is believed."""

    decision: PlacementDecision | None
    until: float


class DecisionCache:
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._seen: dict[str, PlacementDecision] = {}
        self._assumed: dict[str, AssumedDecision] = {}
        self._of: defaultdict[str, set[str]] = defaultdict(set)

    def get(self, key: str) -> PlacementDecision | None:
        """An object as it is, or is about to be."""
        assumed = self._assumed.get(key)
        return self._seen.get(key) if assumed is None else assumed.decision

    def uid(self, key: str) -> str:
        seen = self._seen.get(key)
        return "" if seen is None else seen.uid

    def of(self, placement: str) -> dict[str, PlacementDecision]:
        """The objects of a placement, by key."""
        found = ((key, self.get(key)) for key in self._of.get(placement, ()))
        return {key: decision for key, decision in found if decision is not None and decision.placement == placement}

    def clusters(self, placement: str) -> list[str]:
        """The clusters that a placement has, each as often as it is listed."""
        return [name for decision in self.of(placement).values() for name in decision.cluster_names]

    def put(self, decision: PlacementDecision) -> bool:
        """The server shows this; whether that is news."""
        return self._change(decision.key, decision)

    def remove(self, decision: PlacementDecision) -> bool:
        return self._change(decision.key, None)

    def _change(self, key: str, shown: PlacementDecision | None) -> bool:
        before, assumed = self.get(key), self._assumed.get(key)
        if shown is None:
            self._seen.pop(key, None)
        else:
            self._seen[key] = shown
        if assumed is not None and _alike(assumed.decision, shown):
            del self._assumed[key]
        return self._settle(key, before)

    def assume(self, key: str, decision: PlacementDecision | None, until: float) -> None:
        before = self.get(key)
        self._assumed[key] = AssumedDecision(decision, until)
        self._settle(key, before)

    def doubt(self, key: str) -> None:
        """A write failed: what the server shows counts."""
        before = self.get(key)
        self._assumed.pop(key, None)
        self._settle(key, before)

    def doubt_old(self, placement: str, now: float) -> None:
        """Writes of which the server has shown nothing for long are no longer believed."""
        for key in list(self._of.get(placement, ())):
            assumed = self._assumed.get(key)
            if assumed is not None and assumed.until <= now:
                self.doubt(key)

    def _settle(self, key: str, before: PlacementDecision | None) -> bool:
        after = self.get(key)
        if _alike(before, after):
            return False
        for decision, by in ((after, 1), (before, -1)):  # in this order no row is given back and taken again
            if decision is not None:
                self._fleet.decide(decision.cluster_names, by)
        for decision in (before, after):
            if decision is not None and decision.placement:
                self._note(key, decision.placement)
        return True

    def _note(self, key: str, placement: str) -> None:
        known = (self._seen.get(key), self.get(key))
        if any(each is not None and each.placement == placement for each in known):
            self._of[placement].add(key)
        elif placement in self._of:
            self._of[placement].discard(key)
            if not self._of[placement]:
                del self._of[placement]


def _alike(one: PlacementDecision | None, other: PlacementDecision | None) -> bool:
    """Do both say the same?"""
    if one is None or other is None:
        return one is other
    return one.labels == other.labels and one.status == other.status


def held(decision: PlacementDecision) -> ExistingSlice:
    labels = decision.labels
    return ExistingSlice(labels.get(GROUP_INDEX_LABEL, ""), labels.get(GROUP_NAME_LABEL, ""), decision.cluster_names)
