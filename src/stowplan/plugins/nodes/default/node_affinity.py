"""NodeAffinity: the pod's nodeSelector and node affinity, and the affinity that the configuration adds to every pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from stowplan.columns.arrays import Ints
from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import SKIP, Only, Reject, RejectPod, Skip
from stowplan.framework.interfaces import Wake
from stowplan.framework.scoring import normalized
from stowplan.objects import selectors
from stowplan.objects.errors import ConfigError
from stowplan.objects.nodes import Node
from stowplan.objects.pod_parts import NodeAffinity
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import NodeTerm
from stowplan.plugins.nodes.default import node_label_causes

ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
REASON = "node(s) didn't match Pod's node affinity/selector"
CONFLICT = "pod affinity terms conflict"


class NodeAffinityPlugin:
    configurable_at = ("preScore",)
    local = "node"
    pre_filters_by_shape = True
    filters_by_row = scores_by_node = True
    ignores_requests = ignores_volumes = True

    def __init__(self, added_affinity: Mapping[str, Any] | None = None) -> None:
        """`addedAffinity`: node affinity that every pod of this profile has in addition to its own."""
        added = msgspec.convert(added_affinity or {}, NodeAffinity)
        self._added = None if added.required is None else tuple(_strict(t) for t in _not_empty(added.required))
        self._prefers = bool(added.preferred)  # an empty preference counts, though it matches no node
        self._added_preferred = tuple(
            (_strict(term.preference), term.weight)
            for term in added.preferred
            if term.weight and (term.preference.match_expressions or term.preference.match_fields)
        )

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | Only | Skip | None:  # noqa: ARG002
        required = pod.spec.affinity.node_affinity.required
        if required is None:
            return None if pod.spec.node_selector or self._added is not None else SKIP
        named = [_named(term) for term in required.node_selector_terms]
        names = [term for term in named if term is not None]
        if not named or len(names) < len(named):
            return None
        wanted = frozenset[str]().union(*names)
        return Only(wanted) if wanted else RejectPod((CONFLICT,), resolvable=False)

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        not_enforced = np.zeros(len(nodes), np.bool_)
        if self._added is not None:
            not_enforced = ~nodes.matching_any(self._added)
            yield Reject(not_enforced, ENFORCED, resolvable=False)
        shape = pod.shape
        if not shape.node_labels and shape.node_terms is None:
            return
        matched = nodes.matching(shape.node_labels)
        if shape.node_terms is not None:
            matched &= nodes.matching_any(shape.node_terms)
        yield Reject(~matched & ~not_enforced, REASON, resolvable=False)

    def fits(self, pod: Pod, node: OneNode) -> tuple[str, bool] | None:
        labels, name, shape = node.labels, node.name, pod.shape
        if self._added is not None and not any(term.matches(labels, name) for term in self._added):
            return ENFORCED, False
        terms = shape.node_terms
        if selectors.matches(shape.node_labels, labels) and (
            terms is None or any(term.matches(labels, name) for term in terms)
        ):
            return None
        return REASON, False

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        return node_label_causes.causes(pod, nodes, self._added)

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterator[Cause]:  # noqa: ARG002
        yield node_label_causes.conflict(pod)

    def score(self, pod: Pod, nodes: Nodes) -> Ints | None:
        if not pod.spec.affinity.node_affinity.preferred and not self._prefers:
            return None
        liked = np.zeros(len(nodes), np.int64)
        for term, weight in (*self._added_preferred, *pod.shape.preferred_node_terms):
            liked += nodes.matching_term(term) * np.int64(weight)
        return normalized(liked)

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Node", ("Add", "UpdateNodeLabel"), hint="node_matches_now")

    def node_matches_now(self, pod: Pod, old: Node | None, new: Node | None) -> bool:
        return new is not None and self._matches(pod, new) and (old is None or not self._matches(pod, old))

    def _matches(self, pod: Pod, node: Node) -> bool:
        shape = pod.shape
        alternatives = [terms for terms in (self._added, shape.node_terms) if terms is not None]
        return selectors.matches(shape.node_labels, node.labels) and all(
            any(term.matches(node.labels, node.name) for term in terms) for terms in alternatives
        )


def _named(term: selectors.NodeSelectorTerm) -> frozenset[str] | None:
    """Return the node names that a term's fields require; None if they require none."""
    sets = [
        frozenset(field.values)
        for field in term.match_fields
        if field.key == "metadata.name" and field.operator == "In"
    ]
    return frozenset.intersection(*sets) if sets else None


def _not_empty(selector: selectors.NodeSelector) -> Iterator[selectors.NodeSelectorTerm]:
    return (term for term in selector.node_selector_terms if term.match_expressions or term.match_fields)


def _strict(term: selectors.NodeSelectorTerm) -> NodeTerm:
    compiled = selectors.compile_term(term)
    if compiled is None:
        raise ConfigError(f"addedAffinity has a term that cannot be parsed: {msgspec.to_builtins(term)}")
    return compiled
