"""WorkloadPolicy: how many pods of a workload each cluster, region or zone should have (Kosmos' CRD).

A label of the pod, or of its ReplicaSet, Deployment or StatefulSet, names the policy. The policy says which node label
makes a domain, how many pods each listed domain should have, and by a selector which pods count: those of the pod's
namespace, bound or assumed, and not terminating. The shared tallies count them, so counts change in trials, too
(preemption). Pods of DaemonSets have no policy and are not counted.

    Required     nodes of domains that are full, not listed or missing are rejected; Preferred rejects none of them
    Balance      the proportionally emptiest domain is best; Fill: the proportionally fullest one that is not full
    overflow     (Preferred) full domains come after all others, the proportionally fullest last
    percentages  are of the policy's pods that exist, with or without a node: each further pod has one place more

`scores.py` ranks the nodes, `status.py` writes the status of policies, `deletion_costs.py` says which pods go first
when a workload is scaled down, `rebalancing.py` moves pods after an edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from stowplan.columns.arrays import Bytes
from stowplan.columns.nodes.column_types import Labels
from stowplan.columns.nodes.table import ABSENT
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.tally import Tally
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import SKIP, Decision, PostFilterResult, Reject, RejectPod, Skip
from stowplan.framework.interfaces import Evaluator, Gauge, Wake
from stowplan.objects import selectors, workload_policies
from stowplan.objects.actions import Write
from stowplan.objects.affinity import PodQuery
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object, OwnerReference
from stowplan.objects.pods import Pod
from stowplan.objects.workload_policies import AllocationRule
from stowplan.objects.workloads import Deployment
from stowplan.plugins.nodes.workload_policy import causes, status
from stowplan.plugins.nodes.workload_policy import scores as policy_scores
from stowplan.plugins.nodes.workload_policy.deletion_costs import DeletionCosts
from stowplan.plugins.nodes.workload_policy.naming import OWNERS, named_by, policy_name
from stowplan.plugins.nodes.workload_policy.rebalancing import Rebalancing

MOST_EVICTIONS = 60  # a minute
FULL, HELPS = 1, 2  # a node of a full domain; a node where the eviction of the policy's pods would change that


class PolicyMatch(NamedTuple):
    """A pod's policy, the pods of it that count, and their number by node."""

    pod: Pod
    name: str
    rule: AllocationRule
    query: PodQuery
    tally: Tally

    def desired(self, cluster: Cluster) -> Mapping[str, int]:
        """Return how many pods each listed domain should have now: in a trial there may be fewer pods."""
        pods = cluster.existing_count(self.query, with_pod=self.pod) if self.rule.by_shares else 0
        return self.rule.desired(pods)


class WorkloadPolicyPlugin:
    reads = ("WorkloadPolicy", *OWNERS)
    writes: Mapping[str, tuple[str, ...]] = MappingProxyType({"WorkloadPolicy": ("status",)})
    reconciles: tuple[str, ...] = ("WorkloadPolicy", "Pod", "Node")
    retries_by_object = True
    configurable_at = ("reserve",)  # the original counts there; here an assumed pod counts at once

    one_for_all = True  # it writes for all profiles

    def __init__(
        self, kube_config_path: str = "", deletion_cost: bool = False, evictions_per_minute: float = 0.0
    ) -> None:
        """`deletionCost`: write costs to pods, so that scaling down keeps the ratio; the right to patch pods is needed.

        `evictionsPerMinute`: how many pods may be evicted for all policies that say `rebalance: Evict`; the right to
        create evictions is needed. 0: none.

        `kubeConfigPath` is an argument of the original, and not used.
        """
        unused = "kubeConfigPath is not used, policies are read from the cluster whose pods are scheduled"
        self.config_notes = (unused,) if kube_config_path else ()
        if not 0 <= evictions_per_minute <= MOST_EVICTIONS:
            problem = f"evictionsPerMinute is {evictions_per_minute:g}"
            raise ConfigError(problem, remedy=f"choose 0 (none) to {MOST_EVICTIONS}; 0.5 is one in two minutes")
        self._costs = DeletionCosts() if deletion_cost else None
        if deletion_cost:
            self.reconciles = (*self.reconciles, *OWNERS)  # their labels name policies
        self._rebalancing = Rebalancing(evictions_per_minute) if evictions_per_minute else None
        of_pods = [word for word, wanted in (("patch", deletion_cost), ("evict", evictions_per_minute)) if wanted]
        if of_pods:
            self.writes = {**self.writes, "Pod": tuple(of_pods)}

    # -- filtering

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | Skip | None:
        found = self._found(pod, cluster)
        if isinstance(found, RejectPod):
            return found
        return None if found is not None and _may_reject(found, cluster) else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        found = self._found(pod, nodes.cluster)
        if isinstance(found, RejectPod):  # reached only if a configuration disables preFilter
            yield Reject(np.ones(len(nodes), np.bool_), found.reasons[0], resolvable=False)
        elif found is not None and found.rule.confines:
            yield from _rejections(found, nodes)

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        found = self._found(pod, nodes.cluster)
        if isinstance(found, RejectPod):
            everywhere = np.ones(len(nodes), np.bool_)
            yield from (NodeCause(everywhere, cause) for cause in causes.of_pod(pod, nodes.cluster))
        elif found is not None:
            yield from causes.of_nodes(found.name, found.rule, found.desired(nodes.cluster), found.tally, nodes)

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterator[Cause]:
        return causes.of_pod(pod, cluster)

    def post_filter(self, pod: Pod, decision: Decision, evaluator: Evaluator) -> PostFilterResult:  # noqa: ARG002
        """Add the state of the policy to the pod's message. Nothing is preempted here."""
        cluster = evaluator.nodes.cluster
        found = self._found(pod, cluster)
        if found is None or isinstance(found, RejectPod) or not found.rule.confines:
            return PostFilterResult()
        there = status.in_domains(found.rule, found.tally, cluster)
        return PostFilterResult((f"WorkloadPolicy {found.name}: {status.shown(found.desired(cluster), there)}",))

    # -- scoring

    def score(self, pod: Pod, nodes: Nodes) -> Bytes | None:
        found = self._found(pod, nodes.cluster)
        if found is None or isinstance(found, RejectPod):
            return None
        return policy_scores.scores(found.rule, found.desired(nodes.cluster), found.tally, nodes)

    # -- what is written

    @property
    def reconcile_at(self) -> float | None:
        return None if self._rebalancing is None else self._rebalancing.look_again_at

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterable[Write]:
        yield from status.patches(changed, cluster, evicts=self._rebalancing is not None)
        if self._costs is not None:
            yield from self._costs.patches(changed, cluster)
        if self._rebalancing is not None:
            yield from self._rebalancing.evictions(changed, cluster)

    def gauges(self, cluster: Cluster) -> Iterator[Gauge]:
        return status.gauges(cluster)

    # -- requeueing

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("WorkloadPolicy", ("Add", "Update"), hint="its_policy")
        yield Wake("Pod", ("Delete", "Update"), hint="pod_counts")
        yield Wake("Node", ("Add", "Delete", "UpdateNodeLabel"))
        for kind in OWNERS:
            yield Wake(kind, ("Add", "Update"), hint="its_owner")

    def its_policy(
        self, pod: Pod, old: workload_policies.WorkloadPolicy | None, new: workload_policies.WorkloadPolicy
    ) -> bool:
        """True if the policy is or may be the pod's, and its spec changed."""
        named = named_by(pod.labels)
        same = old is not None and old.spec == new.spec
        return not same and new.namespace == pod.namespace and named in ("", new.name)

    def pod_counts(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        """True if a pod of the namespace was deleted, is terminating now, or has other labels."""
        if old is None or old.namespace != pod.namespace:
            return False
        return new is None or new.labels != old.labels or (new.terminating and not old.terminating)

    def its_owner(self, pod: Pod, old: Object | None, new: Object) -> bool:
        """True if a possible owner of the pod names another policy than before. Any Deployment may be the pod's."""
        owner = pod.controller()
        if owner is None or new.namespace != pod.namespace or named_by(pod.labels):
            return False
        concerned = isinstance(new, Deployment) or owner.name == new.name
        return concerned and (old is None or named_by(old.labels) != named_by(new.labels))

    def _found(self, pod: Pod, cluster: Cluster) -> PolicyMatch | RejectPod | None:
        """Return the pod's policy, looked up once for a decision; None if the pod has none."""
        cached = cluster.notes.get("WorkloadPolicy")
        if cached is None or cached[0] is not pod:
            cached = cluster.notes["WorkloadPolicy"] = (pod, _policy_of(pod, cluster))
        found: PolicyMatch | RejectPod | None = cached[1]
        return found


# -- a pod's policy


def _policy_of(pod: Pod, cluster: Cluster) -> PolicyMatch | RejectPod | None:
    name = policy_name(pod, cluster)
    if isinstance(name, OwnerReference):
        # The watch of owners may be behind the watch of pods. A pod that is bound without its policy cannot be moved.
        return _waiting(f"{name.kind} {name.name}, which may name a WorkloadPolicy, is not known yet")
    if not name:
        return None
    policy = cluster.get(workload_policies.WorkloadPolicy, f"{pod.namespace}/{name}")
    if policy is None:
        return _waiting(f"WorkloadPolicy {name} does not exist")
    if policy.rule.problems:
        return _waiting(f"WorkloadPolicy {name} is not valid: {'; '.join(policy.rule.problems)}")
    if not selectors.matches(policy.rule.selector, pod.labels):
        return RejectPod((f"pod's labels don't match the labelSelector of WorkloadPolicy {name}",), resolvable=False)
    query = _counted(pod, policy)
    return PolicyMatch(pod, name, policy.rule, query, cluster.count(query, settled="always"))


def _waiting(reason: str) -> RejectPod:
    return RejectPod((reason,), resolvable=False, waits=True)


def _counted(pod: Pod, policy: workload_policies.WorkloadPolicy) -> PodQuery:
    """Return the query for the policy's pods; with matchLabelKeys, only those with the same values as this pod."""
    rule, selected = policy.rule, policy.selected
    if not rule.match_label_keys:
        return selected
    same = {key: pod.labels[key] for key in rule.match_label_keys if key in pod.labels}
    narrower = selectors.canonical([*(rule.selector or ()), *selectors.from_labels(same)])
    return PodQuery(selected.namespaces, narrower, daemons=False)


# -- domains


def _listed(wanted: Mapping[str, int], label: Labels) -> dict[int, int]:
    """Return how many pods each listed domain should have, by the label's code. Domains without nodes are left out."""
    codes = ((label.code(name), desired) for name, desired in wanted.items())
    return {code: desired for code, desired in codes if code is not None}


def _may_reject(found: PolicyMatch, cluster: Cluster) -> bool:
    """True if the policy may reject a node, now or with all nominated pods on their nodes. Evictions only free room."""
    rule = found.rule
    if not rule.confines:
        return False
    if rule.required and rule.by_shares:  # an eviction may take a place away
        return True
    label = cluster.nodes.label(rule.topology_key)
    listed = _listed(rule.weights, label)
    if not label.everywhere or label.value_count > len(listed):
        return True
    counts, more = cluster.by_domain(found.tally, label.key).tolist(), cluster.nomination_count
    return rule.required and any(counts[code] + more >= desired for code, desired in listed.items())


def _rejections(found: PolicyMatch, nodes: Nodes) -> Iterator[Reject]:
    """Reject nodes outside of the listed domains, and (Required) in full domains."""
    rule, label, what = found.rule, nodes.label(found.rule.topology_key), f"WorkloadPolicy {found.name}"
    listed = _listed(found.desired(nodes.cluster), label)
    if not label.everywhere:
        yield Reject(~label.present, f"node(s) didn't have label {label.key} of {what}", resolvable=False)
    if label.value_count > len(listed):
        unlisted = np.ones(label.size, np.bool_)
        unlisted[[ABSENT, *listed]] = False
        reason = f"node(s) were in domains that {what} doesn't list"
        yield Reject(unlisted[label.codes], reason, resolvable=False)
    if rule.required:
        yield from _in_full_domains(listed, label, found.tally, nodes, what)


def _in_full_domains(
    listed: Mapping[int, int], label: Labels, tally: Tally, nodes: Nodes, what: str
) -> Iterator[Reject]:
    """Reject nodes in full domains.

    Evictions help on a node if the policy's pods there are enough to bring the domain below its number.
    """
    cluster = nodes.cluster
    counts = cluster.by_domain(tally, label.key).tolist()
    over = {code: counts[code] - desired for code, desired in listed.items() if counts[code] >= desired}
    if not over:
        return
    domains = cluster.domain_counts(tally, label.key)
    full = np.zeros((label.size, domains.width), np.uint8)
    for code, more in over.items():
        full[code] = FULL
        full[code, more + 1 :] = HELPS
    found = full.ravel().take(nodes.pick(domains.pair_of))
    yield Reject(found > 0, f"node(s) were in domains that {what} has filled", resolvable=found == HELPS)
