"""Affinity terms added up by sort and topology key: how many pods of a row have such a term, and with which weight."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from stowplan.columns.tally import Tally
from stowplan.objects.affinity import AffinityTerm, WeightedTerm
from stowplan.objects.shape import Use


class CarriedSum(NamedTuple):
    """Terms of one topology key: the pods that have one (twice, if a pod has two), and the weights, per row.

    `weights` are to be multiplied by `factor`. A required term has the weight 1.
    """

    topology_key: str
    pods: Tally
    weights: Tally
    factor: int


class CarriedSums:
    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums: dict[str, dict[str, CarriedSum]] = {}  # by sort and topology key

    def __bool__(self) -> bool:
        return any(self._sums.values())

    def of(self, sort: str) -> Iterable[CarriedSum]:
        return self._sums.get(sort, {}).values()

    def add(self, use: Use, row: int, amount: int, capacity: int) -> None:
        """Count so many more (or fewer) pods of a row that have a term."""
        sort, key = str(use[0]), term_of(use).topology_key
        found = self._sum(sort, key, weighted=isinstance(use[1], WeightedTerm))
        found.pods.add(row, amount, capacity)
        if found.weights is not found.pods:
            found.weights.add(row, amount * weight_of(use), capacity)
        if amount < 0 and found.pods.empty:
            del self._sums[sort][key]

    def add_all(self, others: CarriedSums, capacity: int) -> None:
        for sort, by_key in others._sums.items():
            for key, other in by_key.items():
                found = self._sum(sort, key, weighted=other.weights is not other.pods)
                found.pods.add_all(other.pods, capacity)
                if found.weights is not found.pods:
                    found.weights.add_all(other.weights, capacity)

    def _sum(self, sort: str, key: str, *, weighted: bool) -> CarriedSum:
        by_key = self._sums.setdefault(sort, {})
        found = by_key.get(key)
        if found is None:
            pods = Tally()
            found = by_key[key] = CarriedSum(key, pods, Tally() if weighted else pods, 1)
        return found


def term_of(use: Use) -> AffinityTerm:
    """Return the term of a use that is an affinity term."""
    carried = use[1]
    if isinstance(carried, WeightedTerm):
        return carried.term
    assert isinstance(carried, AffinityTerm)
    return carried


def weight_of(use: Use) -> int:
    carried = use[1]
    return carried.weight if isinstance(carried, WeightedTerm) else 1
