"""InterPodAffinity: near these pods, away from those; in both directions, since pods that are there have wishes too.

Every question is "pods that match S, per domain of K": S from the incoming pod's terms, or pods that carry a term
which the incoming pod matches. Both are counted by the columns, so a decision only adds up domains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.tally import Tally
from stowplan.framework.interfaces import Wake
from stowplan.framework.scoring import MAX_SCORE
from stowplan.framework.verdict import SKIP, Reject, Skip
from stowplan.objects.affinity import AffinityTerm, WeightedTerm
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.shape import PREFERRED, REQUIRED, REQUIRED_ANTI

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


class InterPodAffinity:
    reads = ("Namespace",)
    configurable_at = ("preScore",)

    def __init__(
        self, hard_pod_affinity_weight: int = 1, ignore_preferred_terms_of_existing_pods: bool = False
    ) -> None:
        """`hardPodAffinityWeight`: what a required term of a pod that is there counts as a preference."""
        self._hard_weight = hard_pod_affinity_weight
        self._ignore_existing = ignore_preferred_terms_of_existing_pods

    # -- filter

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Skip | None:
        shape = pod.shape
        if shape.required_affinity or shape.required_anti_affinity or any(_objections(pod, cluster)):
            return None
        return SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        refused = ~_near(pod, nodes)
        yield Reject(refused, AFFINITY, resolvable=False)
        unwanted = ~refused & _beside_unwanted(pod, nodes)
        yield Reject(unwanted, ANTI_AFFINITY)
        unwelcome = np.zeros(len(nodes), np.bool_)
        for key, counts in _objections(pod, nodes.cluster):
            unwelcome |= counts[nodes.label(key).codes] > 0
        yield Reject(unwelcome & ~refused & ~unwanted, EXISTING)

    # -- score

    def score(self, pod: Pod, nodes: Nodes) -> Ints | None:
        wishes = pod.shape.preferred_affinity
        if self._ignore_existing and not wishes:
            return None
        cluster = nodes.cluster
        liked, anybody = np.zeros(len(nodes), np.int64), False
        for key, weight, tally in self._preferences(pod, cluster):
            counts = cluster.by_domain(tally, key)
            if counts.any():
                anybody = True
                liked += counts[nodes.label(key).codes] * np.int64(weight)
        return _between_extremes(liked) if anybody else None

    def _preferences(self, pod: Pod, cluster: Cluster) -> Iterator[tuple[str, int, Tally]]:
        """(topology key, weight, pods that count): the pod's own wishes, and those that pods there have about it."""
        for wish in pod.shape.preferred_affinity:
            yield wish.term.topology_key, wish.weight, cluster.count(cluster.query(wish.term))
        for carried, tally in cluster.terms_matching(PREFERRED, pod):
            assert isinstance(carried, WeightedTerm)
            yield carried.term.topology_key, carried.weight, tally
        if self._hard_weight > 0:
            for carried, tally in cluster.terms_matching(REQUIRED, pod):
                assert isinstance(carried, AffinityTerm)
                yield carried.topology_key, self._hard_weight, tally

    # -- what wakes a rejected pod

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Pod", ("Add", "UpdatePodLabel", "Delete"), hint="pod_matters")
        yield Wake("Node", ("Add", "UpdateNodeLabel"), hint="node_matters")

    def pod_matters(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        """Did the pod itself change, one come that it wants near, or one go that it (or who it) keeps away from?

        Namespaces are taken by name only here; a term that picks them by label is always worth a try.
        """
        if old is not None and new is not None and new.uid == pod.uid:
            return True
        near, apart = pod.shape.required_affinity, pod.shape.required_anti_affinity
        if new is not None:
            stays_away = old is not None and any(_may_match(t, old) and not _may_match(t, new) for t in apart)
            return stays_away or (_may_match_all(near, new) and not (old is not None and _may_match_all(near, old)))
        if old is None:
            return False
        return any(_may_match(t, old) for t in apart) or any(
            _may_match(t, pod) for t in old.shape.required_anti_affinity
        )

    def node_matters(self, pod: Pod, old: Node | None, new: Node | None) -> bool:
        """Did a node join a domain that the pod may want, or leave one that it may have to avoid?"""
        if new is None:
            return False
        near, apart = pod.shape.required_affinity, pod.shape.required_anti_affinity
        if old is None:
            return bool(apart) or any(term.topology_key in new.labels for term in near)
        joined = any(_moved(old, new, t.topology_key) and t.topology_key in new.labels for t in near)
        return joined or any(_moved(old, new, t.topology_key) and t.topology_key in old.labels for t in apart)


def _moved(old: Node, new: Node, key: str) -> bool:
    return old.labels.get(key) != new.labels.get(key)


def _may_match_all(terms: Sequence[AffinityTerm], other: Pod) -> bool:
    return bool(terms) and all(_may_match(term, other) for term in terms)


def _may_match(term: AffinityTerm, other: Pod) -> bool:
    query = term.query({})
    anywhere = term.namespace_selector is not None
    return query.matches(other.namespace, other.labels) or (
        anywhere and query.matches(next(iter(query.namespaces or ("",)), ""), other.labels)
    )


def _objections(pod: Pod, cluster: Cluster) -> Iterator[tuple[str, Ints]]:
    """Per topology key: the domains with pods whose required anti-affinity the incoming pod would break."""
    for term, tally in cluster.terms_matching(REQUIRED_ANTI, pod):
        assert isinstance(term, AffinityTerm)
        counts = cluster.by_domain(tally, term.topology_key)
        if counts.any():
            yield term.topology_key, counts


def _near(pod: Pod, nodes: Nodes) -> Bools:
    """Nodes in the domain of pods that meet all required affinity terms, for each term's key.

    The first pod of a group that wants to be near itself may go wherever the keys exist.
    """
    near, keys_exist = np.ones(len(nodes), np.bool_), np.ones(len(nodes), np.bool_)
    terms = pod.shape.required_affinity
    if not terms:
        return near
    cluster = nodes.cluster
    queries = tuple(cluster.query(term) for term in terms)
    tally, anybody = cluster.count(*queries), False
    for term in terms:
        label = nodes.label(term.topology_key)
        counts = cluster.by_domain(tally, term.topology_key)
        anybody = anybody or bool(counts.any())
        keys_exist &= label.present
        near &= counts[label.codes] > 0
    if not anybody and all(query.matches(pod.namespace, pod.labels) for query in queries):
        return keys_exist
    return near


def _beside_unwanted(pod: Pod, nodes: Nodes) -> Bools:
    """Nodes in the domain of a pod that one of the required anti-affinity terms matches."""
    beside = np.zeros(len(nodes), np.bool_)
    cluster = nodes.cluster
    for term in pod.shape.required_anti_affinity:
        counts = cluster.by_domain(cluster.count(cluster.query(term)), term.topology_key)
        beside |= counts[nodes.label(term.topology_key).codes] > 0
    return beside


def _between_extremes(liked: Ints) -> Ints:
    """0 for the least liked to 100 for the most; in this order of operations, whose rounding kube-scheduler has too."""
    least, most = int(liked.min()), int(liked.max())
    if most == least:
        return np.zeros(len(liked), np.int64)
    return (MAX_SCORE * ((liked - least) / (most - least))).astype(np.int64)
