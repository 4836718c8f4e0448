"""What the pods on nodes use and others may ask about: ports, claims, disks, and the affinity terms that pods have.

A use is a tuple that begins with its sort (`Shape.uses`, `Shape.port_uses`). Each use has a tally: how many pods have
it, per row. Which affinity terms match an incoming pod is found in `carried_terms`.
"""

from __future__ import annotations

from collections.abc import Callable

from stowplan.columns.pods.carried_terms import CarriedTerms
from stowplan.columns.rows import NamedRows
from stowplan.columns.tally import Tally
from stowplan.objects.shape import PREFERRED, REQUIRED, REQUIRED_ANTI, Shape, Use

TERMS = (REQUIRED_ANTI, REQUIRED, PREFERRED)  # the sorts of uses that are affinity terms


class Uses:
    def __init__(self, rows: NamedRows, journaled: Callable[[Callable[[], object]], None]) -> None:
        """`journaled` records how to undo a change that a trial made."""
        self.tallies: dict[Use, Tally] = {}
        self.terms = CarriedTerms()
        self._rows, self._journaled = rows, journaled

    def add(self, use: Use, row: int, amount: int) -> None:
        """Count so many more (or fewer) pods with a use on a row."""
        tally = self.tallies.get(use)
        if tally is None:
            tally = self.tallies[use] = Tally()
            if use[0] in TERMS:
                self.terms.put(use, tally)
        tally.add(row, amount, self._rows.capacity)
        if use[0] in TERMS:
            self.terms.changed(use, row, amount, self._rows.capacity)
        if amount < 0 and tally.empty:
            del self.tallies[use]
            if use[0] in TERMS:
                self.terms.drop(use)

    def add_ports(self, shape: Shape, row: int, sign: int, *, as_set: bool) -> None:
        """Take (+1) or release (-1) a pod's host ports.

        kube-scheduler keeps the ports of a node as a set: if two pods hold the same port, its dry runs find the port
        free as soon as one of them is removed. Dry runs (`as_set`) do the same here.
        """
        for use, under_any in shape.port_uses:
            held = self.tallies[use].count(row) if as_set and use in self.tallies else 0
            change = sign if not as_set else int(not held) if sign > 0 else -held
            if change:
                self._add_port(use, under_any, row, change)

    def _add_port(self, use: Use, under_any: Use, row: int, change: int) -> None:
        self.add(use, row, change)
        self.add(under_any, row, change)
        self._journaled(lambda: self._add_port(use, under_any, row, -change))
