"""Moving pods to domains that have too few of them, after an edit of their policy or an uneven loss.

A pod cannot be moved: one is evicted, its owner makes another, and that one is scheduled where a place is free. So it
must be certain that this helps. A pod is evicted only if

    the policy says `rebalance: Evict`, and some domain has too few pods while another has too many
    all pods of the policy have nodes, are ready, and none is about to go: the last move has come to its end
    its owner, a ReplicaSet or StatefulSet, has as many pods as it should have: it replaces those that go
    our own decision about the pod now, by all plugins, is a node where pods are missing

The eviction API keeps disruption budgets. There is one eviction at a time, of all policies together, and a pause after
each; after a start, too, so that a scheduler that is killed again and again evicts no faster. Nothing else is
remembered: what is left to do is what the cluster shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from stowplan.columns.nodes.views import Cluster
from stowplan.objects.actions import PodRef, RequestEviction
from stowplan.objects.apportionment import places
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.workload_policies import AllocationRule, WorkloadPolicy
from stowplan.objects.workloads import ReplicaSet, StatefulSet
from stowplan.plugins.nodes.workload_policy import status
from stowplan.plugins.nodes.workload_policy.naming import policy_name

REPLACING: dict[str, type[ReplicaSet] | type[StatefulSet]] = {"ReplicaSet": ReplicaSet, "StatefulSet": StatefulSet}
MOST_TRIES, MOST_POLICIES = 5, 4  # decisions about pods of one policy, and policies to look at closely, at a time


class Imbalance(NamedTuple):
    """How many pods there are too many by domain, "" being all that are not listed; and the domains with too few."""

    surplus: dict[str, int]
    lacking: frozenset[str]


class Rebalancing:
    def __init__(self, per_minute: float) -> None:
        self._pause = 60.0 / per_minute
        self._next_at: float | None = None
        self._uneven: dict[str, None] = {}  # keys of policies; the one whose turn it is first

    @property
    def look_again_at(self) -> float | None:
        return self._next_at if self._uneven else None

    def evictions(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[RequestEviction]:
        """Return the eviction that is due now, if any."""
        if changed is None and self._next_at is None:
            self._next_at = cluster.now + self._pause
        every = cluster.every(WorkloadPolicy)
        for policy in status.affected(changed, every):
            if policy.rule.evicts and not policy.rule.problems and imbalance(policy, cluster) is not None:
                self._uneven.setdefault(policy.key)
            else:
                self._uneven.pop(policy.key, None)
        if self._next_at is not None and cluster.now < self._next_at:
            return
        for key in [key for key in self._uneven if key not in every]:
            del self._uneven[key]
        for key in list(self._uneven)[:MOST_POLICIES]:
            self._uneven[key] = self._uneven.pop(key)  # it is the last one now
            found = _eviction(every[key], cluster)
            if found is not None:
                self._next_at = cluster.now + self._pause
                yield found
                return
        if self._uneven:
            self._next_at = cluster.now + self._pause


def imbalance(policy: WorkloadPolicy, cluster: Cluster) -> Imbalance | None:
    """Return which domains have too many and too few pods; None if no move would help."""
    tally = cluster.count(policy.selected, settled="always")
    there = status.in_domains(policy.rule, tally, cluster)
    goal = _goal(policy.rule, tally.total)
    lacking = frozenset(name for name, number in goal.items() if there[name] < number)
    surplus = {name: there[name] - number for name, number in goal.items() if there[name] > number}
    if elsewhere := tally.total - sum(there.values()):
        surplus[""] = elsewhere
    return Imbalance(surplus, lacking) if lacking and surplus else None


def _goal(rule: AllocationRule, pods: int) -> Mapping[str, int]:
    """Return how many pods each domain should have. Preferred numbers are a ratio for the pods beyond them, too."""
    desired = rule.desired(pods)
    if rule.by_shares or rule.required or pods <= sum(desired.values()):
        return desired
    return places(rule.weights, pods)


def _eviction(policy: WorkloadPolicy, cluster: Cluster) -> RequestEviction | None:
    """Return the eviction of a pod whose successor would go where pods are missing."""
    found = imbalance(policy, cluster)
    if found is None or cluster.pending_count(policy.selected):
        return None
    pods = [cluster.known_pod(uid) for uid in cluster.state.uids_of(policy.selected)]
    if not all(pod is not None and _at_rest(pod) for pod in pods) or _revisions(policy.rule, pods) > 1:
        return None
    table, key = cluster.state.table, policy.rule.topology_key
    for pod in _candidates(policy, found, [pod for pod in pods if pod is not None], cluster)[:MOST_TRIES]:
        node = cluster.node_for(pod)
        if node is not None and table.label_of(node, key) in found.lacking:
            ref = PodRef(pod.namespace, pod.name, pod.uid)
            return RequestEviction(pod=ref, message=_message(policy, cluster), reporting_controller=pod.scheduler_name)
    return None


def _candidates(policy: WorkloadPolicy, found: Imbalance, pods: Sequence[Pod], cluster: Cluster) -> list[Pod]:
    """Return the pods that may go: those outside of listed domains, then of the fullest domain; the newest first."""
    weights, table = policy.rule.weights, cluster.state.table
    owned = Counter(owner.uid for pod in pods if (owner := pod.controller()) is not None)
    surplus: list[tuple[int, float, str, Pod]] = []
    for pod in pods:
        name = table.label_of(pod.node_name, policy.rule.topology_key)
        listed = name in weights
        too_many = found.surplus.get(name if listed else "", 0)
        if too_many and _is_replaced(pod, owned, cluster) and policy_name(pod, cluster) == policy.name:
            surplus.append((-too_many if listed else -len(pods), -_created(pod), pod.name, pod))
    return [pod for *_, pod in sorted(surplus, key=lambda each: each[:3])]


def _message(policy: WorkloadPolicy, cluster: Cluster) -> str:
    tally = cluster.count(policy.selected, settled="always")
    there = status.in_domains(policy.rule, tally, cluster)
    shown = status.shown(_goal(policy.rule, tally.total), there)
    return f"Evicted so that another pod takes a place that is free: WorkloadPolicy {policy.name}: {shown}"


def _at_rest(pod: Pod) -> bool:
    ready = pod.condition("Ready")
    return bool(pod.node_name) and not pod.terminating and ready is not None and ready.status == "True"


def _revisions(rule: AllocationRule, pods: Sequence[Pod | None]) -> int:
    """Return how many revisions there are, if each is counted separately; 1 otherwise."""
    keys = rule.match_label_keys
    return len({tuple(pod.labels.get(key) for key in keys) for pod in pods if pod is not None}) if keys else 1


def _is_replaced(pod: Pod, owned: Mapping[str, int], cluster: Cluster) -> bool:
    """True if we place the pod, and its owner makes another one for it: the owner has all its pods now."""
    owner = pod.controller()
    if owner is None or owner.kind not in REPLACING or not cluster.is_ours(pod):
        return False
    found = cluster.get(REPLACING[owner.kind], f"{pod.namespace}/{owner.name}")
    if found is None or found.uid != owner.uid:
        return False
    wanted = 1 if found.spec.replicas is None else found.spec.replicas
    return 0 < wanted <= owned[owner.uid]


def _created(pod: Pod) -> float:
    created = pod.metadata.creation_timestamp
    return 0.0 if created is None else created.timestamp()
