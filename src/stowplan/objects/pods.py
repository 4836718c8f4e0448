"""Pods: a pod's value, and what is computed from it once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

from stowplan.objects.lazy_value import lazy_value
from stowplan.objects.meta import Object
from stowplan.objects.pod_parts import PodCondition, PodSpec, PodStatus
from stowplan.objects.shape import Shape, shape_of
from stowplan.objects.taints import Toleration

Value = TypeVar("Value")


class Pod(Object, frozen=True, dict=True):
    """A pod. Fields have the names of the API, in snake case.

    pod.labels.get("app"), pod.namespace, pod.priority, pod.spec.node_selector, pod.request["cpu"]
    """

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @lazy_value
    def shape(self) -> Shape:
        """What the pod's template says to a scheduler. All pods of one template share one shape."""
        return shape_of(self)

    @lazy_value
    def derived(self) -> dict[Callable[[Pod], object], object]:
        """What functions computed from this version of the pod; see `once_per_pod`. No part of the pod's value."""
        return {}

    @property
    def request(self) -> dict[str, int]:
        """The pod's requests: thousandths of a core for cpu, whole units for other resources."""
        return self.shape.request

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        return self.spec.tolerations

    @property
    def node_name(self) -> str:
        """The node that the pod is bound to."""
        return self.spec.node_name

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def scheduler_name(self) -> str:
        return self.spec.scheduler_name or "default-scheduler"

    @property
    def nominated_node(self) -> str:
        return self.status.nominated_node_name

    @property
    def finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def pending(self) -> bool:
        """True if the pod needs a node."""
        return not self.node_name and not self.finished

    @property
    def of_daemon_set(self) -> bool:
        """True if a DaemonSet owns the pod."""
        owners = self.metadata.owner_references
        return bool(owners) and any(owner.kind == "DaemonSet" for owner in owners)

    def condition(self, kind: str) -> PodCondition | None:
        return next((condition for condition in self.status.conditions if condition.type == kind), None)


def once_per_pod(compute: Callable[[Pod], Value]) -> Callable[[Pod], Value]:
    """Decorator of a function of a pod alone: it is computed once for each version of a pod."""

    @wraps(compute)
    def computed(pod: Pod) -> Value:
        derived = pod.derived
        if compute not in derived:
            derived[compute] = compute(pod)
        return cast("Value", derived[compute])

    return computed
