"""The affinity terms that pods on nodes carry: which of them match an incoming pod, and how many pods have them.

A term that asks for labels is found by these labels, so an incoming pod sees few terms. But a term may match nearly
every pod (`app NotIn (x)`), and one pod may carry a thousand of those. So where there are many candidates, they are not
looked at one by one:

    OpenTerms         the terms that ask for no label: their sums, and which labels each of them does not want
    CarriedQuestion   the sums of the terms that match a namespace and labels (those labels that any term mentions)
    log               what was added and removed since the first question was asked

A new question takes the sums of the open terms, without those that do not want its labels, and adds the terms that ask
for its labels. A question that is asked again catches up with the log. So a decision costs by the number of topology
keys, and a pod that carries terms costs once for each question that is still asked.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from stowplan.columns.pods.carried_sums import CarriedSum, CarriedSums, term_of, weight_of
from stowplan.columns.pods.selector_index import SelectorIndex
from stowplan.columns.tally import Tally
from stowplan.objects.affinity import AffinityTerm
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import Selector, matches
from stowplan.objects.shape import Use

MANY = 32  # candidates, from which on sums are kept
MOST_QUESTIONS = 64
LONGEST_LOG = 1 << 16

Labels: TypeAlias = frozenset[tuple[str, str]]
Scope: TypeAlias = tuple[frozenset[str], Selector | None]  # the namespaces of a term, and the selector of more


class OpenTerms:
    """Terms that ask for no label. Of such a term only `NotIn` and `DoesNotExist` are left that may not match."""

    def __init__(self) -> None:
        self._sums: dict[Scope, CarriedSums] = {}
        # (key, value), or (key, None) for any value → the terms that do not want that label: one, or several
        self._unwanted: dict[tuple[str, str | None], Use | dict[Use, None]] = {}

    def put(self, use: Use) -> None:
        for label in _unwanted(term_of(use)):
            before = self._unwanted.get(label)
            if before is None:
                self._unwanted[label] = use
            elif isinstance(before, dict):
                before[use] = None
            else:
                self._unwanted[label] = {before: None, use: None}

    def drop(self, use: Use) -> None:
        for label in _unwanted(term_of(use)):
            before = self._unwanted[label]
            if isinstance(before, dict) and len(before) > 1:
                del before[use]
            else:
                del self._unwanted[label]

    def add(self, use: Use, row: int, amount: int, capacity: int) -> None:
        term = term_of(use)
        scope = term.namespaces, term.namespace_selector
        sums = self._sums.get(scope)
        if sums is None:
            sums = self._sums[scope] = CarriedSums()
        sums.add(use, row, amount, capacity)
        if not sums:
            del self._sums[scope]

    def sums(self, namespace: str, namespace_labels: Mapping[str, str]) -> Iterator[CarriedSums]:
        """Yield the sums of all terms that may match a pod of a namespace."""
        for (namespaces, selector), sums in self._sums.items():
            if namespace in namespaces or matches(selector, namespace_labels):
                yield sums

    def not_wanting(self, labels: Mapping[str, str]) -> set[Use]:
        """Return the terms that do not match because of one of these labels."""
        found = set[Use]()
        for key, value in labels.items():
            for label in ((key, value), (key, None)):
                uses = self._unwanted.get(label)
                if uses is not None:
                    found.update(uses if isinstance(uses, dict) else (uses,))
        return found


def _unwanted(term: AffinityTerm) -> set[tuple[str, str | None]]:
    found = set[tuple[str, str | None]]()
    for part in term.selector or ():
        found.update(((part.key, value) for value in part.values) if part.operator == "NotIn" else ((part.key, None),))
    return found


class CarriedQuestion:
    __slots__ = ("labels", "namespace", "namespace_labels", "seen", "sums")

    def __init__(self, namespace: str, namespace_labels: Labels, labels: Labels, seen: int) -> None:
        """`seen`: how much of the log is in the sums."""
        self.namespace, self.namespace_labels, self.labels = namespace, dict(namespace_labels), dict(labels)
        self.seen, self.sums = seen, CarriedSums()

    def add(self, use: Use, row: int, amount: int, capacity: int) -> None:
        if term_of(use).matches(self.namespace, self.namespace_labels, self.labels):
            self.sums.add(use, row, amount, capacity)


class CarriedTerms:
    def __init__(self) -> None:
        self._index: SelectorIndex[Use] = SelectorIndex()
        self._open = OpenTerms()
        self._tallies: dict[Use, Tally] = {}
        self._mentioned: Counter[str] = Counter()  # by how many terms each label is mentioned
        self._by_namespace_labels = 0  # how many terms select namespaces by their labels
        self._questions: OrderedDict[tuple[str, Labels, Labels], CarriedQuestion] = OrderedDict()
        self._log: list[tuple[Use, int, int]] = []

    def __bool__(self) -> bool:
        """True if a pod carries a term."""
        return bool(self._tallies)

    # -- changes

    def put(self, use: Use, tally: Tally) -> None:
        """A first pod carries the term; `tally` counts the pods that do."""
        term = term_of(use)
        self._tallies[use] = tally
        self._index.add(term.selector, use)
        if _is_open(term):
            self._open.put(use)
        self._mentioned.update({part.key for part in term.selector or ()})
        self._by_namespace_labels += bool(term.namespace_selector)

    def drop(self, use: Use) -> None:
        """No pod carries the term any more."""
        term = term_of(use)
        del self._tallies[use]
        self._index.remove(term.selector, use)
        if _is_open(term):
            self._open.drop(use)
        for key in {part.key for part in term.selector or ()}:
            self._mentioned[key] -= 1
            if not self._mentioned[key]:
                del self._mentioned[key]
        self._by_namespace_labels -= bool(term.namespace_selector)

    def changed(self, use: Use, row: int, amount: int, capacity: int) -> None:
        """So many more (or fewer) pods of a row carry the term."""
        if _is_open(term_of(use)):
            self._open.add(use, row, amount, capacity)
        if not self._questions:
            return
        if len(self._log) >= LONGEST_LOG:
            self._questions.clear()
            self._log.clear()
        else:
            self._log.append((use, row, amount))

    # -- questions

    def matching(self, sort: str, pod: Pod, namespace_labels: Mapping[str, str]) -> Iterator[tuple[Use, Tally]]:
        """Yield the terms of one sort that match a pod, and how many pods have each, per row."""
        for use in self._index.candidates(pod.labels):
            if use[0] == sort and term_of(use).matches(pod.namespace, namespace_labels, pod.labels):
                yield use, self._tallies[use]

    def sums(self, sort: str, pod: Pod, namespace_labels: Mapping[str, str], capacity: int) -> Iterator[CarriedSum]:
        """Yield the terms of one sort that match a pod; a topology key may come more than once."""
        if self._index.count_candidates(pod.labels) < MANY:
            for use, tally in self.matching(sort, pod, namespace_labels):
                yield CarriedSum(term_of(use).topology_key, tally, tally, weight_of(use))
        else:
            yield from self._ask(pod, namespace_labels, capacity).sums.of(sort)

    def _ask(self, pod: Pod, namespace_labels: Mapping[str, str], capacity: int) -> CarriedQuestion:
        labels = frozenset(item for item in pod.labels.items() if item[0] in self._mentioned)
        of_namespace = frozenset(namespace_labels.items()) if self._by_namespace_labels else frozenset()
        key = pod.namespace, of_namespace, labels
        question = self._questions.get(key)
        if question is None or len(self._log) - question.seen > self._index.count_candidates(pod.labels):
            question = self._questions[key] = self._new_question(*key, capacity)
            if len(self._questions) > MOST_QUESTIONS:
                self._questions.popitem(last=False)
        elif question.seen < len(self._log):
            for use, row, amount in self._log[question.seen :]:
                question.add(use, row, amount, capacity)
            question.seen = len(self._log)
        self._questions.move_to_end(key)
        return question

    def _new_question(self, namespace: str, of_namespace: Labels, labels: Labels, capacity: int) -> CarriedQuestion:
        question = CarriedQuestion(namespace, of_namespace, labels, len(self._log))
        for sums in self._open.sums(namespace, question.namespace_labels):
            question.sums.add_all(sums, capacity)
        for use in self._open.not_wanting(question.labels):
            if term_of(use).near(namespace, question.namespace_labels):
                for row, amount in self._tallies[use].items().items():
                    question.sums.add(use, row, -amount, capacity)
        for use in self._index.anchored(question.labels):
            for row, amount in self._tallies[use].items().items():
                question.add(use, row, amount, capacity)
        return question


def _is_open(term: AffinityTerm) -> bool:
    return term.selector is not None and all(part.operator in ("NotIn", "DoesNotExist") for part in term.selector)
