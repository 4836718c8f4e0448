"""Terms of pod affinity in compiled form: which pods, and which topology key.

`PodQuery` stands for "pods of these namespaces with these labels". It is hashable, so equal queries are counted once. A
term with a namespace selector needs the labels of the namespaces to become a query (`AffinityTerm.query`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from stowplan.objects.pod_parts import PodAffinityTerm
from stowplan.objects.selectors import Selector, compile_selector, from_labels, matches


class PodQuery(msgspec.Struct, frozen=True):
    """Pods whose labels match, in one of these namespaces; None for all namespaces. `pods_with` makes one.

        nodes.count(pods_with({"app": "web"}))    # how many such pods each node has

    `daemons`: if pods of DaemonSets count.
    """

    namespaces: frozenset[str] | None
    selector: Selector | None
    daemons: bool = True

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and matches(self.selector, labels)


def pods_with(labels: Mapping[str, str], namespaces: Iterable[str] | None = None) -> PodQuery:
    """Return the query for pods with these labels, in these namespaces or in all.

    nodes.count(pods_with({"app": "web"}, [pod.namespace]))
    """
    return PodQuery(None if namespaces is None else frozenset(namespaces), from_labels(labels))


class AffinityTerm(msgspec.Struct, frozen=True):
    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Selector | None
    selector: Selector | None

    def matches(self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        return self.near(namespace, namespace_labels) and matches(self.selector, labels)

    def near(self, namespace: str, namespace_labels: Mapping[str, str]) -> bool:
        """True if the term is about pods of a namespace."""
        return namespace in self.namespaces or matches(self.namespace_selector, namespace_labels)

    def query(self, namespaces: Mapping[str, Mapping[str, str]]) -> PodQuery:
        """Return the query for existing pods, given the labels of all namespaces.

        kube-scheduler resolves the namespace selector into names and then also applies it to an empty set of labels.
        So a selector that matches a namespace without labels (`{}`, `!team`) matches every namespace. So does this.
        """
        if self.namespace_selector is None:
            return PodQuery(self.namespaces, self.selector)
        if matches(self.namespace_selector, {}):
            return PodQuery(None, self.selector)
        chosen = [name for name, labels in namespaces.items() if matches(self.namespace_selector, labels)]
        return PodQuery(self.namespaces.union(chosen), self.selector)


class WeightedTerm(msgspec.Struct, frozen=True):
    term: AffinityTerm
    weight: int


def compile_terms(namespace: str, terms: Iterable[PodAffinityTerm]) -> tuple[AffinityTerm, ...]:
    return tuple(compile_term(namespace, term) for term in terms)


def compile_term(namespace: str, term: PodAffinityTerm) -> AffinityTerm:
    own = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        term.topology_key,
        frozenset((namespace,) if own else term.namespaces),
        compile_selector(term.namespace_selector),
        compile_selector(term.label_selector),
    )
