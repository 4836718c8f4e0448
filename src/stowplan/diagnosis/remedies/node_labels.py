"""Node labels: another value for nodeSelector or node affinity, a condition removed, or a label on a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints
from stowplan.columns.nodes.views import Nodes
from stowplan.diagnosis.case import IMPOSSIBLE, Case, Offer, combined
from stowplan.diagnosis.edits import Edit
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.remedy import Operation
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import (
    LabelRequirement,
    LabelSelectorRequirement,
    NodeSelectorTerm,
    NodeTerm,
    compile_field,
    compile_requirement,
    compile_term,
    field_matches,
    integer,
)
from stowplan.plugins.nodes.default.node_affinity import NodeAffinityPlugin

VALUE, DROP, DROP_ALL, LABEL = "selector-value", "drop-requirement", "drop-node-affinity", "label-node"
REQUIRED = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
# Labels that say what a node is; a wrong one would mislead others.
_FACTS = ("kubernetes.io/", "topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/", "beta.kubernetes.io/")


@dataclass(frozen=True)
class Part:
    """One condition of the pod on nodes: an entry of nodeSelector, or a requirement of an affinity term.

    term   the number of the term, or None for nodeSelector
    meets  the nodes that meet the condition
    """

    path: tuple[str | int, ...]
    term: int | None
    requirement: LabelSelectorRequirement
    is_field: bool
    meets: Bools


def offers(case: Case) -> Iterator[Offer]:
    for enabled in case.profile.filters:
        rejected = case.rejects(enabled.name)
        if rejected is None or not isinstance(enabled.plugin, NodeAffinityPlugin):
            continue
        enforced = case.accepted(enabled.name, _without_conditions(case))
        added = getattr(enabled.plugin, "_added", None)
        yield from Conditions(case, enabled.name, rejected, enforced, added).offers()


def _without_conditions(case: Case) -> Pod:
    operations = []
    if case.pod.spec.node_selector:
        operations.append(Operation("remove", "/spec/nodeSelector"))
    if case.pod.spec.affinity.node_affinity.required is not None:
        operations.append(Operation("remove", pointer(*REQUIRED)))
    return case.patched(*operations) if operations else case.pod


class Conditions:
    """The pod's conditions on labels and names of nodes, and which node fails how many."""

    def __init__(
        self, case: Case, plugin: str, rejected: Bools, enforced: Bools, added: tuple[NodeTerm, ...] | None
    ) -> None:
        self.case, self.plugin, self.rejected, self.enforced = case, plugin, rejected, enforced
        nodes = case.nodes
        self.labels = [_label_part(nodes, key, value) for key, value in case.pod.spec.node_selector.items()]
        required = case.pod.spec.affinity.node_affinity.required
        self.required = required is not None
        terms = () if required is None else required.node_selector_terms
        self.terms = [list(_term_parts(nodes, at, term)) for at, term in enumerate(terms)]
        self.usable = [compile_term(term) is not None for term in terms]
        size = len(nodes)
        self.failed_labels = _unmet(self.labels, size)
        failed = [
            np.where(usable & self._changeable(parts), _unmet(parts, size), IMPOSSIBLE)
            for usable, parts in zip(self.usable, self.terms, strict=True)
        ]
        self.failed_terms: Ints = np.min(failed, axis=0) if failed else np.zeros(size, np.int64)
        if self.required and not failed:
            self.failed_terms = np.full(size, IMPOSSIBLE)
        self.best_term: Ints = np.argmin(failed, axis=0) if failed else np.zeros(size, np.int64)
        self.added = [list(_added_parts(nodes, at, term)) for at, term in enumerate(added or ())]
        failed_added = [_unmet(parts, size) for parts in self.added]
        self.failed_added: Ints = np.min(failed_added, axis=0) if failed_added else np.zeros(size, np.int64)
        self.best_added: Ints = np.argmin(failed_added, axis=0) if failed_added else np.zeros(size, np.int64)

    def offers(self) -> Iterator[Offer]:
        case, size = self.case, len(self.case.nodes)
        possible = self.enforced & (self.failed_terms < IMPOSSIBLE)
        steps = case.steps(self.rejected, self.failed_labels + self.failed_terms, possible)
        fails = [~part.meets for part in self.labels]
        for at, parts in enumerate(self.terms):
            fails += [~part.meets & (self.best_term == at) for part in parts]
        kinds = combined(self.best_term, *fails) if fails else np.zeros(size, np.int64)
        if possible.any() and (steps < IMPOSSIBLE).any():
            values = combined(kinds, *self._values())
            yield Offer(self.plugin, steps, self.other_values, alike=values, weight=self._distance(fails))
            yield Offer(self.plugin, steps, self.dropped, alike=kinds)
        labels, edits = self._labelling()
        if (labels[self.rejected] < IMPOSSIBLE).any():
            yield Offer(self.plugin, labels, edits, own=False, alike=combined(kinds, self.best_added))
        if self.required and not self._names_its_node():
            whole = case.steps(self.rejected, self.failed_labels + 1, self.enforced & (self.failed_terms > 1))
            if (whole < IMPOSSIBLE).any():
                yield Offer(self.plugin, whole, self.without_affinity, alike=combined(*fails) if fails else kinds)

    def _names_its_node(self) -> bool:
        """True if a DaemonSet's controller wrote which node the pod is for: nobody else may change that."""
        return self.case.pod.of_daemon_set and any(_is_name(part) for parts in self.terms for part in parts)

    def _changeable(self, parts: Sequence[Part]) -> Bools:
        """Return the nodes for which a term's conditions may be changed: of a DaemonSet's pod only its own node."""
        possible: Bools = np.ones(len(self.case.nodes), np.bool_)
        for part in parts if self.case.pod.of_daemon_set else ():
            possible &= part.meets | (not _is_name(part))
        return possible

    def _failed(self, at: int) -> list[Part]:
        parts = [part for part in self.labels if not part.meets[at]]
        if self.terms:
            parts += [part for part in self.terms[int(self.best_term[at])] if not part.meets[at]]
        return parts

    def _every(self) -> list[Part]:
        return [*self.labels, *(part for parts in self.terms for part in parts)]

    def _values(self) -> Iterator[Ints]:
        for key in dict.fromkeys(part.requirement.key for part in self._every() if not part.is_field):
            fails = np.any([~part.meets for part in self._every() if part.requirement.key == key], axis=0)
            yield np.where(fails, self.case.nodes.label(key).codes, -1)
        if any(part.is_field for part in self._every()):
            yield np.arange(len(self.case.nodes))

    def _distance(self, fails: Sequence[Bools]) -> Floats:
        """Return how far each node's values are from those that are asked for: 0 alike, 1 nothing in common."""
        total: Floats = np.zeros(len(self.case.nodes))
        for part, missed in zip(self._every(), fails, strict=True):
            if part.is_field or not missed.any():
                total += missed
                continue
            label = self.case.nodes.label(part.requirement.key)
            far = np.ones(label.size)
            for value in {value for value in label.values if value is not None}:
                code = label.code(value)
                if code is not None:
                    far[code] = min((_unlike(value, wanted) for wanted in part.requirement.values), default=1.0)
            total += np.where(missed, far[label.codes], 0)
        return total

    # -- edits

    def other_values(self, at: int) -> list[Edit]:
        """Return edits that replace values by those of the node; a condition on a label that it lacks is removed."""
        return self._edits(at, self._failed(at), replacing=True)

    def dropped(self, at: int) -> list[Edit]:
        return self._edits(at, self._failed(at), replacing=False)

    def without_affinity(self, at: int) -> list[Edit]:
        labels = [part for part in self.labels if not part.meets[at]]
        return [*self._edits(at, labels, replacing=True), self._no_affinity()]

    def _no_affinity(self) -> Edit:
        text = "remove the required node affinity"
        return self.case.edit(DROP_ALL, text, Operation("remove", pointer(*REQUIRED)))

    def _edits(self, at: int, parts: Sequence[Part], *, replacing: bool) -> list[Edit]:
        edits = [self._replaced(at, part) if replacing else self._removed(part) for part in parts]
        for term, every in enumerate(self.terms):
            gone = [edit for edit, part in zip(edits, parts, strict=True) if part.term == term and edit.code == DROP]
            if gone and len(gone) == len(every):  # a term without conditions would match no node
                edits = [edit for edit in edits if edit not in gone]
                return [*edits, self._no_affinity()]
        return edits

    def _removed(self, part: Part) -> Edit:
        where = "nodeSelector" if part.term is None else "the required node affinity"
        text = f"remove {_shown(part)} from {where}"
        return self.case.edit(DROP, text, Operation("remove", pointer(*part.path)))

    def _replaced(self, at: int, part: Part) -> Edit:
        node, key = self.case.nodes[at], part.requirement.key
        value = node.name if part.is_field else node.labels.get(key)
        if (
            value is None
            or part.requirement.operator != "In"
            or (part.is_field and part.requirement.key != "metadata.name")
        ):
            return self._removed(part)
        far = min((_unlike(value, wanted) for wanted in part.requirement.values), default=1.0)
        wanted = ", ".join(part.requirement.values)
        if part.term is None:
            text = f"change {key} in nodeSelector from {wanted} to {value}"
            return self.case.edit(VALUE, text, Operation("replace", pointer(*part.path), value), size=far)
        if part.is_field or len(part.requirement.values) == 1:
            text = f"change {key} in the required node affinity from {wanted} to {value}"
            change = Operation("replace", pointer(*part.path, "values", 0), value)
        else:
            text = f"add {value} to the values of {key} in the required node affinity"
            change = Operation("add", pointer(*part.path, "values", "-"), value)
        return self.case.edit(VALUE, text, change, size=far)

    # -- labels on nodes

    def _failed_keys(self) -> Ints:
        """Return how many labels each node lacks: one value may meet several conditions."""
        failed: dict[str, Bools] = {}
        for best, terms in ((self.best_term, self.terms), (self.best_added, self.added)):
            for at, parts in enumerate(terms):
                for part in parts:
                    key = part.requirement.key
                    failed[key] = failed.get(key, np.False_) | (~part.meets & (best == at))
        for part in self.labels:
            failed[part.requirement.key] = failed.get(part.requirement.key, np.False_) | ~part.meets
        return np.sum(list(failed.values()), axis=0) if failed else np.zeros(len(self.case.nodes), np.int64)

    def _labelling(self) -> tuple[Ints, Callable[[int], list[Edit]]]:
        """Return the steps and edits of labels on nodes that meet the conditions of the pod and of the scheduler."""
        settable = self.failed_terms < IMPOSSIBLE
        for part in self._every():
            if _label_for(part) is None:
                settable &= part.meets | (self.best_term != part.term if part.term is not None else False)
        for at, parts in enumerate(self.added):
            for part in parts:
                if _label_for(part) is None:
                    settable &= part.meets | (self.best_added != at)
        steps = self.case.steps(self.rejected, self._failed_keys(), settable)

        def edits(at: int) -> list[Edit]:
            name = self.case.nodes[at].name
            added = self.added[int(self.best_added[at])] if self.added else []
            failed: dict[str, list[Part]] = {}
            for part in (*self._failed(at), *(part for part in added if not part.meets[at])):
                failed.setdefault(part.requirement.key, []).append(part)
            return [
                self.case.node_edit(
                    LABEL,
                    f"label node {name} {key}={value}",
                    name,
                    Operation("add", pointer("metadata", "labels", key), value),
                )
                for key, value in ((key, _label_for_all(parts)) for key, parts in failed.items())
            ]

        return steps, edits


def _is_name(part: Part) -> bool:
    return part.is_field and part.requirement.key == "metadata.name"


def _label_for_all(parts: Sequence[Part]) -> str:
    """Return a value of one label that meets conditions on it, all of them if there is one."""
    values = [_label_for(part) or "" for part in parts]
    compiled = [found for part in parts if (found := compile_requirement(part.requirement)) is not None]
    for value in values:
        if all(each.matches({each.key: value}) for each in compiled):
            return value
    return values[-1]


def _unmet(parts: Sequence[Part], size: int) -> Ints:
    """Return how many of the conditions each node does not meet."""
    count = np.zeros(size, np.int64)
    for part in parts:
        count += ~part.meets
    return count


def _label_part(nodes: Nodes, key: str, value: str) -> Part:
    requirement = LabelSelectorRequirement(key, "In", (value,))
    return Part(("spec", "nodeSelector", key), None, requirement, False, nodes.label(key) == value)


def _term_parts(nodes: Nodes, term: int, found: NodeSelectorTerm) -> Iterator[Part]:
    base = (*REQUIRED, "nodeSelectorTerms", term)
    nothing = np.zeros(len(nodes), np.bool_)
    for at, each in enumerate(found.match_expressions):
        compiled = compile_requirement(each)
        meets = nothing if compiled is None else nodes.label(each.key).meets(compiled)
        yield Part((*base, "matchExpressions", at), term, each, False, meets)
    for at, each in enumerate(found.match_fields):
        yield Part((*base, "matchFields", at), term, each, True, _meets_field(nodes, compile_field(each)))


def _added_parts(nodes: Nodes, at: int, term: NodeTerm) -> Iterator[Part]:
    for each in term.labels:
        requirement = LabelSelectorRequirement(each.key, each.operator, each.values)
        yield Part((), at, requirement, False, nodes.label(each.key).meets(each))
    for each in term.named:
        requirement = LabelSelectorRequirement(each.key, each.operator, each.values)
        yield Part((), at, requirement, True, _meets_field(nodes, each))


def _meets_field(nodes: Nodes, field: LabelRequirement | None) -> Bools:
    if field is None:
        return np.zeros(len(nodes), np.bool_)
    if field.key == "metadata.name":
        return np.asarray((nodes.name == field.values[0]) == (field.operator == "In"))
    return np.full(len(nodes), field_matches(field, {}))


def _label_for(part: Part) -> str | None:
    """Return a value of the label that meets the condition; None if no label should be set for it."""
    requirement = part.requirement
    if part.is_field or requirement.key.startswith(_FACTS):
        return None
    number = integer(requirement.values[0]) if requirement.operator in ("Gt", "Lt") and requirement.values else None
    match requirement.operator:
        case "In" if requirement.values:
            return requirement.values[0]
        case "Exists":
            return "true"
        case "Gt" if number is not None:
            return str(number + 1)
        case "Lt" if number is not None and number > 0:
            return str(number - 1)
        case _:
            return None


def _shown(part: Part) -> str:
    requirement = part.requirement
    if part.term is None:
        return f"{requirement.key}={requirement.values[0]}"
    return " ".join((requirement.key, requirement.operator, ",".join(requirement.values))).strip()


def _unlike(left: str, right: str) -> float:
    """Return how different two spellings are: 0 for the same, 1 for nothing in common."""
    return 1.0 - SequenceMatcher(None, left, right).ratio()
