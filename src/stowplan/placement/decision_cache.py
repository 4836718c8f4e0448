"""The PlacementDecisions, as the API server shows them and as they will be after our own writes.

A write is assumed to succeed from the moment it is sent, so that the next placement is decided with it (Balance counts
decisions). The assumption ends when the server shows the write, when the write fails, or after a while.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from stowplan.columns.fleet.clusters import Fleet
from stowplan.objects.placements import GROUP_INDEX_LABEL, PlacementDecision

ASSUMED_FOR = 30.0  # seconds for which a write is assumed that the API server does not show


@dataclass(frozen=True, slots=True)
class AssumedDecision:
    """What a write makes of an object (None: it is deleted), and until when that is assumed."""

    decision: PlacementDecision | None
    until: float


class DecisionCache:
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._shown: dict[str, PlacementDecision] = {}
        self._assumed: dict[str, AssumedDecision] = {}
        self._of: defaultdict[str, set[str]] = defaultdict(set)

    # -- reading

    def get(self, key: str) -> PlacementDecision | None:
        """Return an object as it is, or is assumed to be."""
        assumed = self._assumed.get(key)
        return self._shown.get(key) if assumed is None else assumed.decision

    def uid(self, key: str) -> str:
        """Return the uid of an object; "" if the API server has not shown the object."""
        shown = self._shown.get(key)
        return "" if shown is None else shown.uid

    def of(self, placement: str) -> dict[str, PlacementDecision]:
        """Return the objects of a placement, by key."""
        found = {}
        for key in self._of.get(placement, ()):
            decision = self.get(key)
            if decision is not None and decision.placement == placement:
                found[key] = decision
        return found

    def clusters(self, placement: str) -> list[str]:
        """Return the names of a placement's clusters in order, each as often as it is listed."""
        found = self.of(placement).items()
        ordered = found if len(found) < 2 else sorted(found, key=_order)
        return [name for _, decision in ordered for name in decision.cluster_names]

    # -- what the API server shows

    def put(self, decision: PlacementDecision) -> bool:
        """Take in a shown object. True if it differs from what was known or assumed."""
        return self._show(decision.key, decision)

    def remove(self, decision: PlacementDecision) -> bool:
        """Take in a deletion. True if it was not assumed."""
        return self._show(decision.key, None)

    def _show(self, key: str, shown: PlacementDecision | None) -> bool:
        before, assumed = self.get(key), self._assumed.get(key)
        if shown is None:
            self._shown.pop(key, None)
        else:
            self._shown[key] = shown
        if assumed is not None and _same(assumed.decision, shown):
            del self._assumed[key]
        return self._update(key, before)

    # -- what our writes will make of it

    def assume(self, key: str, decision: PlacementDecision | None, until: float) -> None:
        before = self.get(key)
        self._assumed[key] = AssumedDecision(decision, until)
        self._update(key, before)

    def drop_assumed(self, key: str) -> None:
        """A write failed: the object is as the API server shows it."""
        before = self.get(key)
        self._assumed.pop(key, None)
        self._update(key, before)

    def drop_outdated(self, placement: str, now: float) -> list[str]:
        """Drop the assumptions about a placement's objects that the API server did not confirm in time.

        Return the keys of these objects.
        """
        listed = ((key, self._assumed.get(key)) for key in self._of.get(placement, ()))
        outdated = [key for key, assumed in listed if assumed is not None and assumed.until <= now]
        for key in outdated:
            self.drop_assumed(key)
        return outdated

    # -- counts and index

    def _update(self, key: str, before: PlacementDecision | None) -> bool:
        """Count and index an object again if it is not as it was before. True if so."""
        after = self.get(key)
        if _same(before, after):
            return False
        for decision, by in ((after, 1), (before, -1)):  # in this order no row is released and taken again
            if decision is not None:
                self._fleet.count_decision(decision.cluster_names, by)
        for decision in (before, after):
            if decision is not None and decision.placement:
                self._index(key, decision.placement)
        return True

    def _index(self, key: str, placement: str) -> None:
        known = (self._shown.get(key), self.get(key))
        if any(each is not None and each.placement == placement for each in known):
            self._of[placement].add(key)
        elif placement in self._of:
            self._of[placement].discard(key)
            if not self._of[placement]:
                del self._of[placement]


def _order(item: tuple[str, PlacementDecision]) -> tuple[int, int, str]:
    """Order objects by their group, and by their number."""
    key, decision = item
    index = decision.labels.get(GROUP_INDEX_LABEL, "")
    return int(index) if index.isdecimal() and len(index) < 10 else 0, len(key), key


def _same(one: PlacementDecision | None, other: PlacementDecision | None) -> bool:
    """True if both have the same labels and clusters, or both are missing."""
    if one is None or other is None:
        return one is other
    return one.labels == other.labels and one.status == other.status
