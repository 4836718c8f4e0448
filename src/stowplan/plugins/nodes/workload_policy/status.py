"""The status of WorkloadPolicies: how many pods each domain should have, has, and still has a place for.

    Valid       the policy can be used; if not, why
    Satisfied   each domain has at least as many pods as it should have

A policy is looked at if it changed, or if a pod that it selects was added, changed or deleted. A change of a node
affects all policies. Only a status that differs is written. The writer sets the time of a transition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.tally import Tally
from stowplan.framework.interfaces import Gauge
from stowplan.objects import selectors
from stowplan.objects.actions import Patch
from stowplan.objects.meta import Condition, Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.workload_policies import AllocationRule, DomainStatus, WorkloadPolicy, WorkloadPolicyStatus

MOST_SHOWN = 8  # domains in a message
MOST_IN_METRICS = 10_000  # domains, of all policies together
DESIRED_PODS = "Pods of a WorkloadPolicy that a domain should have."
PODS = "Pods of a WorkloadPolicy that a domain has."
ELSEWHERE = "Pods of a WorkloadPolicy on nodes outside of its domains."
PENDING_PODS = "Pods of a WorkloadPolicy without a node."
NO_EVICTIONS = "rebalance: Evict has no effect, since the scheduler's configuration sets no evictionsPerMinute"


def patches(changed: Sequence[Object] | None, cluster: Cluster, *, evicts: bool = False) -> Iterator[Patch]:
    """`evicts`: the scheduler may evict pods for policies that say so."""
    for policy in affected(changed, cluster.every(WorkloadPolicy)):
        status = _with_times(status_of(policy, cluster, evicts=evicts), policy.status)
        if status != policy.status:
            yield Patch(kind="WorkloadPolicy", key=policy.key, body={"status": _written(status)})


def in_domains(rule: AllocationRule, tally: Tally, cluster: Cluster) -> dict[str, int]:
    """Return how many of the counted pods each listed domain has."""
    label, sums = cluster.nodes.label(rule.topology_key), cluster.by_domain(tally, rule.topology_key)
    codes = {name: label.code(name) for name in rule.weights}
    return {name: 0 if code is None else int(sums[code]) for name, code in codes.items()}


def shown(desired: Mapping[str, int], there: Mapping[str, int]) -> str:
    """Return "member 1/1, host 3/3"."""
    parts = [f"{name} {there[name]}/{wanted}" for name, wanted in list(desired.items())[:MOST_SHOWN]]
    more = len(desired) - MOST_SHOWN
    return ", ".join(parts) + (f" and {more} more" if more > 0 else "")


# -- which policies to look at


def affected(changed: Sequence[Object] | None, every: Mapping[str, WorkloadPolicy]) -> list[WorkloadPolicy]:
    if changed is None or relabelled(each for each in changed if isinstance(each, Node)):
        return list(every.values())
    own = {each.key for each in changed if isinstance(each, WorkloadPolicy)}
    pods: defaultdict[str, set[frozenset[tuple[str, str]]]] = defaultdict(set)
    for each in changed:
        if isinstance(each, Pod):
            pods[each.namespace].add(frozenset(each.labels.items()))
    return [policy for key, policy in every.items() if key in own or _selects(policy, pods.get(policy.namespace, ()))]


def _selects(policy: WorkloadPolicy, label_sets: Iterable[frozenset[tuple[str, str]]]) -> bool:
    return any(selectors.matches(policy.rule.selector, dict(labels)) for labels in label_sets)


def relabelled(nodes: Iterable[Node]) -> list[str]:
    """Return the nodes that are new or gone, or have other labels. An update has two versions, the others have one."""
    versions: defaultdict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        versions[node.name].append(node)
    found = versions.items()
    return [name for name, each in found if len(each) % 2 or any(node.labels != each[0].labels for node in each)]


# -- the status


def status_of(policy: WorkloadPolicy, cluster: Cluster, *, evicts: bool = False) -> WorkloadPolicyStatus:
    """Return the status by the pods as they are now. All revisions of a workload count, even with matchLabelKeys."""
    rule = policy.rule
    if rule.problems:
        return WorkloadPolicyStatus(policy.metadata.generation, conditions=tuple(_conditions(policy, {}, {})))
    tally = cluster.count(policy.selected, settled="always")
    there, waiting = in_domains(rule, tally, cluster), cluster.pending_count(policy.selected)
    wanted = rule.desired(tally.total + waiting)
    return WorkloadPolicyStatus(
        observed_generation=policy.metadata.generation,
        desired=sum(wanted.values()),
        current=sum(there.values()),
        elsewhere=tally.total - sum(there.values()),
        pending=waiting,
        domains=tuple(_domain(name, desired, there[name], waiting) for name, desired in wanted.items()),
        conditions=tuple(_conditions(policy, wanted, there, evicts=evicts)),
    )


def _domain(name: str, desired: int, current: int, waiting: int) -> DomainStatus:
    """Return a domain's status. As many of the waiting pods as there is a place for are pending."""
    return DomainStatus(name, desired, current, min(max(desired - current, 0), waiting))


def _conditions(
    policy: WorkloadPolicy, wanted: Mapping[str, int], there: Mapping[str, int], *, evicts: bool = False
) -> Iterator[Condition]:
    rule, generation = policy.rule, policy.metadata.generation
    if rule.problems:
        yield Condition("Valid", "False", "Invalid", "; ".join(rule.problems), generation)
        yield Condition("Satisfied", "Unknown", "Invalid", "the policy is not in force", generation)
        return
    remarks = (*rule.remarks, *((NO_EVICTIONS,) if rule.evicts and not evicts else ()))
    yield Condition("Valid", "True", "Accepted", "; ".join(remarks), generation)
    satisfied = all(there[name] >= desired for name, desired in wanted.items())
    status, reason = ("True", "Filled") if satisfied else ("False", "PlacesLeft")
    yield Condition("Satisfied", status, reason, shown(wanted, there), generation)


# -- metrics


def gauges(cluster: Cluster) -> Iterator[Gauge]:
    """Yield the numbers of the status of all valid policies.

    Users write policies, so the number of domains in metrics is limited. Those with the longest lists are left out.
    """
    valid = (policy for policy in cluster.every(WorkloadPolicy).values() if not policy.rule.problems)
    left = MOST_IN_METRICS
    for policy in sorted(valid, key=lambda each: len(each.rule.weights)):
        status, names = status_of(policy, cluster), {"namespace": policy.namespace, "policy": policy.name}
        left -= len(status.domains)
        for domain in status.domains if left >= 0 else ():
            labels = {**names, "domain": domain.name}
            yield Gauge("workload_policy_desired_pods", DESIRED_PODS, domain.desired, labels)
            yield Gauge("workload_policy_pods", PODS, domain.current, labels)
        yield Gauge("workload_policy_pods_elsewhere", ELSEWHERE, status.elsewhere, names)
        yield Gauge("workload_policy_pending_pods", PENDING_PODS, status.pending, names)


# -- the patch


def _with_times(status: WorkloadPolicyStatus, before: WorkloadPolicyStatus) -> WorkloadPolicyStatus:
    """Return the status with the old transition times of conditions that did not change."""
    since = {(each.type, each.status): each.last_transition_time for each in before.conditions}
    conditions = (
        msgspec.structs.replace(each, last_transition_time=since.get((each.type, each.status)))
        for each in status.conditions
    )
    return msgspec.structs.replace(status, conditions=tuple(conditions))


def _written(status: WorkloadPolicyStatus) -> dict[str, Any]:
    """Return every field, zeros included: a merge patch does not change fields that are left out."""
    body: dict[str, Any] = msgspec.to_builtins(status)
    for condition in body["conditions"]:
        if condition["lastTransitionTime"] is None:
            del condition["lastTransitionTime"]
    return body
