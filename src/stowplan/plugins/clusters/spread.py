"""Spread: clusters are chosen one by one, each from where the fewest have been chosen so far.

A constraint's domains are the values of a label or a claim; those of a later constraint are counted within the domain
of the earlier ones (a zone within its region). A cluster that would put its domain further ahead of its emptiest
sibling than `maxSkew` is not chosen if the constraint says DoNotSchedule. Emptier domains score higher, up to 63 at
each level; levels are packed, the first constraint before the second, and the whole brought into -100 to 100, times a
weight, beside the totals. (The spread proposal of Open Cluster Management, which its controller never got.)
"""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Bools, Ints, Rows
from stowplan.columns.fleet.clusters import CLAIMS, LABELS
from stowplan.framework.placement.decision import PlacementQuestion
from stowplan.objects.placements import ClusterSpreadConstraint

LEVELS = 64


class SpreadLevel:
    """One constraint: the domain of each place, the domain that one is within, and how many have been chosen there."""

    def __init__(self, constraint: ClusterSpreadConstraint, domains: Ints, within: Ints, missing: Bools) -> None:
        self.constraint, self.domains, self.missing = constraint, domains, missing
        self.parent = np.zeros(int(domains.max(initial=-1)) + 1, np.int64)
        self.parent[domains] = within
        self.chosen = np.zeros(len(self.parent), np.int64)

    def fewest(self) -> Ints:
        """For each domain, what its emptiest sibling has."""
        fewest = np.full(int(self.parent.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        np.minimum.at(fewest, self.parent, self.chosen)
        return fewest[self.parent]

    def allowed(self) -> Bools:
        """Where one more would not go too far."""
        ahead = self.chosen + 1 - self.fewest()
        return (ahead <= self.constraint.max_skew)[self.domains] & ~self.missing

    def emptiness(self) -> Ints:
        """0 to 63 for each place; the emptiest of the siblings has the most."""
        most = np.zeros(int(self.parent.max(initial=-1)) + 1, np.int64)
        np.maximum.at(most, self.parent, self.chosen)
        above = np.minimum(most[self.parent] - self.chosen, LEVELS - 1)
        return np.where(self.missing, 0, above[self.domains])

    def take(self, place: int) -> None:
        if not self.missing[place]:
            self.chosen[self.domains[place]] += 1


class Spread:
    def select(self, asked: PlacementQuestion, rows: Rows, totals: Ints, number: int, weight: int) -> Rows:
        levels = _levels(asked, rows)
        left, picked = np.ones(len(rows), np.bool_), list[int]()
        while len(picked) < number:
            fine = left.copy()
            for level in levels:
                if level.constraint.hard:
                    fine &= level.allowed()
            if not fine.any():
                break
            finals = np.where(fine, totals + weight * _scores(levels, fine), np.iinfo(np.int64).min)
            place = int(finals.argmax())  # the first of equals, which is the one whose name comes first
            picked.append(place)
            left[place] = False
            for level in levels:
                level.take(place)
        return np.array(picked, np.int64)


def _levels(asked: PlacementQuestion, rows: Rows) -> list[SpreadLevel]:
    levels, within = [], np.zeros(len(rows), np.int64)
    for constraint in asked.placement.spec.spread_policy.spread_constraints:
        kind = CLAIMS if constraint.topology_key_type == "Claim" else LABELS
        codes = asked.fleet.column(kind, constraint.topology_key).codes[rows]
        _, domains = np.unique(np.stack([within, codes]), axis=1, return_inverse=True)
        domains = domains.reshape(-1)
        levels.append(SpreadLevel(constraint, domains, within, codes == 0))
        within = domains
    return levels


def _scores(levels: list[SpreadLevel], fine: Bools) -> Ints:
    """-100 to 100 over those that may be chosen; all alike where nothing tells them apart."""
    packed = np.zeros(len(fine), np.int64)
    for level in levels:
        packed = packed * LEVELS + level.emptiness()
    least, most = packed[fine].min(), packed[fine].max()
    if least == most:
        return np.zeros(len(fine), np.int64)
    scores: Ints = (200.0 * (packed - least) / (most - least) - 100.0).astype(np.int64)
    return scores
