"""Which pods each PodDisruptionBudget covers, kept up to date: a cluster may have thousands of both.

A selector is compiled once. Pods are found by a label that the selector wants, so that a budget looks at few of them.
"""

from __future__ import annotations

from collections import defaultdict

from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.embedded.validation.workloads import selector
from stowplan.objects import selectors
from stowplan.objects.selectors import Selector

Wanted = tuple[
    str, str, str
]  # a namespace, and a label with its value; the label is empty for selectors that want none


class BudgetCoverage:
    """It must be told of every change of pods and of budgets."""

    def __init__(self, store: DocumentStore, budgets: str) -> None:
        self._budgets = budgets
        self._selectors: dict[str, Selector | None] = {}  # by the key of a budget
        self._wanted: dict[str, Wanted] = {}
        self._by_wanted: defaultdict[Wanted, dict[str, None]] = defaultdict(dict)  # keys of budgets
        self._pods: defaultdict[Wanted, dict[str, Document]] = defaultdict(dict)  # by key; each under all its labels
        for key, stored in store.collection(budgets).items.items():
            self._put_budget(key, stored.document)
        for key, stored in store.collection("pods").items.items():
            self._put_pod(key, stored.document)

    def change(self, change: StoreChange) -> None:
        if change.collection == self._budgets:
            self._drop_budget(change.key)
            if change.now is not None:
                self._put_budget(change.key, change.now)
        elif change.collection == "pods":
            if change.before is not None:
                self._drop_pod(change.key, change.before)
            if change.now is not None:
                self._put_pod(change.key, change.now)

    def budgets_of(self, pod: Document) -> list[str]:
        """Return the keys of the budgets that cover a pod, in order."""
        labels = pod["metadata"].get("labels", {})
        near = (key for place in _places(pod) for key in self._by_wanted.get(place, ()))
        return sorted(key for key in near if selectors.matches(self._selectors[key], labels))

    def pods_of(self, budget: str) -> list[Document]:
        """Return the pods that a budget covers, in the order of their keys."""
        found = self._pods.get(self._wanted.get(budget, ("", "", "")), {})
        chosen = self._selectors.get(budget)
        return [
            found[key] for key in sorted(found) if selectors.matches(chosen, found[key]["metadata"].get("labels", {}))
        ]

    def _put_budget(self, key: str, budget: Document) -> None:
        chosen = selector(budget["spec"].get("selector"))
        place = budget["metadata"]["namespace"], *_label(chosen)
        self._selectors[key], self._wanted[key] = chosen, place
        self._by_wanted[place][key] = None

    def _drop_budget(self, key: str) -> None:
        place = self._wanted.pop(key, None)
        if place is not None:
            self._selectors.pop(key)
            del self._by_wanted[place][key]

    def _put_pod(self, key: str, pod: Document) -> None:
        for place in _places(pod):
            self._pods[place][key] = pod

    def _drop_pod(self, key: str, pod: Document) -> None:
        for place in _places(pod):
            found = self._pods[place]
            found.pop(key, None)
            if not found:
                del self._pods[place]


def _label(chosen: Selector | None) -> tuple[str, str]:
    """Return a label that every pod of a selector has, with its value; empty if there is none."""
    for each in chosen or ():
        if each.operator == "In" and len(each.values) == 1:
            return each.key, each.values[0]
    return "", ""


def _places(pod: Document) -> list[Wanted]:
    namespace = pod["metadata"]["namespace"]
    labels = pod["metadata"].get("labels", {})
    return [(namespace, "", ""), *((namespace, key, value) for key, value in labels.items())]
