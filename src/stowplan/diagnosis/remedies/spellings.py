"""The nearest spelling that exists, where a term between pods names a label or a topology key that nobody has.

A term of anti-affinity with such a mistake rejects no node, so only affinity and spreading have remedies here.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from stowplan.columns.nodes.views import Cluster
from stowplan.diagnosis.case import Case
from stowplan.diagnosis.edits import Edit
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.remedy import Operation
from stowplan.framework.cause_texts import alike
from stowplan.objects.pod_parts import PodAffinityTerm

VALUE, KEY = "selector-value", "topology-key"
MOST_COMPARED = 2_000  # values or keys among which the nearest spelling is looked for
_AFFINITY = ("spec", "affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
_SPREADING = ("spec", "topologySpreadConstraints")


def of_affinity(case: Case) -> Iterator[Edit]:
    """Yield edits of required affinity terms: a value that no pod has, a topology key that no node has."""
    for at, term in enumerate(case.pod.spec.affinity.pod_affinity.required):
        yield from _values(case, at, term)
        for near in _keys(case, term.topology_key):
            text = f"change the topologyKey of the required affinity term from {term.topology_key} to {near}"
            operation = Operation("replace", pointer(*_AFFINITY, at, "topologyKey"), near)
            yield case.edit(KEY, text, operation, size=_unlike(term.topology_key, near))


def of_spreading(case: Case, when_unsatisfiable: str) -> Iterator[Edit]:
    """Yield edits of spreading constraints whose topology key no node has. No two may have the same key."""
    constraints = case.pod.spec.topology_spread_constraints
    used = {each.topology_key for each in constraints if each.when_unsatisfiable == when_unsatisfiable}
    for at, each in enumerate(constraints):
        if each.when_unsatisfiable != when_unsatisfiable:
            continue
        for near in _keys(case, each.topology_key):
            if near not in used:
                text = f"change the topologyKey of the spreading from {each.topology_key} to {near}"
                operation = Operation("replace", pointer(*_SPREADING, at, "topologyKey"), near)
                yield case.edit(KEY, text, operation, size=_unlike(each.topology_key, near))


def _values(case: Case, at: int, term: PodAffinityTerm) -> Iterator[Edit]:
    selector, cluster = term.label_selector, Cluster(case.state)
    if selector is None:
        return
    base = (*_AFFINITY, at, "labelSelector")
    own = case.pod.labels  # the API server writes some of them into terms (matchLabelKeys): no mistake of anybody
    for key, value in selector.match_labels.items():
        for near in _pods_have(cluster, key, (value,)) if own.get(key) != value else ():
            operation = Operation("replace", pointer(*base, "matchLabels", key), near)
            yield _value_edit(case, key, (value,), near, operation)
    for place, each in enumerate(selector.match_expressions):
        if each.operator != "In" or own.get(each.key) in each.values:
            continue
        values = (*base, "matchExpressions", place, "values")
        for near in _pods_have(cluster, each.key, each.values):
            alone = len(each.values) == 1
            operation = Operation(
                *(("replace", pointer(*values, 0)) if alone else ("add", pointer(*values, "-"))), near
            )
            yield _value_edit(case, each.key, each.values, near, operation)


def _value_edit(case: Case, key: str, wanted: tuple[str, ...], near: str, operation: Operation) -> Edit:
    if operation.op == "replace":
        text = f"change {key} in the required affinity term from {wanted[0]} to {near}"
    else:
        text = f"add {near} to the values of {key} in the required affinity term"
    return case.edit(VALUE, text, operation, size=min(_unlike(each, near) for each in wanted))


def _pods_have(cluster: Cluster, key: str, wanted: tuple[str, ...]) -> list[str]:
    """Return the values of a label of pods that are spelled most like these, if no pod has one of these."""
    existing = cluster.pod_label_values(key)
    if not existing.isdisjoint(wanted):
        return []
    known = tuple(sorted(existing)[:MOST_COMPARED])
    return list(dict.fromkeys(near for each in wanted for near in alike(each, known)))


def _keys(case: Case, key: str) -> list[str]:
    """Return the label of nodes that is spelled most like a topology key, if no node has that."""
    if Cluster(case.state).has_label(key):
        return []
    return list(alike(key, tuple(sorted(case.state.table.label_keys)[:MOST_COMPARED]))[:1])  # many begin alike


def _unlike(left: str, right: str) -> float:
    """Return how different two spellings are: 0 for the same, 1 for nothing in common."""
    return 1.0 - SequenceMatcher(None, left, right).ratio()
