"""Which pods of a policy go first when a workload is scaled down: `controller.kubernetes.io/pod-deletion-cost`.

The ReplicaSet controller chooses the pods that it deletes, and it knows no policy. It deletes pods of lower cost first,
so costs must be there before somebody scales down. The pods of a ReplicaSet in a domain are numbered 1, 2, 3 …; the
cost of a pod is the negative of the place that belongs to its number (`apportionment`). So whatever the ReplicaSet is
scaled down to, the pods that are left have the ratio of the policy. Pods outside of the listed domains go first.

    a, weight 3:    -2  -5  -7   -10 -13 -15                      of 16 pods, 6 : 10,
    b, weight 5:    -1  -3  -4  -6  -8   -9 -11 -12 -14 -16        8 are left, 3 : 5

Numbers have no gaps. A pod that leaves is replaced by a new one, or by the one with the highest number: a change costs
one write for each pod that comes or goes. What is written is the state: after a start, pods keep the numbers that
their costs say. A second annotation, OWN, repeats the cost, to tell it from a cost that a user set, which stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from stowplan.columns.nodes.views import Cluster
from stowplan.objects.actions import Patch
from stowplan.objects.apportionment import place_of
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.workload_policies import AllocationRule, WorkloadPolicy
from stowplan.plugins.nodes.workload_policy.naming import policy_name, renamed
from stowplan.plugins.nodes.workload_policy.status import relabelled

COST = "controller.kubernetes.io/pod-deletion-cost"
OWN = "workload-policy.kosmos.io/deletion-cost"
LOWEST = -(2**31) + 1  # of pods outside of the listed domains
OBEYING = ("ReplicaSet", "ReplicationController")  # other controllers do not look at costs


class Ladder(NamedTuple):
    """Where numbers are given: among the pods of one owner in one domain ("" is outside of the listed ones)."""

    policy: str
    owner: str
    domain: str


class DeletionCosts:
    def __init__(self) -> None:
        self._policies: dict[str, WorkloadPolicy] = {}  # as the numbers were given; the last valid version of each
        self._pods: defaultdict[Ladder, dict[int, str]] = defaultdict(dict)  # uids by number
        self._numbers: dict[str, tuple[Ladder, int]] = {}  # by uid

    def patches(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Patch]:
        """Return the writes after these changes; None: look at everything."""
        if changed is None:
            for known in (self._policies, self._pods, self._numbers):
                known.clear()
        edited = self._edited(changed, cluster)
        left: defaultdict[Ladder, list[int]] = defaultdict(list)  # numbers that became free
        arriving: defaultdict[Ladder, list[Pod]] = defaultdict(list)
        for uid in self._touched(changed, edited, cluster):
            pod, before = cluster.known_pod(uid), self._numbers.get(uid)
            ladder = None if pod is None else self._ladder(pod, cluster)
            if before is not None and (before[0] != ladder or not self._has_its_cost(pod, *before)):
                left[before[0]].append(before[1])
                del self._numbers[uid], self._pods[before[0]][before[1]]
            if pod is not None and ladder is not None and uid not in self._numbers:
                arriving[ladder].append(pod)
            elif pod is not None and ladder is None and self._is_unwanted(pod, cluster):
                yield _patch(pod, None)
        for ladder in sorted({*left, *arriving}):
            yield from self._renumbered(ladder, left[ladder], arriving[ladder], cluster)

    # -- which pods to look at

    def _edited(self, changed: Sequence[Object] | None, cluster: Cluster) -> set[str]:
        """Return the policies whose spec is another one now, or that are new or gone. Their status does not matter.

        While a policy is not valid, its pods keep the costs that they have.
        """
        existing = cluster.every(WorkloadPolicy)
        keys = existing if changed is None else {each.key for each in changed if isinstance(each, WorkloadPolicy)}
        edited = set[str]()
        for key in keys:
            before, now = self._policies.get(key), existing.get(key)
            if now is None and self._policies.pop(key, None) is not None:
                edited.add(key)
            elif now is not None and not now.rule.problems and (before is None or before.spec != now.spec):
                self._policies[key] = now
                edited.add(key)
        return edited

    def _touched(self, changed: Sequence[Object] | None, edited: set[str], cluster: Cluster) -> Iterator[str]:
        """Yield the pods, by uid and each once, whose ladder or cost may be another one now."""
        found = dict.fromkeys(each.uid for each in changed or () if isinstance(each, Pod))
        for ladder, pods in self._pods.items() if edited else ():
            if ladder.policy in edited:
                found |= dict.fromkeys(pods.values())
        for key in sorted((edited | renamed(changed or ())) & self._policies.keys()):
            found |= dict.fromkeys(cluster.state.uids_of(self._policies[key].selected))
        for name in relabelled(each for each in changed or () if isinstance(each, Node)):
            found |= dict.fromkeys(pod.uid for pod in cluster.pods_on(name))
        yield from found

    def _ladder(self, pod: Pod, cluster: Cluster) -> Ladder | None:
        """Return where the pod gets its number; None if it gets none."""
        owner = pod.controller()
        if owner is None or owner.kind not in OBEYING or not pod.node_name or pod.terminating:
            return None
        if not cluster.is_ours(pod) or pod.annotations.get(COST) not in (None, pod.annotations.get(OWN)):
            return None
        name = policy_name(pod, cluster)
        policy = self._policies.get(f"{pod.namespace}/{name}") if isinstance(name, str) else None
        if policy is None or not policy.selected.matches(pod.namespace, pod.labels):
            return None
        domain = cluster.state.table.label_of(pod.node_name, policy.rule.topology_key)
        return Ladder(policy.key, owner.uid, domain if policy.rule.weights.get(domain) else "")

    def _has_its_cost(self, pod: Pod | None, ladder: Ladder, number: int) -> bool:
        """True if the pod's cost is that of its number: neither the policy nor another scheduler has changed it."""
        policy = self._policies.get(ladder.policy)
        if pod is None or policy is None:
            return False
        return pod.annotations.get(COST) == str(_cost(ladder, number, policy.rule))

    def _is_unwanted(self, pod: Pod, cluster: Cluster) -> bool:
        """True if the pod has a cost of ours, and no policy any more."""
        if COST not in pod.annotations or pod.annotations[COST] != pod.annotations.get(OWN) or pod.terminating:
            return False
        name = policy_name(pod, cluster)
        return isinstance(name, str) and cluster.get(WorkloadPolicy, f"{pod.namespace}/{name}") is None

    # -- numbers

    def _renumbered(
        self, ladder: Ladder, left: Iterable[int], arriving: Sequence[Pod], cluster: Cluster
    ) -> Iterator[Patch]:
        """Give numbers to the pods that arrive, and new ones to those whose numbers are too high now."""
        here, left = self._pods[ladder], sorted(left)
        before, after = len(here) + len(left), len(here) + len(arriving)
        free = [number for number in (*left, *range(before + 1, after + 1)) if number <= after]
        policy = self._policies.get(ladder.policy)
        if policy is None:
            del self._pods[ladder]
            return
        rule, numbers = policy.rule, dict[str, int]()  # of the pods that get one, by uid
        by_cost = {str(_cost(ladder, number, rule)): number for number in reversed(free)}
        for pod in arriving:
            number = by_cost.pop(pod.annotations.get(COST, ""), None)
            if number is not None:
                numbers[pod.uid] = number
        kept = set(numbers.values())
        too_high = (here.pop(number) for number in range(after + 1, before + 1) if number in here)
        others = [pod for pod in sorted(arriving, key=_age) if pod.uid not in numbers]
        others += [known for uid in too_high if (known := cluster.known_pod(uid)) is not None]
        rest = (number for number in free if number not in kept)
        numbers |= {pod.uid: number for pod, number in zip(others, rest, strict=True)}
        for pod in {pod.uid: pod for pod in (*arriving, *others)}.values():
            number = numbers[pod.uid]
            here[number], self._numbers[pod.uid] = pod.uid, (ladder, number)
            cost = str(_cost(ladder, number, rule))
            if pod.annotations.get(COST) != cost:
                yield _patch(pod, cost)
        if not here:
            del self._pods[ladder]


def _cost(ladder: Ladder, number: int, rule: AllocationRule) -> int:
    if not ladder.domain:
        return LOWEST
    return max(-place_of(number, ladder.domain, rule.weights), LOWEST + 1)


def _age(pod: Pod) -> tuple[float, str]:
    """The oldest first."""
    created = pod.metadata.creation_timestamp
    return 0.0 if created is None else created.timestamp(), pod.name


def _patch(pod: Pod, cost: str | None) -> Patch:
    """Return the write; None removes what we wrote. It applies to the pod with this uid only."""
    return Patch(kind="Pod", key=pod.key, body={"metadata": {"uid": pod.uid, "annotations": {COST: cost, OWN: cost}}})
