"""Whose annotation keeps the history of a pod for SPPriority, and which pods have none.

    Pod ──► ReplicaSet (or StatefulSet)     the seed's way: a rollout, which makes a new one, begins anew
    Pod ──► ReplicaSet ──► Deployment       stateOwner: Deployment

A pod may be heard of before its owner is. What is looked for in vain is answered by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from stowplan.columns.nodes.views import Cluster
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import Deployment, ReplicaSet, StatefulSet

Workload: TypeAlias = ReplicaSet | StatefulSet | Deployment
Kinds: TypeAlias = Mapping[str, type[Workload]]

DESIRED = "deployment.kubernetes.io/desired-replicas"  # a ReplicaSet says how many pods its Deployment wants in all


class Owners:
    def __init__(
        self, *, stateful_sets: bool, deployments: bool, excluded: frozenset[str], disable: str, single_only: bool
    ) -> None:
        """`deployments`: they keep the history of their ReplicaSets. `disable`: an annotation that pods may have."""
        self._direct: Kinds = {"ReplicaSet": ReplicaSet} | ({"StatefulSet": StatefulSet} if stateful_sets else {})
        self._above: Kinds = {"Deployment": Deployment} if deployments else {}
        self._excluded, self._disable, self._single_only = excluded, disable, single_only

    @property
    def kinds(self) -> Kinds:
        return {**self._direct, **self._above}

    def of(self, pod: Pod, cluster: Cluster) -> Workload | None:
        """Who keeps the pod's history; None for pods that the policy is not for."""
        found = self.sought(pod, cluster)
        return None if isinstance(found, str) else found

    def sought(self, pod: Pod, cluster: Cluster) -> Workload | str | None:
        """The same, or the name of who has not been heard of yet."""
        if pod.namespace in self._excluded or self._disable in pod.annotations:
            return None
        found = self.keeper(pod, cluster)
        if self._single_only and not isinstance(found, str | None) and replicas(found) > 1:
            return None
        return found

    def keeper(self, pod: Pod, cluster: Cluster) -> Workload | str | None:
        """Who keeps the pod's history, if anybody is asked to."""
        found = _controller(pod, self._direct, cluster)
        above = None if isinstance(found, str | None) else _controller(found, self._above, cluster)
        return found if above is None else above

    def keeps(self, owner: Workload, cluster: Cluster) -> bool:
        """Is it for this one to keep histories? What a Deployment is annotated with is copied to its ReplicaSets."""
        return _controller(owner, self._above, cluster) is None

    def may_be(self, found: Object, pod: Pod) -> bool:
        """Is it the pod's controller, or could it be that one's?"""
        controller = pod.controller()
        if controller is None or found.namespace != pod.namespace:
            return False
        return isinstance(found, Deployment) or (type(found).__name__, found.name) == (controller.kind, controller.name)


def replicas(owner: Workload) -> int:
    """How many pods it is to have; while a Deployment moves from one ReplicaSet to the next, both of them together."""
    own, together = owner.spec.replicas, owner.annotations.get(DESIRED, "")
    return max(1 if own is None else own, int(together) if together.isdecimal() else 0)


def _controller(owned: Object, kinds: Kinds, cluster: Cluster) -> Workload | str | None:
    """The controller of an object, if it is of one of these kinds; its name, if it has not been heard of."""
    named = owned.controller() if kinds else None
    if named is None or named.api_version != "apps/v1" or named.kind not in kinds:
        return None
    key = f"{owned.namespace}/{named.name}"
    found = cluster.get(kinds[named.kind], key)
    return found if found is not None and found.uid == named.uid else f"{named.kind} {key}"
