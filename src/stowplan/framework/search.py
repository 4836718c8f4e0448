"""How many nodes a decision looks at: all, unless `percentageOfNodesToScore` limits them.

With a limit the search stops after so many feasible nodes. The next search starts where this one ended, so that all
nodes have their turn; zones are visited in turns.
"""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.decision import FEASIBLE, UNSEEN
from stowplan.framework.profile import Profile
from stowplan.framework.verdict_codes import Verdicts

SMALLEST = 100  # a cluster with fewer nodes is always searched completely
REGIONS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
ZONES = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


class NodeSearch:
    """The place where the last search ended. All profiles of a scheduler share it."""

    def __init__(self) -> None:
        self._start = 0

    @staticmethod
    def stops(nodes: int, profile: Profile) -> bool:
        """True if the search may stop before it has seen all of so many nodes."""
        return wanted(nodes, profile.percentage_of_nodes_to_score) < nodes

    def stop(self, nodes: Nodes, verdict_of: Verdicts, profile: Profile) -> None:
        """Mark the nodes after the last one that is needed as UNSEEN."""
        enough = wanted(len(nodes), profile.percentage_of_nodes_to_score)
        if enough >= len(nodes):
            return
        feasible = verdict_of == FEASIBLE
        order = np.roll(by_turns(nodes), -(self._start % len(nodes)))
        found = np.cumsum(feasible[order])
        one_too_many = int(np.searchsorted(found, enough + 1))
        self._start = (self._start + one_too_many) % len(nodes)
        verdict_of[order[one_too_many:]] = UNSEEN


def wanted(nodes: int, percentage: int | None) -> int:
    """Return how many feasible nodes are enough; 0 per cent: kube-scheduler's own choice by the number of nodes."""
    if percentage is None or percentage >= 100 or nodes < SMALLEST:
        return nodes
    percentage = percentage or max(5, 50 - nodes // 125)
    return max(SMALLEST, nodes * percentage // 100)


def by_turns(nodes: Nodes) -> Rows:
    """Return the positions of all nodes, one of each zone in turn, zones in the order in which they appear."""
    zone = np.zeros(len(nodes), np.int64)
    for keys in (REGIONS, ZONES):
        for key in keys:
            label = nodes.label(key)
            zone = zone * (label.size + 1) + label.codes
    _, first, number = np.unique(zone, return_index=True, return_inverse=True)
    appearance = first[number]
    grouped = np.argsort(appearance, kind="stable")
    starts = np.flatnonzero(np.diff(appearance[grouped], prepend=-1))
    turn = np.empty(len(nodes), np.int64)
    turn[grouped] = np.arange(len(nodes)) - np.repeat(starts, np.diff(starts, append=len(nodes)))
    return np.lexsort((appearance, turn))
