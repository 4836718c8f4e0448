"""The parts of a placement's predicates: each single requirement of labels or claims, and each CEL expression."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stowplan.cel.syntax import CelSyntaxError
from stowplan.diagnosis.patches import pointer
from stowplan.framework.placement.choice import PlacementQuestion
from stowplan.objects import selectors
from stowplan.objects.clusters import ManagedCluster
from stowplan.objects.placements import Placement
from stowplan.objects.selectors import LabelRequirement, LabelSelectorRequirement
from stowplan.plugins.clusters.cel_selector import compiled

LABEL, CLAIM, EXPRESSION = "label", "claim", "expression"


@dataclass(frozen=True, slots=True)
class PredicatePart:
    """One requirement of one predicate.

    sort          label, claim or expression
    predicate     which predicate it belongs to
    path          where it is in the placement
    requirement   of labels or claims; None for an expression, and for a requirement that is invalid
    text          the expression, or the requirement as people write it
    """

    sort: str
    predicate: int
    path: tuple[str | int, ...]
    requirement: LabelRequirement | None
    text: str
    key: str = ""
    in_match_labels: bool = False

    @property
    def pointer(self) -> str:
        return pointer(*self.path)

    def matches(self, cluster: ManagedCluster, question: PlacementQuestion) -> bool:
        """True if a cluster meets it."""
        if self.sort != EXPRESSION:
            labels: Mapping[str, str] = cluster.labels if self.sort == LABEL else cluster.claims
            return self.requirement is not None and self.requirement.matches(labels)
        row = question.fleet.row_of.get(cluster.name)
        try:
            return row is not None and compiled((self.text,)).match(question.view(), row)[0]
        except CelSyntaxError:
            return False

    @property
    def resources(self) -> frozenset[str]:
        """The AddOnPlacementScores that an expression reads, as far as they are known."""
        if self.sort != EXPRESSION:
            return frozenset()
        try:
            return compiled((self.text,)).resources or frozenset()
        except CelSyntaxError:
            return frozenset()


def parts(placement: Placement) -> Iterator[PredicatePart]:
    for index, predicate in enumerate(placement.spec.predicates):
        given, base = predicate.required_cluster_selector, ("spec", "predicates", index, "requiredClusterSelector")
        labels = (*base, "labelSelector")
        for key, value in given.label_selector.match_labels.items():
            requirement = selectors.compile_requirement(LabelSelectorRequirement(key, "In", (value,)))
            path = (*labels, "matchLabels", key)
            yield PredicatePart(LABEL, index, path, requirement, f"{key}={value}", key, in_match_labels=True)
        for at, each in enumerate(given.label_selector.match_expressions):
            yield _expression(LABEL, index, (*labels, "matchExpressions", at), each)
        for at, each in enumerate(given.claim_selector.match_expressions):
            yield _expression(CLAIM, index, (*base, "claimSelector", "matchExpressions", at), each)
        for at, text in enumerate(given.cel_selector.cel_expressions):
            yield PredicatePart(EXPRESSION, index, (*base, "celSelector", "celExpressions", at), None, text)


def _expression(sort: str, index: int, path: tuple[str | int, ...], given: LabelSelectorRequirement) -> PredicatePart:
    values = f" ({', '.join(given.values)})" if given.values else ""
    valid = None if given.operator in ("Gt", "Lt") else selectors.compile_requirement(given)
    return PredicatePart(sort, index, path, valid, f"{given.key} {given.operator}{values}", given.key)
