"""Candidates for preemption, and which of them does the least harm.

A dry run by arrays finds hundreds of candidates, of which one is wanted. So their preferences are an array, and a
`Candidate` is made only when somebody looks at it.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from typing import overload

import numpy as np

from stowplan.columns.arrays import Bools, Ints, Rows
from stowplan.columns.pods.ranked_pods import RankedBlock, microseconds
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import Candidate
from stowplan.objects.disruption import importance

KEYS = 5
NONE_BELOW = 2**31  # added to each priority, so that more victims are always worse than fewer


class UnmadeCandidates(Sequence[Candidate]):
    """Candidates that are made when somebody looks at them (`made`). `preferences` has a column for each."""

    preferences: Ints

    @overload
    def __getitem__(self, place: int) -> Candidate: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Candidate]: ...

    def __getitem__(self, place: int | slice) -> Candidate | Sequence[Candidate]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        return self.made(range(len(self))[place])

    @abstractmethod
    def made(self, place: int) -> Candidate:
        """Make the candidate at a place from 0 on."""


class ArrayCandidates(UnmadeCandidates):
    """Candidates among the rows of a block. `victims` marks the pods that must go, `turns` says in which order pods
    were added back, `violating` which of them a disruption budget protects.
    """

    def __init__(self, state: ClusterState, block: RankedBlock, victims: Bools, turns: Ints, violating: Bools) -> None:
        self._state, self._block, self._turns = state, block, turns
        self._chosen = victims.nonzero()[0]  # of each row the most important first
        at = block.at[self._chosen]
        self._begins = np.flatnonzero(np.diff(at, prepend=-1))
        self._rows = block.rows[at[self._begins]]
        self.preferences = np.zeros((KEYS, len(self._begins)), np.int64)
        if len(self._begins):
            tops = self._chosen[self._begins]
            self.preferences[0] = -np.add.reduceat(violating[self._chosen].astype(np.int64), self._begins)
            self.preferences[1] = -block.priority[tops]
            self.preferences[2] = -np.add.reduceat(block.priority[self._chosen] + NONE_BELOW, self._begins)
            self.preferences[3] = -np.diff(self._begins, append=len(self._chosen))
            self.preferences[4] = block.start[tops]

    def __len__(self) -> int:
        return len(self._begins)

    def made(self, place: int) -> Candidate:
        begin, number = int(self._begins[place]), -int(self.preferences[3, place])
        chosen = sorted(self._chosen[begin : begin + number].tolist(), key=self._turns.__getitem__)
        pods = sorted((self._block.pods[each].pod for each in chosen), key=importance)
        name = self._state.table.names[int(self._rows[place])]
        return Candidate(name, tuple(pods), -int(self.preferences[0, place]))


class Candidates(UnmadeCandidates):
    """The candidates of several batches of nodes."""

    def __init__(self, parts: Sequence[Sequence[Candidate]] = ()) -> None:
        self._parts: list[Sequence[Candidate]] = []
        self._ends: list[int] = []
        self.preferences = np.zeros((KEYS, 0), np.int64)
        for part in parts:
            self.add(part)

    def add(self, part: Sequence[Candidate]) -> None:
        if len(part):
            self._parts.append(part)
            self._ends.append((self._ends[-1] if self._ends else 0) + len(part))
            self.preferences = np.concatenate([self.preferences, preferences(part)], axis=1)

    def end(self, wanted: int) -> None:
        """Leave out those that are more than enough: the first ones are, if one of them violates no budget."""
        harmless = self.preferences[0] == 0
        if len(self) > wanted and harmless.any():
            self.preferences = self.preferences[:, : max(wanted, int(harmless.argmax()) + 1)]

    def enough(self, wanted: int) -> bool:
        return len(self) >= wanted and bool((self.preferences[0] == 0).any())

    def __len__(self) -> int:
        return int(self.preferences.shape[1])

    def made(self, place: int) -> Candidate:
        part = bisect_right(self._ends, place)
        return self._parts[part][place - (self._ends[part - 1] if part else 0)]


def preferences(candidates: Sequence[Candidate]) -> Ints:
    """Return a column of keys for each candidate; the largest, key by key, does the least harm."""
    if isinstance(candidates, UnmadeCandidates):
        return candidates.preferences
    return np.array([_preference(each) for each in candidates], np.int64).reshape(-1, KEYS).T


def best(candidates: Sequence[Candidate]) -> Rows:
    """Return the places of the candidates with the least harm, which kube-scheduler could pick: an exact tie."""
    keys = preferences(candidates)
    left = np.arange(keys.shape[1])
    for key in keys:
        values = key[left]
        left = left[values == values.max(initial=np.iinfo(np.int64).min)]
    return left


def _preference(candidate: Candidate) -> tuple[int, ...]:
    """Return a key for the maximum: fewest budget violations, lowest highest priority, lowest sum of priorities, fewest
    victims, latest start of the victims with the highest priority.
    """
    priorities = [pod.priority for pod in candidate.victims]
    top = [pod for pod in candidate.victims if pod.priority == max(priorities)]
    earliest = min(microseconds(pod) for pod in top)
    total = sum(priority + NONE_BELOW for priority in priorities)
    return -candidate.violations, -max(priorities), -total, -len(priorities), earliest
