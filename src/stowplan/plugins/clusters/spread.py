"""Spread: clusters are chosen one by one, each from the domain with the fewest chosen clusters.

A constraint's domains are the values of a label or a claim. The domains of a later constraint are counted within those
of the earlier constraints (a zone within its region). If a constraint says DoNotSchedule, a cluster is not chosen that
would make its domain exceed the emptiest sibling by more than `maxSkew`. Emptier domains score higher, up to 63 per
constraint; an earlier constraint outweighs all later ones. The result is scaled to -100 to 100, and added to the totals
with a weight. This follows Open Cluster Management's spread proposal, which its controller does not implement.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from stowplan.columns.arrays import Bools, Ints, Rows
from stowplan.columns.fleet.clusters import CLAIMS, LABELS
from stowplan.columns.fleet.views import Clusters
from stowplan.objects.placements import ClusterSpreadConstraint, Placement

STEPS = 64  # of emptiness


class SpreadLevel:
    """One constraint: the domain of each row, the parent of each domain, and how many clusters were chosen there."""

    def __init__(self, constraint: ClusterSpreadConstraint, domains: Ints, within: Ints, missing: Bools) -> None:
        self.constraint, self.domains, self.missing = constraint, domains, missing
        self.parent = np.zeros(int(domains.max(initial=-1)) + 1, np.int64)
        self.parent[domains] = within
        self.chosen = np.zeros(len(self.parent), np.int64)

    def fewest(self) -> Ints:
        """Return for each domain how many clusters were chosen in its emptiest sibling."""
        fewest = np.full(int(self.parent.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        np.minimum.at(fewest, self.parent, self.chosen)
        return fewest[self.parent]

    def allowed(self) -> Bools:
        """Return which rows can be chosen without exceeding the constraint's maxSkew."""
        skew = self.chosen + 1 - self.fewest()
        return (skew <= self.constraint.max_skew)[self.domains] & ~self.missing

    def emptiness(self) -> Ints:
        """Return 0 to 63 for each row; the emptiest of sibling domains has the most."""
        most = np.zeros(int(self.parent.max(initial=-1)) + 1, np.int64)
        np.maximum.at(most, self.parent, self.chosen)
        fewer = np.minimum(most[self.parent] - self.chosen, STEPS - 1)
        return np.where(self.missing, 0, fewer[self.domains])

    def choose(self, index: int) -> None:
        """Count a chosen cluster."""
        if not self.missing[index]:
            self.chosen[self.domains[index]] += 1


class Spread:
    configurable_at = ("score",)  # for its weight
    additions = ("score",)

    def depends_on(self, placement: Placement) -> Iterator[Hashable]:
        for constraint in placement.spec.spread_policy.spread_constraints:
            yield CLAIMS if constraint.topology_key_type == "Claim" else LABELS

    def select(self, placement: Placement, clusters: Clusters, totals: Ints, number: int, weight: int) -> Rows:
        levels = _levels(placement, clusters)
        left, picked = np.ones(len(clusters), np.bool_), list[int]()
        while len(picked) < number:
            feasible = left.copy()
            for level in levels:
                if level.constraint.hard:
                    feasible &= level.allowed()
            if not feasible.any():
                break
            finals = np.where(feasible, totals + weight * _scores(levels, feasible), np.iinfo(np.int64).min)
            index = int(finals.argmax())  # of equals the first, which has the first name
            picked.append(index)
            left[index] = False
            for level in levels:
                level.choose(index)
        return np.array(picked, np.int64)


def _levels(placement: Placement, clusters: Clusters) -> list[SpreadLevel]:
    levels, within = [], np.zeros(len(clusters), np.int64)
    for constraint in placement.spec.spread_policy.spread_constraints:
        column = clusters.claim if constraint.topology_key_type == "Claim" else clusters.label
        codes = column(constraint.topology_key).codes
        _, domains = np.unique(np.stack([within, codes]), axis=1, return_inverse=True)
        domains = domains.reshape(-1)
        levels.append(SpreadLevel(constraint, domains, within, codes == 0))
        within = domains
    return levels


def _scores(levels: list[SpreadLevel], feasible: Bools) -> Ints:
    """Return -100 to 100 for each feasible row; 0 for all if their domains are equally empty."""
    packed = np.zeros(len(feasible), np.int64)
    for level in levels:
        packed = packed * STEPS + level.emptiness()
    least, most = packed[feasible].min(), packed[feasible].max()
    if least == most:
        return np.zeros(len(feasible), np.int64)
    scores: Ints = (200.0 * (packed - least) / (most - least) - 100.0).astype(np.int64)
    return scores
