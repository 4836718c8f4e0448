"""WorkloadPolicy: so many of a workload's pods in this cluster, region or zone, so many in that one (Kosmos' CRD).

A pod names its policy by a label, or its ReplicaSet, Deployment or StatefulSet does. The policy says which label of
nodes makes a domain, how many pods each listed domain should have, and by a selector which pods those are: of the pod's
namespace, bound or on their way to a node, and not terminating. They are counted by the shared tallies, so trials
(preemption) see the counts change. Pods of DaemonSets have no policy, and take nobody's place: they are not counted.

    Required     domains that are full, not listed or missing are refused; Preferred refuses none of them
    Balance      the proportionally emptiest domain first; Fill the proportionally fullest that is not full
    overflow     (Preferred) full domains come after all others, those proportionally fullest last

How nodes are ranked is in `policy_scores.py`, what policies are told about themselves in `policy_status.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stowplan.columns.arrays import Bytes
from stowplan.columns.nodes.column_types import Labels
from stowplan.columns.nodes.table import ABSENT
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.tally import Tally
from stowplan.framework.interfaces import Evaluator, Wake
from stowplan.framework.verdict import SKIP, Decision, PostFilterResult, Refuse, Reject, Skip
from stowplan.objects import selectors, workload_policies
from stowplan.objects.actions import Patch
from stowplan.objects.affinity import PodQuery
from stowplan.objects.meta import Object, OwnerReference
from stowplan.objects.pods import Pod
from stowplan.objects.workload_policies import AllocationRule
from stowplan.objects.workloads import Deployment, ReplicaSet, StatefulSet
from stowplan.plugins.nodes.workload_policy import scores as policy_scores
from stowplan.plugins.nodes.workload_policy import status

SLASH, DOT = "workload-policy/kosmos.io", "workload-policy.kosmos.io"  # the labels of pods; the first wins
OWNERS: dict[str, type[Object]] = {"ReplicaSet": ReplicaSet, "Deployment": Deployment, "StatefulSet": StatefulSet}

FULL, HELPS = 1, 2  # a node of a domain that has enough; one where evicting the policy's pods would change that


class PolicyMatch(NamedTuple):
    """A pod's policy, and the count of the pods beside it."""

    name: str
    rule: AllocationRule
    tally: Tally


class WorkloadPolicyPlugin:
    reads = ("WorkloadPolicy", *OWNERS)
    reconciles = ("WorkloadPolicy", "Pod", "Node")
    configurable_at = ("reserve",)  # the original counts there; here the pod counts from the moment it has a node

    def __init__(self, kube_config_path: str = "") -> None:
        """`kubeConfigPath` is the original's, and not used."""
        unused = "kubeConfigPath is not used, policies are read from the cluster whose pods are scheduled"
        self.config_notes = (unused,) if kube_config_path else ()

    # -- which nodes may it have?

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Refuse | Skip | None:
        found = self._found(pod, cluster)
        if isinstance(found, Refuse):
            return found
        return None if found is not None and _refuses(found, cluster) else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        found = self._found(pod, nodes.cluster)
        if isinstance(found, Refuse):  # a configuration may leave out preFilter
            yield Reject(np.ones(len(nodes), np.bool_), found.reasons[0], resolvable=False)
        elif found is not None and found.rule.confines:
            yield from _confined(found, nodes)

    def post_filter(self, pod: Pod, decision: Decision, evaluator: Evaluator) -> PostFilterResult:  # noqa: ARG002
        """No room is made here; but whoever reads the pod's event sees how its policy stands."""
        cluster = evaluator.nodes.cluster
        found = self._found(pod, cluster)
        if found is None or isinstance(found, Refuse) or not found.rule.confines:
            return PostFilterResult()
        there = status.in_domains(found.rule, found.tally, cluster)
        return PostFilterResult((f"WorkloadPolicy {found.name}: {status.shown(found.rule.desired, there)}",))

    # -- which one is best?

    def score(self, pod: Pod, nodes: Nodes) -> Bytes | None:
        found = self._found(pod, nodes.cluster)
        if found is None or isinstance(found, Refuse):
            return None
        return policy_scores.scores(found.rule, found.tally, nodes)

    # -- what the policies are told

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterable[Patch]:
        return status.patches(changed, cluster)

    # -- what wakes a rejected pod

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("WorkloadPolicy", ("Add", "Update"), hint="its_policy")
        yield Wake("Pod", ("Delete", "Update"), hint="pod_counts")
        yield Wake("Node", ("Add", "Delete", "UpdateNodeLabel"))
        for kind in OWNERS:
            yield Wake(kind, ("Add", "Update"), hint="its_owner")

    def its_policy(
        self, pod: Pod, old: workload_policies.WorkloadPolicy | None, new: workload_policies.WorkloadPolicy
    ) -> bool:
        """Is it the pod's, or may it be, and says something else than before?"""
        named = named_by(pod.labels)
        same = old is not None and old.spec == new.spec
        return not same and new.namespace == pod.namespace and named in ("", new.name)

    def pod_counts(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        """Is it the pod itself with other labels, or a neighbour that leaves, or may count no more?"""
        if old is None or old.namespace != pod.namespace:
            return False
        return new is None or new.labels != old.labels or (new.terminating and not old.terminating)

    def its_owner(self, pod: Pod, old: Object | None, new: Object) -> bool:
        """May it name a policy for the pod, another one than before? Which Deployment is its own is not known here."""
        owner = pod.controller()
        if owner is None or new.namespace != pod.namespace or named_by(pod.labels):
            return False
        concerned = isinstance(new, Deployment) or owner.name == new.name
        return concerned and (old is None or named_by(old.labels) != named_by(new.labels))

    # --

    def _found(self, pod: Pod, cluster: Cluster) -> PolicyMatch | Refuse | None:
        """What holds for the pod, looked up once for a decision; None if nothing does."""
        held = cluster.notes.get("WorkloadPolicy")
        if held is None or held[0] is not pod:
            held = cluster.notes["WorkloadPolicy"] = (pod, _looked_up(pod, cluster))
        found: PolicyMatch | Refuse | None = held[1]
        return found


# -- a pod's policy


def named_by(labels: Mapping[str, str]) -> str:
    """The policy that labels name; empty if they name none."""
    return labels.get(SLASH) or labels.get(DOT) or ""


def _looked_up(pod: Pod, cluster: Cluster) -> PolicyMatch | Refuse | None:
    if pod.of_daemon_set:
        return None
    name = named_by(pod.labels) or _named_by_owner(pod.controller(), pod.namespace, cluster)
    if isinstance(name, Refuse):
        return name
    if not name:
        return None
    policy = cluster.get(workload_policies.WorkloadPolicy, f"{pod.namespace}/{name}")
    if policy is None:
        return _waiting(f"WorkloadPolicy {name} does not exist")
    if policy.rule.problems:
        return _waiting(f"WorkloadPolicy {name} is not valid: {'; '.join(policy.rule.problems)}")
    if not selectors.matches(policy.rule.selector, pod.labels):
        return Refuse((f"pod's labels don't match the labelSelector of WorkloadPolicy {name}",), resolvable=False)
    return PolicyMatch(name, policy.rule, cluster.count(_counted(pod, policy), settled="always"))


def _named_by_owner(owner: OwnerReference | None, namespace: str, cluster: Cluster) -> str | Refuse:
    """The policy that a pod's ReplicaSet, the Deployment of that, or its StatefulSet names.

    The watch of owners may be behind that of pods. A pod that was let go without its policy could not be called back,
    so one whose owner is not known yet waits for it.
    """
    for _ in range(2):
        if owner is None or owner.kind not in OWNERS or not owner.api_version.startswith("apps/"):
            return ""
        found = cluster.get(OWNERS[owner.kind], f"{namespace}/{owner.name}")
        if found is None or found.uid != owner.uid:  # or the one before it, of the same name
            return _waiting(f"{owner.kind} {owner.name}, which may name a WorkloadPolicy, is not known yet")
        if named_by(found.labels):
            return named_by(found.labels)
        owner = found.controller()
    return ""


def _waiting(reason: str) -> Refuse:
    return Refuse((reason,), resolvable=False, waits=True)


def _counted(pod: Pod, policy: workload_policies.WorkloadPolicy) -> PodQuery:
    """Pods that the policy selects, and of those (matchLabelKeys) only such as have the same labels as this one."""
    rule, selected = policy.rule, policy.selected
    if not rule.match_label_keys:
        return selected
    same = {key: pod.labels[key] for key in rule.match_label_keys if key in pod.labels}
    narrower = selectors.canonical([*(rule.selector or ()), *selectors.from_labels(same)])
    return PodQuery(selected.namespaces, narrower, daemons=False)


# -- domains


def _listed(rule: AllocationRule, label: Labels) -> dict[int, int]:
    """What is desired in each listed domain, by the label's code; those without nodes are left out."""
    codes = ((label.code(name), desired) for name, desired in rule.desired.items())
    return {code: desired for code, desired in codes if code is not None}


def _refuses(found: PolicyMatch, cluster: Cluster) -> bool:
    """May it refuse any node, now or once pods have the nodes they are promised? Evictions only make room."""
    rule = found.rule
    if not rule.confines:
        return False
    label = cluster.nodes.label(rule.topology_key)
    listed = _listed(rule, label)
    if not label.everywhere or label.value_count > len(listed):
        return True
    counts, more = cluster.by_domain(found.tally, label.key).tolist(), cluster.nomination_count
    return rule.required and any(counts[code] + more >= desired for code, desired in listed.items())


def _confined(found: PolicyMatch, nodes: Nodes) -> Iterator[Reject]:
    """Nodes outside of the listed domains, and (Required) in domains that have enough."""
    rule, label, what = found.rule, nodes.label(found.rule.topology_key), f"WorkloadPolicy {found.name}"
    listed = _listed(rule, label)
    if not label.everywhere:
        yield Reject(~label.present, f"node(s) didn't have label {label.key} of {what}", resolvable=False)
    if label.value_count > len(listed):
        unlisted = np.ones(label.size, np.bool_)
        unlisted[[ABSENT, *listed]] = False
        reason = f"node(s) were in domains that {what} doesn't list"
        yield Reject(unlisted[label.codes], reason, resolvable=False)
    if rule.required:
        yield from _filled(listed, label, found.tally, nodes, what)


def _filled(listed: Mapping[int, int], label: Labels, tally: Tally, nodes: Nodes, what: str) -> Iterator[Reject]:
    """Evicting the policy's pods on one node helps where that alone brings the domain below what is desired."""
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
