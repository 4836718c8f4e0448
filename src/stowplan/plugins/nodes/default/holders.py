"""The pods on nodes that hold what another pod wants: a port, a disk, a claim."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stowplan.columns.arrays import Bools, Rows
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.tally import Tally
from stowplan.framework.cause_texts import MOST_LISTED
from stowplan.objects.shape import Shape, Use


def holders(nodes: Nodes, uses: Iterable[Use]) -> tuple[Bools, int, list[str]]:
    """Return the nodes where pods have one of these uses, how many pods that are, and namespace/name of the first."""
    wanted = list(uses)
    tallies = [tally for use in wanted if (tally := nodes.used(use)) is not None]
    counts = sum((nodes.counts_of(tally) for tally in tallies), start=np.zeros(len(nodes), np.int64))
    rows: Bools = counts > 0
    found = first_pods(nodes.cluster, nodes.rows[rows], *wanted)
    return rows, len(found) if len(found) < MOST_LISTED else int(counts.sum()), found


def first_pods(cluster: Cluster, rows: Rows, *uses: Use) -> list[str]:
    """Return namespace/name of the first pods on these rows of the table that have one of these uses."""
    found: list[str] = []
    for row in rows.tolist():
        there = cluster.state.pods_on[row].values()
        found += [placed.pod.key for placed in there if not _uses(placed.shape).isdisjoint(uses)]
        if len(found) >= MOST_LISTED:
            break
    return found[:MOST_LISTED]


def rows_of(tally: Tally) -> Rows:
    """Return the rows with a count, in the order of nodes."""
    return np.sort(tally.sparse()[0])


def _uses(shape: Shape) -> set[Use]:
    return {*shape.uses, *(use for pair in shape.port_uses for use in pair)}
