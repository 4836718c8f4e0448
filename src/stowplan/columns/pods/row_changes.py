"""Pods that are gone from many rows, or come to them, as a what-if that does not change the state.

Each row is a what-if of its own: how would its counts change, if its own pods alone came and went? So filters that look
at other nodes can judge many nodes at once (`filter_what_if` in `framework/what_if.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from stowplan.columns.arrays import Ints, Rows
from stowplan.columns.pods.carried_sums import term_of
from stowplan.columns.pods.match_counts import LabelSet, Settled
from stowplan.columns.pods.ranked_pods import RankedBlock
from stowplan.objects.affinity import PodQuery
from stowplan.objects.pods import Pod
from stowplan.objects.shape import Shape

if TYPE_CHECKING:
    from stowplan.columns.state import ClusterState


Weights: TypeAlias = tuple[Ints, Ints]  # of each leaving and of each coming pod


class RowChanges:
    """What changes for one incoming pod. `leaving`: pods of rows; `coming`: pods, with the place of their row there.

    `gone` is 1 for each leaving pod that is gone now, and 0 for the others; `come` is the same for coming pods. Both
    may be changed from one question to the next.
    """

    def __init__(
        self,
        state: ClusterState,
        pod: Pod,
        leaving: RankedBlock,
        coming: tuple[Ints, Sequence[Pod]],
    ) -> None:
        self._state, self._pod, self._size = state, pod, len(leaving.rows)
        self._place = np.zeros(state.table.capacity, np.int64)
        self._place[leaving.rows] = np.arange(self._size)
        self._leaving, self._coming = leaving, coming
        self.gone = np.zeros(len(leaving), np.int64)
        self.come = np.zeros(len(coming[0]), np.int64)
        self._matching: dict[tuple[tuple[PodQuery, ...], Settled], Weights] = {}
        self._terms: dict[str, dict[str, Weights]] = {}  # by sort and topology key
        self._labels = [LabelSet(other.namespace, other.labels, other.of_daemon_set) for other in coming[1]]

    def count(self, rows: Rows, *queries: PodQuery, settled: Settled = False) -> Ints:
        """Return by how much the number of pods that match all of these queries changes, for each of these rows.

        As in any dry run of kube-scheduler, pods count that `settled` would leave out otherwise.
        """
        found = self._matching.get((queries, settled))
        if found is None:
            self._state.count(*queries, settled=settled)
            counter, _ = self._state.match_counts.ask(queries, settled, self._state.table.capacity)
            leaving, coming = self._leaving.pods, self._labels
            matching = {labels: counter.matches(labels) for labels in {placed.labels for placed in leaving}}
            found = self._matching[queries, settled] = (
                np.fromiter((matching[placed.labels] for placed in leaving), np.int64, len(leaving)),
                np.fromiter((counter.matches(labels) for labels in coming), np.int64, len(coming)),
            )
        return self._changes(found)[self._place[rows]]

    def carried(self, rows: Rows, sort: str) -> dict[str, Ints]:
        """Return by how much the number of terms of a sort that match the incoming pod changes, by topology key."""
        found = self._terms.get(sort)
        if found is None:
            found = self._terms[sort] = self._term_weights(sort)
        places = self._place[rows]
        return {key: self._changes(weights)[places] for key, weights in found.items()}

    def _term_weights(self, sort: str) -> dict[str, Weights]:
        pod, namespace = self._pod, self._state.labels_of(self._pod.namespace)
        by_shape: dict[Shape, Counter[str]] = {}

        def matching(shape: Shape) -> Counter[str]:
            found = by_shape.get(shape)
            if found is None:
                terms = (term_of(use) for use in shape.uses if use[0] == sort)
                matched = (each for each in terms if each.matches(pod.namespace, namespace, pod.labels))
                found = by_shape[shape] = Counter(each.topology_key for each in matched)
            return found

        leaving = [matching(placed.shape) for placed in self._leaving.pods]
        coming = [matching(other.shape) for other in self._coming[1]]
        return {
            key: (
                np.fromiter((found[key] for found in leaving), np.int64, len(leaving)),
                np.fromiter((found[key] for found in coming), np.int64, len(coming)),
            )
            for key in sorted({key for found in by_shape.values() for key in found})
        }

    def _changes(self, weights: Weights) -> Ints:
        """Return the change of each row, by its place."""
        more = np.bincount(self._coming[0], weights[1] * self.come, self._size)
        fewer = np.bincount(self._leaving.at, weights[0] * self.gone, self._size)
        return (more - fewer).astype(np.int64)
