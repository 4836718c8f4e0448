"""How far to look for nodes: the nominated one first, then round the cluster until enough were found.

Stowplan looks at all nodes unless `percentageOfNodesToScore` says otherwise. Then it stops after so many feasible ones
and starts the next search where this one ended, so that all nodes have their turn; zones are visited by turns.
"""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.profile import Profile
from stowplan.framework.verdict import FEASIBLE, UNSEEN
from stowplan.framework.verdict_codes import Verdicts

SMALLEST = 100  # fewer nodes than this are always all looked at
REGIONS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
ZONES = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


class NodeSearch:
    """Where the last search ended. One for all profiles of a scheduler."""

    def __init__(self) -> None:
        self._start = 0

    def stop(self, nodes: Nodes, verdict_of: Verdicts, profile: Profile) -> None:
        """Leave out the nodes that need not be looked at any more, since enough feasible ones came before."""
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
    """How many feasible nodes are enough; 0 per cent means kube-scheduler's own choice by the cluster's size."""
    if percentage is None or percentage >= 100 or nodes < SMALLEST:
        return nodes
    percentage = percentage or max(5, 50 - nodes // 125)
    return max(SMALLEST, nodes * percentage // 100)


def by_turns(nodes: Nodes) -> Rows:
    """Positions of all nodes, one of each zone at a time, zones in the order in which they appear."""
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
