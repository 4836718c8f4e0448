"""InterPodAffinity: affinity and anti-affinity between pods, by the terms of the incoming pod and of existing pods.

All of it is counts of "pods that match S, per domain of K": S from the terms of the incoming pod, or existing pods with
a term that the incoming pod matches. The columns count both, so a decision only adds up domains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.pods.row_changes import RowChanges
from stowplan.columns.tally import Tally
from stowplan.framework.causes import NodeCause
from stowplan.framework.decision import SKIP, Reject, Skip
from stowplan.framework.interfaces import Wake
from stowplan.framework.scoring import MAX_SCORE
from stowplan.objects.affinity import AffinityTerm, PodQuery
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.shape import PREFERRED, REQUIRED, REQUIRED_ANTI
from stowplan.plugins.nodes.default import pod_term_causes

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
FEW_TERMS = 16  # preferred terms of a pod; more are added up by topology key


class InterPodAffinity:
    reads = ("Namespace",)
    configurable_at = ("preScore",)

    def __init__(
        self, hard_pod_affinity_weight: int = 1, ignore_preferred_terms_of_existing_pods: bool = False
    ) -> None:
        """`hardPodAffinityWeight`: the weight of an existing pod's required term as a preference."""
        self._hard_weight = hard_pod_affinity_weight
        self._ignore_existing = ignore_preferred_terms_of_existing_pods

    # -- filter

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Skip | None:
        shape = pod.shape
        if shape.required_affinity or shape.required_anti_affinity or any(_existing_anti_affinity(pod, cluster)):
            return None
        return SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        return self._rejections(pod, nodes)

    def filter_what_if(self, pod: Pod, nodes: Nodes, changes: RowChanges) -> Iterator[Reject]:
        return self._rejections(pod, nodes, changes)

    @staticmethod
    def _rejections(pod: Pod, nodes: Nodes, changes: RowChanges | None = None) -> Iterator[Reject]:
        refused = ~_matches_affinity(pod, nodes, changes)
        yield Reject(refused, AFFINITY, resolvable=False)
        anti_affine = ~refused & _matches_anti_affinity(pod, nodes, changes)
        yield Reject(anti_affine, ANTI_AFFINITY)
        rejected_by_existing = np.zeros(len(nodes), np.bool_)
        if changes is None:
            for key, counts in _existing_anti_affinity(pod, nodes.cluster):
                rejected_by_existing |= counts[nodes.label(key).codes] > 0
        else:
            for after in _changed_anti_affinity(pod, nodes, changes):
                rejected_by_existing |= after > 0
        yield Reject(rejected_by_existing & ~refused & ~anti_affine, EXISTING)

    def keeps_apart(self, pod: Pod, cluster: Cluster) -> Iterator[AffinityTerm]:
        """Return the required anti-affinity terms that the pod matches itself."""
        for term in dict.fromkeys(pod.shape.required_anti_affinity):
            if term.matches(pod.namespace, cluster.namespace_labels(pod.namespace), pod.labels):
                yield term

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        yield from pod_term_causes.unmet_affinity(pod, nodes, ~_matches_affinity(pod, nodes, None))
        yield from pod_term_causes.own_anti_affinity(pod, nodes)
        for key, counts in _existing_anti_affinity(pod, nodes.cluster):
            yield from pod_term_causes.anti_affinity_of_others(pod, nodes, key, counts)

    # -- score

    def score(self, pod: Pod, nodes: Nodes) -> Ints | None:
        if self._ignore_existing and not pod.shape.preferred_affinity:
            return None
        cluster = nodes.cluster
        liked: Ints | None = None
        for key, pods, weights, factor in self._preferred_terms(pod, cluster):
            if not cluster.has_label(key):
                continue
            counts = cluster.by_domain(pods, key)
            if counts.any():
                counts = counts if weights is pods else cluster.by_domain(weights, key)
                more = counts[nodes.label(key).codes] * np.int64(factor)
                liked = more if liked is None else liked + more
        return None if liked is None else _normalized(liked)

    def _preferred_terms(self, pod: Pod, cluster: Cluster) -> Iterator[tuple[str, Tally, Tally, int]]:
        """Yield (topology key, pods that count, their weights, a factor) of the pod's and of existing pods' terms."""
        yield from _own_preferences(pod, cluster)
        yield from cluster.carried_sums(PREFERRED, pod)
        if self._hard_weight > 0:
            for carried in cluster.carried_sums(REQUIRED, pod):
                yield carried.topology_key, carried.pods, carried.weights, self._hard_weight

    # -- requeueing

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Pod", ("Add", "UpdatePodLabel", "Delete"), hint="pod_matters")
        yield Wake("Node", ("Add", "UpdateNodeLabel"), hint="node_matters")

    def pod_matters(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        """True if the pod itself changed, a pod for its affinity was added, or a pod of its anti-affinity was removed.

        An existing pod's anti-affinity counts, too. A term that selects namespaces by label may always match.
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
        """True if a node joined a domain that the pod's affinity may need, or left one of its anti-affinity."""
        if new is None:
            return False
        near, apart = pod.shape.required_affinity, pod.shape.required_anti_affinity
        if old is None:
            return bool(apart) or any(term.topology_key in new.labels for term in near)
        joined = any(_moved(old, new, t.topology_key) and t.topology_key in new.labels for t in near)
        return joined or any(_moved(old, new, t.topology_key) and t.topology_key in old.labels for t in apart)


def _own_preferences(pod: Pod, cluster: Cluster) -> Iterator[tuple[str, Tally, Tally, int]]:
    """Yield the same of the pod's own terms. A few have counts of their own, which pods with the same term share."""
    terms = pod.shape.preferred_affinity
    if len(terms) <= FEW_TERMS:
        for preferred in terms:
            tally = cluster.count(cluster.query(preferred.term))
            yield preferred.term.topology_key, tally, tally, preferred.weight
        return
    by_key: dict[str, list[tuple[PodQuery, int]]] = {}
    for preferred in terms:
        weighted = (cluster.query(preferred.term), preferred.weight)
        by_key.setdefault(preferred.term.topology_key, []).append(weighted)
    for key, queries in by_key.items():
        found = cluster.weigh(tuple(queries))
        yield key, found.pods, found.weights, 1


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


def _existing_anti_affinity(pod: Pod, cluster: Cluster) -> Iterator[tuple[str, Ints]]:
    """Yield per topology key how many pods of each domain have a required anti-affinity against the incoming pod."""
    for carried in cluster.carried_sums(REQUIRED_ANTI, pod):
        if not cluster.has_label(carried.topology_key):
            continue
        counts = cluster.by_domain(carried.pods, carried.topology_key)
        if counts.any():
            yield carried.topology_key, counts


def _changed_anti_affinity(pod: Pod, nodes: Nodes, changes: RowChanges) -> Iterator[Ints]:
    """Yield per topology key how many there are in each node's domain, if the node's own changes were made."""
    after: dict[str, Ints] = {}
    for key, counts in _existing_anti_affinity(pod, nodes.cluster):
        found = counts[nodes.label(key).codes]
        after[key] = after[key] + found if key in after else found
    for key, change in changes.carried(nodes.rows, REQUIRED_ANTI).items():
        if nodes.cluster.has_label(key):
            after[key] = after.get(key, 0) + change * nodes.label(key).present
    yield from after.values()


def _matches_affinity(pod: Pod, nodes: Nodes, changes: RowChanges | None) -> Bools:
    """Return the nodes in a domain of pods that match all required affinity terms, for each term's key.

    If no pod matches and the incoming pod matches its own terms, every node with the keys is right: it is the first of
    its kind.
    """
    near, keys_exist = np.ones(len(nodes), np.bool_), np.ones(len(nodes), np.bool_)
    terms = pod.shape.required_affinity
    if not terms:
        return near
    cluster = nodes.cluster
    queries = tuple(cluster.query(term) for term in terms)
    tally = cluster.count(*queries)
    change = None if changes is None else changes.count(nodes.rows, *queries)
    total: Ints | int = 0
    for term in terms:
        label = nodes.label(term.topology_key)
        counts = cluster.by_domain(tally, term.topology_key)
        total, there = total + int(counts.sum()), counts[label.codes]
        if change is not None:
            changed = change * label.present
            total, there = total + changed, there + changed
        keys_exist &= label.present
        near &= there > 0
    if all(query.matches(pod.namespace, pod.labels) for query in queries):
        return np.where(np.equal(total, 0), keys_exist, near)
    return near


def _matches_anti_affinity(pod: Pod, nodes: Nodes, changes: RowChanges | None) -> Bools:
    """Return the nodes in a domain of a pod that matches one of the required anti-affinity terms."""
    beside = np.zeros(len(nodes), np.bool_)
    cluster = nodes.cluster
    for term in pod.shape.required_anti_affinity:
        query, label = cluster.query(term), nodes.label(term.topology_key)
        counts = cluster.by_domain(cluster.count(query), term.topology_key)[label.codes]
        if changes is not None:
            counts = counts + changes.count(nodes.rows, query) * label.present
        beside |= counts > 0
    return beside


def _normalized(liked: Ints) -> Ints:
    """Return 0 for the lowest to 100 for the highest. The order of operations gives kube-scheduler's rounding."""
    least, most = int(liked.min()), int(liked.max())
    if most == least:
        return np.zeros(len(liked), np.int64)
    return (MAX_SCORE * ((liked - least) / (most - least))).astype(np.int64)
