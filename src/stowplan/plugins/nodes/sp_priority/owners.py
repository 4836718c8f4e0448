"""The workload whose annotation has the history of a pod for SPPriority; some pods have none.

    Pod ──► ReplicaSet (or StatefulSet)     the original's way: a rollout makes a new one and begins a new history
    Pod ──► ReplicaSet ──► Deployment       stateOwner: Deployment

A pod may be seen before its owner. Then the owner's name is returned instead.
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

DESIRED = "deployment.kubernetes.io/desired-replicas"  # of a ReplicaSet: how many pods its Deployment wants in all


class Owners:
    def __init__(
        self, *, stateful_sets: bool, deployments: bool, excluded: frozenset[str], disable: str, single_only: bool
    ) -> None:
        """`deployments`: Deployments have the history of their ReplicaSets. `disable`: an annotation of excluded pods.

        `single_only`: workloads with one replica only.
        """
        self._direct: Kinds = {"ReplicaSet": ReplicaSet} | ({"StatefulSet": StatefulSet} if stateful_sets else {})
        self._above: Kinds = {"Deployment": Deployment} if deployments else {}
        self._excluded, self._disable, self._single_only = excluded, disable, single_only

    @property
    def kinds(self) -> Kinds:
        return {**self._direct, **self._above}

    def of(self, pod: Pod, cluster: Cluster) -> Workload | None:
        """Return the workload with the pod's history; None for pods that the policy ignores."""
        found = self.find(pod, cluster)
        return None if isinstance(found, str) else found

    def find(self, pod: Pod, cluster: Cluster) -> Workload | str | None:
        """Return the same, or the name of a workload that has not been seen yet."""
        if pod.namespace in self._excluded or self._disable in pod.annotations:
            return None
        found = self.history_owner(pod, cluster)
        if self._single_only and not isinstance(found, str | None) and replicas(found) > 1:
            return None
        return found

    def history_owner(self, pod: Pod, cluster: Cluster) -> Workload | str | None:
        """Return the workload that would have the pod's history, even if the policy ignores the pod."""
        found = _controller(pod, self._direct, cluster)
        above = None if isinstance(found, str | None) else _controller(found, self._above, cluster)
        return found if above is None else above

    def has_history(self, owner: Workload, cluster: Cluster) -> bool:
        """True unless a Deployment has the history: Kubernetes copies its annotations to its ReplicaSets."""
        return _controller(owner, self._above, cluster) is None

    def may_be(self, found: Object, pod: Pod) -> bool:
        """True if the object is the pod's controller, or may be the controller of that one."""
        controller = pod.controller()
        if controller is None or found.namespace != pod.namespace:
            return False
        return isinstance(found, Deployment) or (type(found).__name__, found.name) == (controller.kind, controller.name)


def replicas(owner: Workload) -> int:
    """Return how many pods the workload wants; for ReplicaSets of a Deployment, how many the Deployment wants."""
    own, desired = owner.spec.replicas, owner.annotations.get(DESIRED, "")
    return max(1 if own is None else own, int(desired) if desired.isdecimal() else 0)


def _controller(owned: Object, kinds: Kinds, cluster: Cluster) -> Workload | str | None:
    """Return the controller of an object, if it is of one of these kinds; its name, if it has not been seen."""
    named = owned.controller() if kinds else None
    if named is None or named.api_version != "apps/v1" or named.kind not in kinds:
        return None
    key = f"{owned.namespace}/{named.name}"
    found = cluster.get(kinds[named.kind], key)
    return found if found is not None and found.uid == named.uid else f"{named.kind} {key}"
