"""PodTopologySpread: spread matching pods over the domains of a topology key.

Hard constraints (DoNotSchedule) reject nodes whose domain would have more than maxSkew pods above the smallest count.
Soft ones (ScheduleAnyway) prefer nodes in domains with fewer pods. Pods without constraints get the configured ones,
with a selector made from their services and their owner.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.pods.row_changes import RowChanges
from stowplan.columns.tally import Tally
from stowplan.framework.cause_texts import MOST_LISTED, MOST_NAMED, few, nearest, selector_text
from stowplan.framework.causes import Cause, Detail, NodeCause
from stowplan.framework.decision import SKIP, Reject, Skip
from stowplan.framework.feature_gates import DEFAULT_GATES
from stowplan.framework.interfaces import Wake
from stowplan.framework.scoring import MAX_SCORE, rounded
from stowplan.objects import selectors
from stowplan.objects.affinity import PodQuery
from stowplan.objects.nodes import Node
from stowplan.objects.pod_parts import TopologySpreadConstraint
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import Selector
from stowplan.objects.taints import has_untolerated
from stowplan.objects.workloads import ReplicaSet, ReplicationController, StatefulSet

HOSTNAME = "kubernetes.io/hostname"
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
REASON = "node(s) didn't match pod topology spread constraints"
MISSING = f"{REASON} (missing required label)"
SYSTEM = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SOFT),
)


@dataclass(frozen=True)
class SpreadConstraint:
    key: str
    max_skew: int
    selector: Selector | None
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    compares: bool  # tolerations with Gt and Lt

    def selects(self, pod: Pod) -> bool:
        return selectors.matches(self.selector, pod.labels)


class PodTopologySpread:
    reads = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
    configurable_at = ("preScore",)
    feature_gates = DEFAULT_GATES

    def __init__(self, default_constraints: Sequence[Mapping[str, Any]] = (), defaulting_type: str = "System") -> None:
        """`defaultConstraints`: for pods that have none; `defaultingType: System`: Kubernetes' own two soft ones."""
        self._system = defaulting_type == "System"
        listed = tuple(msgspec.convert(constraint, TopologySpreadConstraint) for constraint in default_constraints)
        self._defaults = SYSTEM if self._system else listed
        self._defaults_of = {
            kind: [each for each in self._defaults if each.when_unsatisfiable == kind] for kind in (HARD, SOFT)
        }

    # -- hard constraints

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Skip | None:
        constraints = self._constraints(pod, cluster, HARD)
        # Count now, as kube-scheduler does: in a dry run of preemption a count that begins when terminating pods are
        # gone already is another one than a count that they are taken from.
        for each in constraints:
            _tally(pod, cluster, each)
        return None if constraints else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        return self._rejections(pod, nodes)

    def filter_what_if(self, pod: Pod, nodes: Nodes, changes: RowChanges) -> Iterator[Reject]:
        return self._rejections(pod, nodes, changes)

    def _rejections(self, pod: Pod, nodes: Nodes, changes: RowChanges | None = None) -> Iterator[Reject]:
        cluster = nodes.cluster
        constraints = self._constraints(pod, cluster, HARD)
        labelled = _labelled(cluster.nodes, constraints)
        refused = np.zeros(len(nodes), np.bool_)
        for constraint in constraints:
            label = nodes.label(constraint.key)
            missing = ~label.present & ~refused
            yield Reject(missing, MISSING, resolvable=False)
            refused |= missing
            eligible = labelled & _included(pod, cluster.nodes, constraint)
            counts = _domain_counts(pod, cluster, constraint, eligible)
            if changes is None:
                smallest = _smallest_count(cluster.nodes, constraint, eligible, counts)
                skew = counts[label.codes] + constraint.selects(pod) - smallest
            else:
                change = changes.count(nodes.rows, _query(pod, constraint), settled=True)
                skew = _changed_skew(pod, nodes, constraint, eligible, counts, change)
            too_many = (skew > constraint.max_skew) & ~refused
            yield Reject(too_many, REASON)
            refused |= too_many

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        cluster = nodes.cluster
        constraints = self._constraints(pod, cluster, HARD)
        labelled = _labelled(cluster.nodes, constraints)
        for constraint in constraints:
            label = nodes.label(constraint.key)
            if not label.present.all():
                yield NodeCause(~label.present, _unlabelled(constraint, cluster))
            eligible = labelled & _included(pod, cluster.nodes, constraint)
            counts = _domain_counts(pod, cluster, constraint, eligible)
            smallest = _smallest_count(cluster.nodes, constraint, eligible, counts)
            itself = int(constraint.selects(pod))
            too_many = label.present & (counts[label.codes] + itself - smallest > constraint.max_skew)
            if too_many.any():
                domains = cluster.nodes.where(eligible).label(constraint.key)
                by_name = {name: int(counts[cast("int", domains.code(name))]) for name in domains.numbers()}
                yield NodeCause(too_many, _skewed(constraint, by_name, smallest, itself))

    # -- soft constraints

    def score(self, pod: Pod, nodes: Nodes) -> Ints | None:
        cluster = nodes.cluster
        constraints = self._constraints(pod, cluster, SOFT)
        if not constraints:
            return None
        need_all = bool(pod.spec.topology_spread_constraints) or not self._system
        ignored = ~_labelled(nodes, constraints) if need_all else np.zeros(len(nodes), np.bool_)
        counted = _labelled(cluster.nodes, constraints) if need_all else np.ones(len(cluster.nodes), np.bool_)
        crowding = np.zeros(len(nodes))
        for constraint in constraints:
            crowding += _crowding(pod, nodes, constraint, ignored, counted)
        return _normalized(rounded(crowding), ignored)

    # -- constraints

    def _constraints(self, pod: Pod, cluster: Cluster, kind: str) -> list[SpreadConstraint]:
        own = pod.spec.topology_spread_constraints
        if own:
            return [self._compiled(each, _own_selector(each, pod)) for each in own if each.when_unsatisfiable == kind]
        wanted = self._defaults_of[kind]
        if not wanted:
            return []
        selector = _default_selector(pod, cluster)
        return [self._compiled(each, selector) for each in wanted] if selector else []

    def _compiled(self, each: TopologySpreadConstraint, selector: Selector | None) -> SpreadConstraint:
        return SpreadConstraint(
            each.topology_key,
            each.max_skew,
            selector,
            1 if each.min_domains is None else each.min_domains,
            (each.node_affinity_policy or "Honor") == "Honor",
            each.node_taints_policy == "Honor",
            self.feature_gates.taint_toleration_comparison_operators,
        )

    # -- requeueing

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Pod", ("Add", "UpdatePodLabel", "Delete", "UpdatePodToleration"), hint="pod_counts")
        yield Wake("Node", ("Add", "Delete", "UpdateNodeLabel", "UpdateNodeTaint"), hint="node_counts")

    def pod_counts(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        """True for the pod itself, and if a hard constraint selects the other pod either before or after the change."""
        if new is not None and new.uid == pod.uid:
            return True
        others = [other for other in (old, new) if other is not None and other.namespace == pod.namespace]
        hard = [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == HARD]
        if not hard:  # rejected by default constraints, whose selector is not known here
            return bool(others)
        chosen = [_own_selector(each, pod) for each in hard]
        return any(sum(selectors.matches(selector, other.labels) for other in others) == 1 for selector in chosen)

    def node_counts(self, pod: Pod, old: Node | None, new: Node | None) -> bool:
        """True if a node with all topology keys is added or deleted, or changes its domain or taints."""
        keys = [each.topology_key for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == HARD]
        keys = keys or [each.topology_key for each in self._defaults_of[HARD]]
        before, after = (_domains(node, keys) for node in (old, new))
        if old is None or new is None:
            return before is not None or after is not None
        return before != after or (after is not None and old.taints != new.taints)


def _unlabelled(constraint: SpreadConstraint, cluster: Cluster) -> Cause:
    whose = "the node" if cluster.has_label(constraint.key) else "no node"
    has = "has no label" if whose == "the node" else "has the label"
    near = "" if whose == "the node" else nearest((constraint.key,), sorted(cluster.state.table.label_keys)[:2000])
    text = f"topology spread by {constraint.key}: {whose} {has} {constraint.key}"
    details: dict[str, Detail] = {
        "topologyKey": constraint.key,
        "noNode": whose == "no node",
        "nearestKey": near or None,
    }
    return Cause("spread-label", text + (f" (there is {near})" if near else ""), details)


def _skewed(constraint: SpreadConstraint, counts: Mapping[str, int], smallest: int, itself: int) -> Cause:
    """The counts of domains, the largest first, and which count is the smallest."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    shown = few([f"{name} {count}" for name, count in ordered[:MOST_NAMED]], len(ordered))
    of = selector_text(constraint.selector)
    text = f"topology spread by {constraint.key}, maxSkew {constraint.max_skew}, of {of}: "
    if 0 < len(counts) < constraint.min_domains:
        least = f"; 0 is the smallest count, as minDomains is {constraint.min_domains}"
    else:
        fewest = [name for name, count in ordered if count == smallest]
        least = f"; the smallest count is {smallest}" if len(ordered) > MOST_NAMED else ""
        least += f" ({few(fewest)})" if least and fewest else ""
    details: dict[str, Detail] = {
        "topologyKey": constraint.key,
        "maxSkew": constraint.max_skew,
        "selector": selector_text(constraint.selector),
        "counts": dict(ordered[:MOST_LISTED]),
        "domains": len(counts),
        "smallest": smallest,
        "selectsThePod": bool(itself),
    }
    return Cause("spread-skew", f"{text}{shown or 'none'}{least}", details)


def _domains(node: Node | None, keys: list[str]) -> list[str] | None:
    """Return a node's domain for each key; None if a key is missing."""
    if node is None or any(key not in node.labels for key in keys):
        return None
    return [node.labels[key] for key in keys]


def _own_selector(constraint: TopologySpreadConstraint, pod: Pod) -> Selector | None:
    selector = selectors.compile_selector(constraint.label_selector)
    if selector is None or not constraint.match_label_keys:
        return selector
    same = {key: pod.labels[key] for key in constraint.match_label_keys if key in pod.labels}
    return selectors.canonical([*selector, *selectors.from_labels(same)])


def _default_selector(pod: Pod, cluster: Cluster) -> Selector:
    """Return the selectors of the pod's services and owner, joined; empty if there are none."""
    together: dict[str, str] = {}
    for service in cluster.services_of(pod):
        together.update(service.spec.selector)
    owner = pod.controller()
    if owner is None:
        return selectors.from_labels(together) if together else ()
    key = f"{pod.namespace}/{owner.name}"
    found: Selector | None = None
    match owner.api_version, owner.kind:
        case "v1", "ReplicationController":
            controller = cluster.get(ReplicationController, key)
            together.update(controller.spec.selector if controller is not None else {})
        case "apps/v1", "ReplicaSet":
            replicas = cluster.get(ReplicaSet, key)
            found = selectors.compile_selector(replicas.spec.selector) if replicas is not None else None
        case "apps/v1", "StatefulSet":
            stateful = cluster.get(StatefulSet, key)
            found = selectors.compile_selector(stateful.spec.selector) if stateful is not None else None
    if not together:
        return found or ()
    return selectors.canonical([*selectors.from_labels(together), *(found or ())])


def _labelled(nodes: Nodes, constraints: list[SpreadConstraint]) -> Bools:
    """Return the nodes with the topology keys of all constraints."""
    labelled = np.ones(len(nodes), np.bool_)
    for constraint in constraints:
        labelled &= nodes.label(constraint.key).present
    return labelled


def _included(pod: Pod, nodes: Nodes, constraint: SpreadConstraint) -> Bools:
    """Return the nodes that the constraint's inclusion policies count."""
    included = np.ones(len(nodes), np.bool_)
    shape = pod.shape
    if constraint.honors_affinity:
        if shape.node_labels:
            included &= nodes.matching(shape.node_labels)
        if shape.node_terms is not None:
            included &= nodes.matching_any(shape.node_terms)
    if constraint.honors_taints and not nodes.taints.all_empty():
        compares = constraint.compares
        included &= ~nodes.taints.where(lambda taints: has_untolerated(taints, pod.tolerations, compares=compares))
    return included


def _tally(pod: Pod, cluster: Cluster, constraint: SpreadConstraint) -> Tally:
    """Return the count of pods of the same namespace that the constraint selects, without terminating ones."""
    return cluster.count(_query(pod, constraint), settled=True)


def _query(pod: Pod, constraint: SpreadConstraint) -> PodQuery:
    return PodQuery(frozenset((pod.namespace,)), constraint.selector)


def _domain_counts(
    pod: Pod, cluster: Cluster, constraint: SpreadConstraint, eligible: Bools, *, unlabelled: bool = False
) -> Ints:
    """Return how many selected pods each domain has on eligible nodes, by the label's code."""
    among = None if eligible.all() else cluster.nodes.over_all_rows(eligible)
    return cluster.by_domain(_tally(pod, cluster, constraint), constraint.key, among, unlabelled=unlabelled)


def _smallest_count(nodes: Nodes, constraint: SpreadConstraint, eligible: Bools, counts: Ints) -> int:
    """Return the smallest count of a domain; 0 if there are fewer domains than minDomains."""
    there, number = _domains_there(nodes, constraint, eligible, len(counts))
    return 0 if number < constraint.min_domains or number == 0 else int(counts[there].min())


def _domains_there(nodes: Nodes, constraint: SpreadConstraint, eligible: Bools, size: int) -> tuple[Bools, int]:
    """Return which codes are domains with an eligible node, and their number."""
    codes = nodes.label(constraint.key).codes
    there: Bools = np.bincount(codes if eligible.all() else codes[eligible], minlength=size) > 0
    there[0] = False
    return there, int(there.sum())


def _changed_skew(
    pod: Pod, nodes: Nodes, constraint: SpreadConstraint, eligible: Bools, counts: Ints, change: Ints
) -> Ints:
    """Return the skew of each node's domain, if its count changed by as much as pods on that node do."""
    all_nodes, codes = nodes.cluster.nodes, nodes.label(constraint.key).codes
    counted = all_nodes.over_all_rows(eligible)[nodes.rows]
    after = counts[codes] + change * counted
    there, number = _domains_there(all_nodes, constraint, eligible, len(counts))
    skew: Ints = after + constraint.selects(pod)
    if number >= max(constraint.min_domains, 1):
        domains = there.nonzero()[0]
        at = int(counts[domains].argmin())
        smallest = int(counts[domains[at]])
        smallest_other = int(np.delete(counts[domains], at).min(initial=np.iinfo(np.int64).max))
        others = np.where(codes == domains[at], smallest_other, smallest)
        skew = skew - np.where(counted == 1, np.minimum(after, others), smallest)
    return skew


def _crowding(pod: Pod, nodes: Nodes, constraint: SpreadConstraint, ignored: Bools, counted: Bools) -> Floats:
    """Return the pods in each node's domain, weighted by the number of domains."""
    cluster, label = nodes.cluster, nodes.label(constraint.key)
    present, seen = label.present, ~ignored
    if constraint.key == HOSTNAME:
        number = int(seen.sum())
        counts = nodes.counts_of(_tally(pod, cluster, constraint))
    else:
        codes = label.codes
        empty = label.code("")  # a node without the label is in the domain ""
        shown = codes if empty is None else np.where(codes == empty, 0, codes)
        number = int((np.bincount(shown[seen], minlength=label.size) > 0).sum())
        eligible = counted & _included(pod, cluster.nodes, constraint)
        by_code = _domain_counts(pod, cluster, constraint, eligible, unlabelled=empty is not None)
        if empty is not None:
            by_code[empty] += by_code[0]
        counts = by_code[codes]
    weight = math.log(number + 2)
    return np.where(present, counts * weight + (constraint.max_skew - 1), 0.0)


def _normalized(crowding: Ints, ignored: Bools) -> Ints:
    """Return scores: the fewer pods, the higher; 0 for ignored nodes."""
    seen = crowding[~ignored]
    most, least = int(seen.max(initial=0)), int(seen.min()) if len(seen) else 0
    if most == 0:
        scores = np.full(len(crowding), MAX_SCORE, np.int64)
    else:
        scores = MAX_SCORE * (most + least - crowding) // most
    scores[ignored] = 0
    return scores
