"""The pods of each row as arrays, the most important first: for dry runs of evictions on many nodes at once.

A row's arrays are made for the first question about it, and forgotten when a pod comes, goes or changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stowplan.columns.arrays import Ints, Rows
from stowplan.objects.disruption import importance, started
from stowplan.objects.pods import Pod

if TYPE_CHECKING:
    from stowplan.columns.state import PlacedPod

PRIORITY, START = 0, 1  # lines of the arrays; the following are USUAL amounts, then PRESUMED ones
USUAL, PRESUMED = ("pods", "cpu", "memory", "ephemeral-storage"), ("cpu", "memory")
LINES = 2 + len(USUAL) + len(PRESUMED)
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class RankedRow(NamedTuple):
    """The pods of a row, a column of `lines` for each, and what they take besides the usual resources."""

    pods: tuple[PlacedPod, ...]
    lines: Ints
    unusual: Mapping[str, Ints]


class RankedBlock:
    """Pods of some rows, one row after the other.

    rows      the rows, in ascending order, each with a pod
    number    how many pods each row has
    at        the place of each pod's row in `rows`
    amounts   what each pod takes, by resource; resources that none takes are left out
    presumed  the same of cpu and memory, with defaults for missing requests
    """

    def __init__(self, ranked: Sequence[RankedRow], rows: Rows, priority: int) -> None:
        lengths = np.array([len(each.pods) for each in ranked], np.int64)
        lines = np.concatenate([each.lines for each in ranked], axis=1) if ranked else np.zeros((LINES, 0), np.int64)
        at = np.repeat(np.arange(len(ranked)), lengths)
        lower = lines[PRIORITY] < priority
        self._ranked, self._kept = ranked, None if lower.all() else lower.nonzero()[0]
        amounts = {name: lines[2 + number] for number, name in enumerate(USUAL)}
        amounts.update(self._unusual(lengths))
        if self._kept is not None:
            at, lines = at[self._kept], lines[:, self._kept]
            amounts = {name: column[self._kept] for name, column in amounts.items()}
        number = np.bincount(at, minlength=len(ranked))
        some = number > 0
        self.rows, self.number, self.at = rows[some], number[some], (some.cumsum() - 1)[at]
        self.priority, self.start = lines[PRIORITY], lines[START]
        self.presumed = dict(zip(PRESUMED, lines[2 + len(USUAL) :], strict=True))
        self.amounts = {name: column for name, column in amounts.items() if column.any()}

    def __len__(self) -> int:
        return len(self.at)

    def _unusual(self, lengths: Ints) -> dict[str, Ints]:
        amounts: dict[str, Ints] = {}
        begin = 0
        for each, length in zip(self._ranked, lengths.tolist(), strict=True):
            for name, column in each.unusual.items():
                if name not in amounts:
                    amounts[name] = np.zeros(int(lengths.sum()), np.int64)
                amounts[name][begin : begin + length] = column
            begin += length
        return amounts

    @cached_property
    def pods(self) -> list[PlacedPod]:
        pods = [placed for each in self._ranked for placed in each.pods]
        return pods if self._kept is None else [pods[place] for place in self._kept.tolist()]


class RankedPods:
    def __init__(self, pods_on: Sequence[Mapping[str, PlacedPod]]) -> None:
        self._pods_on = pods_on
        self._rows: dict[int, RankedRow] = {}

    def forget(self, row: int) -> None:
        """A pod of this row came, went or changed."""
        self._rows.pop(row, None)

    def below(self, rows: Rows, priority: int) -> RankedBlock:
        """Return the pods of these rows with a lower priority, each row's most important first."""
        known = self._rows.get
        return RankedBlock([known(row) or self._rank(row) for row in rows.tolist()], rows, priority)

    def _rank(self, row: int) -> RankedRow:
        pods = sorted(self._pods_on[row].values(), key=lambda placed: (importance(placed.pod), placed.pod.uid))
        lines = np.zeros((LINES, len(pods)), np.int64)
        unusual: dict[str, Ints] = {}
        for index, placed in enumerate(pods):
            taken = dict(placed.shape.taken)
            usual = [taken.pop(name, 0) for name in USUAL]
            lines[:, index] = (placed.pod.priority, microseconds(placed.pod), *usual, *placed.shape.presumed)
            for name, amount in taken.items():
                if name not in unusual:
                    unusual[name] = np.zeros(len(pods), np.int64)
                unusual[name][index] = amount
        ranked = self._rows[row] = RankedRow(tuple(pods), lines, unusual)
        return ranked


def microseconds(pod: Pod) -> int:
    """When the pod started, as a number: later is more."""
    return (started(pod) - EPOCH) // MICROSECOND
