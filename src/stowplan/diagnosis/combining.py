"""Which edits help together: for every node the offers of all plugins that reject it, the fewest changes first.

Nodes that the same plugins reject, and that need the same changes, are one group; of each group one node is looked at:
the one that needs the smallest change. Nothing here loops over nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import numpy as np

from stowplan.columns.arrays import Ints
from stowplan.diagnosis.case import IMPOSSIBLE, Case, Offer, combined
from stowplan.diagnosis.edits import Edits, distinct

MOST_GROUPS = 16  # of nodes that the same plugins reject
MOST_ALIKE = 4  # groups of nodes that need the same changes, for each set of offers
MOST_SETS = 256  # of offers, for each group


class Combinations:
    """The sets of offers that could help, by their number of changes."""

    def __init__(self, case: Case, offers: Iterable[Offer], only: int | None = None) -> None:
        """`only`: the position of the one node that is to be opened; None: any."""
        self.case, self._only = case, only
        self.offers: dict[str, list[Offer]] = {name: [] for name in case.rejected}
        for offer in offers:
            self.offers[offer.plugin].append(offer)
        self.cut = False  # something was left out because of a bound

    def fewest(self, *, own: bool) -> Ints:
        """Return for each node the fewest changes with which all plugins accept it."""
        total = np.zeros(len(self.case.nodes), np.int64)
        for name, rejected in self.case.rejected.items():
            steps = [offer.steps for offer in self.offers[name] if offer.own or not own]
            total += np.min(steps, axis=0) if steps else np.where(rejected, IMPOSSIBLE, 0)
        if self._only is not None:
            total[np.arange(len(total)) != self._only] = IMPOSSIBLE
        return np.where(total == 0, IMPOSSIBLE, total)  # nothing rejects it: then there is nothing to change

    def of(self, changes: int, *, own: bool) -> Iterator[Edits]:
        """Yield sets of edits with so many changes, each for one node of a group."""
        near = np.flatnonzero(self.fewest(own=own) <= changes)
        rejected = self.case.rejected
        if not len(near) or not rejected:
            return
        kinds = combined(*(rows[near] for rows in rejected.values()))
        numbers, counts = np.unique(kinds, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        self.cut |= len(order) > MOST_GROUPS
        for number in numbers[order[:MOST_GROUPS]].tolist():
            group = near[kinds == number]
            names = [name for name, rows in rejected.items() if rows[group[0]]]
            yield from self._of_group(group, names, changes, own)

    def _of_group(self, group: Ints, names: Sequence[str], changes: int, own: bool) -> Iterator[Edits]:
        """Yield the sets for nodes that the same plugins reject."""
        choices = [
            [offer for offer in self.offers[name] if (offer.own or not own) and (offer.steps[group] <= changes).any()]
            for name in names
        ]
        for place, chosen in enumerate(product(*choices)):
            if place >= MOST_SETS:
                self.cut = True
                return
            total = sum((offer.steps[group] for offer in chosen), np.zeros(len(group), np.int64))
            rows = group[total == changes]
            if len(rows):
                for at in self._picked(rows, chosen):
                    yield distinct([edit for offer in chosen for edit in offer.edits(at)])

    def _picked(self, rows: Ints, chosen: Sequence[Offer]) -> list[int]:
        """Return one node for each way to change things: the one that needs the least."""
        codes = [offer.alike[rows] for offer in chosen if offer.alike is not None]
        kinds = combined(*codes) if codes else np.zeros(len(rows), np.int64)
        weight = np.zeros(len(rows))
        for offer in chosen:
            if offer.weight is not None:
                weight = weight + offer.weight[rows]
        order = np.lexsort((rows, weight))
        _, first = np.unique(kinds[order], return_index=True)
        best = order[np.sort(first)]
        self.cut |= len(best) > MOST_ALIKE
        picked: list[int] = rows[best[:MOST_ALIKE]].tolist()
        return picked
