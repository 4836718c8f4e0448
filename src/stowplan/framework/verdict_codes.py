"""Verdicts as codes: each distinct verdict is stored once, and each node has the code of its verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from stowplan.columns.arrays import Bools, Ints, Rows
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.decision import FEASIBLE, UNRESOLVABLE, UNSCHEDULABLE, Reject, Verdict
from stowplan.framework.interfaces import FilterPlugin
from stowplan.framework.plugin_calls import checked_rows
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.errors import PluginError
from stowplan.objects.texts import shortened

Verdicts: TypeAlias = npt.NDArray[np.int32]
AskFilter: TypeAlias = Callable[[EnabledPlugin[FilterPlugin], Nodes], Iterable[Reject]]
MOST_REJECTIONS = 1000  # of one plugin for one pod: each missing resource is one
BITS = 40  # reasons that are told apart at a time; the other bits of an int64 number the rows told apart before


class VerdictCodes:
    """Distinct verdicts; the code of a verdict is its place in the list."""

    def __init__(self, verdicts: Iterable[Verdict] = ()) -> None:
        self.verdicts: list[Verdict] = list(verdicts)
        self._numbers: dict[Verdict, int] = {verdict: number for number, verdict in enumerate(self.verdicts)}

    def copy(self) -> VerdictCodes:
        """Return the same verdicts under the same codes, to be extended independently."""
        return VerdictCodes(self.verdicts)

    def number(self, verdict: Verdict) -> int:
        number = self._numbers.setdefault(verdict, len(self.verdicts))
        if number == len(self.verdicts):
            self.verdicts.append(verdict)
        return number

    def ask_in_order(self, filters: Iterable[EnabledPlugin[FilterPlugin]], nodes: Nodes, ask: AskFilter) -> Verdicts:
        """Ask every filter, in order, about the nodes that are left. Return the code of each node's verdict."""
        verdict_of: Verdicts = np.full(len(nodes), FEASIBLE, np.int32)
        left, rejected = nodes, None
        places: Rows | None = None  # the positions of the nodes that are left; None: no node was rejected yet
        for enabled in filters:
            if rejected is not None:
                passed = (~rejected).nonzero()[0]
                left, places = left.where(passed), passed if places is None else places[passed]
            if not len(left):
                break
            rejected = self.enter(enabled, ask(enabled, left), verdict_of, places)
        return verdict_of

    def enter(
        self, enabled: EnabledPlugin[FilterPlugin], rejects: Iterable[Reject], verdict_of: Verdicts, places: Rows | None
    ) -> Bools | None:
        """Record one plugin's rejections of the nodes at `places` (None: all). Return which were hit; None: no node."""
        size = len(verdict_of) if places is None else len(places)
        hits = [reject for reject in rejects if checked_rows(enabled, reject, size).any()]
        if not hits:
            return None
        if len(hits) > MOST_REJECTIONS:
            raise PluginError(
                enabled.name, "filter", f"gave {len(hits)} rejections; those of one reason belong together"
            )
        if len(hits) == 1:
            return self._enter_one(enabled.name, hits[0], verdict_of, places)
        patterns, hopeless = _patterns(hits), np.zeros(size, np.bool_)
        for reject in hits:
            if reject.resolvable is not True:
                hopeless |= reject.rows & ~np.asarray(reject.resolvable)
        for pattern in np.unique(patterns[patterns != 0]).tolist():
            row = int((patterns == pattern).argmax())  # any of the rows with these reasons
            reasons = tuple(shortened(reject.reason) for reject in hits if reject.rows[row])
            for code, is_hopeless in ((UNSCHEDULABLE, False), (UNRESOLVABLE, True)):
                these = ((patterns == pattern) & (hopeless == is_hopeless)).nonzero()[0]
                these = these if places is None else places[these]
                if len(these):
                    verdict_of[these] = self.number(Verdict(enabled.name, code, reasons))
        return np.asarray(patterns != 0)

    def _enter_one(self, plugin: str, reject: Reject, verdict_of: Verdicts, places: Rows | None) -> Bools:
        """Record one reason for all rejected nodes, which is what nearly every plugin gives."""
        rows, resolvable = reject.rows, reject.resolvable
        at = rows.nonzero()[0]  # positions index faster than a mask
        helps = np.broadcast_to(resolvable, len(rows))[at] if not isinstance(resolvable, bool) else None
        these, reasons = at if places is None else places[at], (shortened(reject.reason),)
        if helps is None or helps.all() or not helps.any():
            code = UNSCHEDULABLE if (resolvable if helps is None else helps.all()) else UNRESOLVABLE
            verdict_of[these] = self.number(Verdict(plugin, code, reasons))
        else:
            verdict_of[these[helps]] = self.number(Verdict(plugin, UNSCHEDULABLE, reasons))
            verdict_of[these[~helps]] = self.number(Verdict(plugin, UNRESOLVABLE, reasons))
        return rows


def _patterns(hits: Sequence[Reject]) -> Ints:
    """A number for each row: rows with the same number are rejected for the same reasons, those with 0 for none."""
    patterns = np.zeros(len(hits[0].rows), np.int64)
    for begin in range(0, len(hits), BITS):
        for bit, reject in enumerate(hits[begin : begin + BITS]):
            patterns |= reject.rows.astype(np.int64) << bit
        if begin + BITS < len(hits):
            _, numbers = np.unique(np.append(patterns, 0), return_inverse=True)  # none stays 0
            patterns = numbers[:-1].astype(np.int64) << BITS
    return patterns
