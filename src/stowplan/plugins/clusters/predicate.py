"""Predicate: a cluster may be chosen if any of the placement's predicates holds; all that one says must hold.

Labels, claims, and CEL expressions about the whole cluster and its scores. Expressions run once for each version of a
cluster (and of its scores, if they ask for them), however many placements have them.
"""

from __future__ import annotations

import numpy as np

from stowplan.cel.syntax import CelSyntaxError
from stowplan.columns.arrays import Bools, Rows
from stowplan.columns.fleet.clusters import CLAIMS, LABELS
from stowplan.framework.placement.decision import MISCONFIGURED, PlacementQuestion, PluginStatus
from stowplan.objects import selectors
from stowplan.objects.placements import Placement, RequiredClusterSelector
from stowplan.objects.selectors import Selector
from stowplan.plugins.clusters.cel_selector import CelExpressions, compiled


class PredicatePlugin:
    name = "Predicate"

    def filter(self, asked: PlacementQuestion, rows: Rows) -> Bools | PluginStatus:
        given = asked.placement.spec.predicates
        found = np.zeros(len(rows), np.bool_)
        if not given or not len(rows):
            return ~found
        wanted = [_part(index, each.required_cluster_selector) for index, each in enumerate(given)]
        for part in wanted:
            if isinstance(part, PluginStatus):
                return part
            found |= self._holds(asked, rows, found, part)
        return found

    def _holds(
        self, asked: PlacementQuestion, rows: Rows, decided: Bools, part: tuple[Selector, Selector, CelExpressions]
    ) -> Bools:
        labels, claims, expressions = part
        fleet = asked.fleet
        fine = fleet.matching(LABELS, labels)[rows] & fleet.matching(CLAIMS, claims)[rows] & ~decided
        if expressions:
            fine[fine] = expressions.matches(asked, rows[fine])
        return fine

    def why(self, asked: PlacementQuestion, row: int) -> str:
        """What fails of the one predicate, or that none of several holds."""
        given = asked.placement.spec.predicates
        if len(given) != 1:
            return f"none of the {len(given)} predicates holds"
        part = _part(0, given[0].required_cluster_selector)
        assert not isinstance(part, PluginStatus), "or nobody would have been dropped"
        if not asked.fleet.matching(LABELS, part[0])[row]:
            return "its labels do not match the labelSelector"
        if not asked.fleet.matching(CLAIMS, part[1])[row]:
            return "its claims do not match the claimSelector"
        return part[2].why(asked, row)

    def reads(self, placement: Placement) -> frozenset[str] | None:
        """The score objects that expressions ask for; None: any."""
        names: set[str] = set()
        for index, each in enumerate(placement.spec.predicates):
            part = _part(index, each.required_cluster_selector)
            if not isinstance(part, PluginStatus) and part[2]:
                if part[2].resources is None:
                    return None
                names |= part[2].resources
        return frozenset(names)


def _part(index: int, given: RequiredClusterSelector) -> tuple[Selector, Selector, CelExpressions] | PluginStatus:
    path = f"spec.predicates[{index}].requiredClusterSelector"
    for name, selector in (("labelSelector", given.label_selector), ("claimSelector", given.claim_selector.as_labels)):
        problem = selectors.problem(selector)
        if problem:
            remedy = "In, NotIn, Exists and DoesNotExist, with valid keys and values, are right"
            return PluginStatus(MISCONFIGURED, "Predicate", problem, f"{path}.{name}", remedy)
    try:
        expressions = compiled(given.cel_selector.cel_expressions)
    except CelSyntaxError as error:
        remedy = "write a CEL expression about managedCluster that is true or false"
        return PluginStatus(MISCONFIGURED, "Predicate", str(error), f"{path}.celSelector.celExpressions", remedy)
    labels = selectors.compile_selector(given.label_selector)
    claims = selectors.compile_selector(given.claim_selector.as_labels)
    assert labels is not None and claims is not None, "a selector without a problem compiles"
    return labels, claims, expressions
