"""Predicate: a cluster may be chosen if any of the placement's predicates matches it.

A predicate matches if its label selector, its claim selector and all its CEL expressions do. Expressions are evaluated
once for each version of a cluster (and of the scores they read), however many placements have them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stowplan.cel.syntax import CelSyntaxError
from stowplan.columns.arrays import Bools, Rows
from stowplan.columns.fleet.clusters import CLAIMS, LABELS
from stowplan.framework.placement.choice import MISCONFIGURED, ClusterPluginStatus, PlacementQuestion
from stowplan.objects import selectors
from stowplan.objects.placements import Placement, RequiredClusterSelector
from stowplan.objects.selectors import Selector
from stowplan.plugins.clusters.cel_selector import CelExpressions, compiled


@dataclass(frozen=True, slots=True)
class CompiledPredicate:
    labels: Selector
    claims: Selector
    expressions: CelExpressions


class PredicatePlugin:
    name = "Predicate"

    def filter(self, question: PlacementQuestion, rows: Rows) -> Bools | ClusterPluginStatus:
        given = question.placement.spec.predicates
        found = np.zeros(len(rows), np.bool_)
        if not given or not len(rows):
            return ~found
        predicates = [_compile(index, each.required_cluster_selector) for index, each in enumerate(given)]
        for predicate in predicates:
            if isinstance(predicate, ClusterPluginStatus):
                return predicate
            found |= self._matches(question, rows, found, predicate)
        return found

    def _matches(self, question: PlacementQuestion, rows: Rows, known: Bools, predicate: CompiledPredicate) -> Bools:
        """Return which rows the predicate matches, of those that no other predicate is known to match."""
        fleet = question.fleet
        found = fleet.matching(LABELS, predicate.labels)[rows] & fleet.matching(CLAIMS, predicate.claims)[rows] & ~known
        if predicate.expressions:
            found[found] = predicate.expressions.matches(question, rows[found])
        return found

    def why(self, question: PlacementQuestion, row: int) -> str:
        """Return what fails of the predicate; or, if there are several, that none matches."""
        given = question.placement.spec.predicates
        if len(given) != 1:
            return f"none of the {len(given)} predicates matches"
        predicate = _compile(0, given[0].required_cluster_selector)
        assert not isinstance(predicate, ClusterPluginStatus), "a misconfigured predicate drops no cluster"
        if not question.fleet.matching(LABELS, predicate.labels)[row]:
            return "its labels do not match the labelSelector"
        if not question.fleet.matching(CLAIMS, predicate.claims)[row]:
            return "its claims do not match the claimSelector"
        return predicate.expressions.why(question, row)

    def reads(self, placement: Placement) -> frozenset[str] | None:
        """Return the score objects that expressions read; None: any."""
        names: set[str] = set()
        for index, each in enumerate(placement.spec.predicates):
            predicate = _compile(index, each.required_cluster_selector)
            if not isinstance(predicate, ClusterPluginStatus) and predicate.expressions:
                if predicate.expressions.resources is None:
                    return None
                names |= predicate.expressions.resources
        return frozenset(names)


def _compile(index: int, given: RequiredClusterSelector) -> CompiledPredicate | ClusterPluginStatus:
    """Compile the predicate of this index; or return what is wrong with it."""
    path = f"spec.predicates[{index}].requiredClusterSelector"
    for name, selector in (("labelSelector", given.label_selector), ("claimSelector", given.claim_selector.as_labels)):
        problem = selectors.problem(selector)
        if problem:
            remedy = "use In, NotIn, Exists or DoesNotExist, with valid keys and values"
            return ClusterPluginStatus(MISCONFIGURED, "Predicate", problem, f"{path}.{name}", remedy)
    try:
        expressions = compiled(given.cel_selector.cel_expressions)
    except CelSyntaxError as error:
        remedy = "write a CEL expression about managedCluster that is true or false"
        return ClusterPluginStatus(MISCONFIGURED, "Predicate", str(error), f"{path}.celSelector.celExpressions", remedy)
    labels = selectors.compile_selector(given.label_selector)
    claims = selectors.compile_selector(given.claim_selector.as_labels)
    assert labels is not None and claims is not None, "a selector without a problem compiles"
    return CompiledPredicate(labels, claims, expressions)
