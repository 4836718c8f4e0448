"""The scores that Placements use, so that a hub need not store unused scores."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from stowplan.objects.changes import Change, Put
from stowplan.objects.placements import ADD_ON, Placement


class Demand(msgspec.Struct, frozen=True):
    """Scores of one AddOnPlacementScore: named ones, or all."""

    names: frozenset[str] = frozenset()
    everything: bool = False

    def __contains__(self, score: object) -> bool:
        return self.everything or score in self.names

    def __bool__(self) -> bool:
        return self.everything or bool(self.names)


EVERYTHING = Demand(everything=True)


class ScoreDemand:
    """The scores of one resource name that Placements use, updated with each change."""

    def __init__(self, resource_name: str) -> None:
        self._name = resource_name
        self._in_cel = re.compile(rf"""\bscores\(\s*["']{re.escape(resource_name)}["']\s*\)""")
        self._by_placement: dict[str, Demand] = {}
        self.demand = Demand()

    def apply(self, changes: Iterable[Change]) -> bool:
        """Apply changes, and return whether the demand changed."""
        changed = False
        for change in changes:
            placement = change.object
            demand = self._of(placement) if isinstance(change, Put) and isinstance(placement, Placement) else Demand()
            if demand != self._by_placement.get(placement.key, Demand()):
                self._by_placement[placement.key] = demand
                changed = True
            if not demand:
                self._by_placement.pop(placement.key, None)
        before = self.demand
        if changed:
            self.demand = _union(self._by_placement.values())
        return self.demand != before

    def _of(self, placement: Placement) -> Demand:
        """The demand of one Placement: all scores if a CEL expression uses them, else the scores with a weight."""
        for predicate in placement.spec.predicates:
            expressions = predicate.required_cluster_selector.cel_selector.cel_expressions
            if any(self._in_cel.search(each) for each in expressions):
                return EVERYTHING
        configured = placement.spec.prioritizer_policy.configurations
        found = [each.coordinate for each in configured if each.weight]
        add_ons = [each.add_on for each in found if each is not None and each.type == ADD_ON and each.add_on]
        return Demand(frozenset(each.score_name for each in add_ons if each.resource_name == self._name))


def _union(demands: Iterable[Demand]) -> Demand:
    found = list(demands)
    return Demand(frozenset[str]().union(*(each.names for each in found)), any(each.everything for each in found))
