"""Proposals, and the search for the smallest set of them that helps: one first, then pairs, then triples.

A proposal is one change that may help, at its largest: "label these five clusters". The search makes what helps
smaller: fewer proposals, fewer items of each, smaller amounts, until each step less no longer helps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from stowplan.diagnosis.edits import Edit, Edits, Fits, minimal

MOST_CHANGES = 3


@dataclass(frozen=True, slots=True)
class Proposal:
    """`make` returns the edit for some of the `items`; the more items, the larger the change."""

    make: Callable[[tuple[Any, ...]], Edit]
    items: tuple[Any, ...] = ()

    @property
    def edit(self) -> Edit:
        return self.make(self.items)


def proposal(edit: Edit) -> Proposal:
    """Return a proposal of one edit as it is."""
    return Proposal(lambda _: edit)


class _EnoughError(Exception):
    """The search has tried as often as it may."""


class ProposalSearch:
    """`fits` says whether edits help. `bounded` says afterwards what was not searched; "" if everything was."""

    def __init__(self, fits: Fits, most_tries: int, most_found: int = 12) -> None:
        self._fits, self._left, self._most_found = fits, most_tries, most_found
        self._tries = most_tries
        self.found: list[Edits] = []
        self.bounded = ""

    def run(
        self, proposals: Sequence[Proposal], together: Sequence[Proposal] = (), most_changes: int = MOST_CHANGES
    ) -> list[Edits]:
        """Return the sets of edits that help: all single ones; if there is none, pairs; if there is none, triples.

        If there is none of these, either: those `together`, made at once, without those that are not needed. One of
        them may be in the way of all others (a set that is broken, say), so that each is left out once.
        """
        try:
            for number in range(1, most_changes + 1):
                for chosen in combinations(proposals, number):
                    self._try(chosen)
                if self.found:
                    return self.found
        except _EnoughError:
            self.bounded = f"the search stopped after {self._tries} tries"
        if together and not self.found:
            self._left = self._tries
            self._try_together(together)
        return self.found

    def _try_together(self, proposals: Sequence[Proposal]) -> None:
        try:
            self._try(proposals)
            for left_out in proposals:
                if self.found:
                    return
                self._try([each for each in proposals if each is not left_out])
        except _EnoughError:
            self.bounded = f"the search stopped after {self._tries} tries"

    def _try(self, chosen: Sequence[Proposal]) -> None:
        if len(self.found) >= self._most_found and len(chosen) > 1:
            return
        if self.fits([each.edit for each in chosen]):
            smallest = self._smallest(list(chosen))
            if all(_changes(smallest) != _changes(known) for known in self.found):
                self.found.append(smallest)

    def fits(self, edits: Sequence[Edit]) -> bool:
        if self._left <= 0:
            raise _EnoughError
        self._left -= 1
        return self._fits(edits)

    def _smallest(self, chosen: list[Proposal]) -> Edits:
        for each in list(chosen):
            without = [other for other in chosen if other is not each]
            if without and self.fits([other.edit for other in without]):
                chosen = without
        for place, each in enumerate(chosen):
            if len(each.items) > 1:
                chosen[place] = self._fewer(chosen, place)
        return minimal(tuple(each.edit for each in chosen), self.fits)

    def _fewer(self, chosen: list[Proposal], place: int) -> Proposal:
        """Return the proposal with as few items as it needs: none of them can be left out."""
        whole = chosen[place]

        def enough(items: tuple[Any, ...]) -> bool:
            edits = [whole.make(items) if other is whole else other.edit for other in chosen]
            return bool(items) and self.fits(edits)

        items = fewest(whole.items, enough)
        return Proposal(whole.make, items)


def fewest(items: tuple[Any, ...], enough: Callable[[tuple[Any, ...]], bool]) -> tuple[Any, ...]:
    """Return some of the items that are enough, of which none can be left out. All of them are enough."""
    low, high = 0, len(items)  # so few are not enough; so many are
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(items[:middle]) else (middle, high)
    kept = items[:high]
    for each in kept[::-1]:
        left = tuple(other for other in kept if other is not each)
        if left and enough(left):
            kept = left
    return kept


def _changes(edits: Edits) -> list[Any]:
    return [edit.changes for edit in edits]
