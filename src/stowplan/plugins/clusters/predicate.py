"""Predicate: a cluster may be chosen if any of the placement's predicates matches it.

A predicate matches if its label selector, its claim selector and all its CEL expressions do. Expressions are evaluated
once for each version of a cluster (and of the scores they read), however many placements have them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.cel.syntax import CelSyntaxError
from stowplan.columns.arrays import Bools
from stowplan.columns.fleet.clusters import CLAIMS, LABELS
from stowplan.columns.fleet.one_cluster import WHOLE, OneCluster
from stowplan.columns.fleet.views import Clusters
from stowplan.framework.cause_texts import condition
from stowplan.framework.causes import Cause, Detail
from stowplan.framework.decision import Reject
from stowplan.framework.placement.interfaces import Misconfigured
from stowplan.objects import selector_errors, selectors
from stowplan.objects.placements import Placement, RequiredClusterSelector
from stowplan.objects.selectors import Selector
from stowplan.plugins.clusters.cel_selector import CelExpressions, CelWork, compiled

CHEAPER = "write an expression that makes no large values and no nested loops"
MOST_TEXT = 1 << 16  # characters of all expressions of a placement


@dataclass(frozen=True, slots=True)
class CompiledPredicate:
    labels: Selector
    claims: Selector
    expressions: CelExpressions


class PredicatePlugin:
    def filter(self, placement: Placement, clusters: Clusters) -> Iterator[Reject | Misconfigured]:
        if not placement.spec.predicates:
            return
        predicates = _compile_all(placement)
        found, work = np.zeros(len(clusters), np.bool_), CelWork()
        for predicate in predicates:
            if isinstance(predicate, Misconfigured):
                yield predicate
                return
            found |= self._matches(clusters, found, predicate, work)
        if not clusters.fleet.ocm and (problem := _set_aside(predicates, clusters.fleet.now)) is not None:
            yield problem
            return
        yield Reject(~found, "no predicate matches")

    def _matches(self, clusters: Clusters, known: Bools, predicate: CompiledPredicate, work: CelWork) -> Bools:
        """Return which clusters the predicate matches, of those that no other predicate is known to match."""
        found: Bools = clusters.matching(predicate.labels) & clusters.matching_claims(predicate.claims) & ~known
        if predicate.expressions:
            found[found] = predicate.expressions.matches(clusters.fleet, clusters.rows[found], work)
        return found

    def why(self, placement: Placement, cluster: OneCluster) -> str:
        """Return what fails of the predicate; or, if there are several, that none matches."""
        given = placement.spec.predicates
        if len(given) != 1:
            return f"none of the {len(given)} predicates matches"
        predicate = _compile(0, given[0].required_cluster_selector)
        assert not isinstance(predicate, Misconfigured), "a misconfigured predicate drops no cluster"
        table = cluster.fleet.table
        if not table.matching(LABELS, predicate.labels)[cluster.row]:
            return "its labels do not match the labelSelector"
        if not table.matching(CLAIMS, predicate.claims)[cluster.row]:
            return "its claims do not match the claimSelector"
        return predicate.expressions.why(cluster)

    def causes_of(self, placement: Placement, cluster: OneCluster) -> Iterator[Cause]:
        """Yield every condition of every predicate that the cluster does not meet."""
        given = placement.spec.predicates
        for index, predicate in enumerate(_compile_all(placement)):
            if isinstance(predicate, Misconfigured):
                continue
            which = f"predicate {index + 1}: " if len(given) > 1 else ""
            for kind, selector, found in (
                ("label", predicate.labels, cluster.labels),
                ("claim", predicate.claims, cluster.claims),
            ):
                for wanted in selector:
                    if not wanted.matches(found):
                        value = found.get(wanted.key)
                        has = "it has no such " + kind if value is None else f"it has {value}"
                        details: dict[str, Detail] = {"predicate": index, "key": wanted.key, "found": value}
                        details["wanted"] = condition(wanted)
                        yield Cause(f"predicate-{kind}", f"{which}{kind} {condition(wanted)}: {has}", details)
            failing = predicate.expressions.why(cluster)
            if failing:
                details = {"predicate": index, "expression": failing}
                yield Cause("predicate-expression", f"{which}expression {failing}", details)

    def depends_on(self, placement: Placement) -> Iterator[Hashable]:
        """Yield what predicates read; the whole object if they have expressions, and the scores that these read."""
        for each in placement.spec.predicates:
            given = each.required_cluster_selector
            if given.label_selector.match_labels or given.label_selector.match_expressions:
                yield LABELS
            if given.claim_selector.match_expressions:
                yield CLAIMS
            if given.cel_selector.cel_expressions:
                yield WHOLE
        for predicate in _compile_all(placement):
            if not isinstance(predicate, Misconfigured) and predicate.expressions:
                resources = predicate.expressions.resources
                yield from (("scores", name) for name in (("",) if resources is None else resources))


def _set_aside(predicates: Sequence[CompiledPredicate | Misconfigured], now: float) -> Misconfigured | None:
    """Return what is wrong with a predicate that has an expression which is set aside."""
    for index, predicate in enumerate(predicates):
        if isinstance(predicate, CompiledPredicate) and (problem := predicate.expressions.set_aside(now)):
            return Misconfigured(problem, f"{_path(index)}.celSelector.celExpressions", CHEAPER)
    return None


def _path(index: int) -> str:
    return f"spec.predicates[{index}].requiredClusterSelector"


def _compile_all(placement: Placement) -> list[CompiledPredicate | Misconfigured]:
    given = [each.required_cluster_selector for each in placement.spec.predicates]
    length = sum(len(text) for each in given for text in each.cel_selector.cel_expressions)
    if length > MOST_TEXT:
        problem = f"all CEL expressions together have {length} characters; {MOST_TEXT} are the most"
        return [Misconfigured(problem, "spec.predicates", "write fewer or shorter expressions")]
    return [_compile(index, each) for index, each in enumerate(given)]


def _compile(index: int, given: RequiredClusterSelector) -> CompiledPredicate | Misconfigured:
    """Compile the predicate of this index; or return what is wrong with it."""
    path = _path(index)
    for name, selector in (("labelSelector", given.label_selector), ("claimSelector", given.claim_selector.as_labels)):
        problem = selector_errors.problem(selector)
        if problem:
            remedy = "use In, NotIn, Exists or DoesNotExist, with valid keys and values"
            return Misconfigured(problem, f"{path}.{name}", remedy)
    try:
        expressions = compiled(given.cel_selector.cel_expressions)
    except CelSyntaxError as error:
        remedy = "write a CEL expression about managedCluster that is true or false"
        return Misconfigured(str(error), f"{path}.celSelector.celExpressions", remedy)
    labels = selectors.compile_selector(given.label_selector)
    claims = selectors.compile_selector(given.claim_selector.as_labels)
    assert labels is not None and claims is not None, "a selector without a problem compiles"
    return CompiledPredicate(labels, claims, expressions)
