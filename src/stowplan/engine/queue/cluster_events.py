"""What happened to the cluster, in kube-scheduler's words: the events that may make a rejected pod schedulable.

A change of an object becomes one happening per aspect that changed. Plugins register for them (`Wake`); an update of
any kind also answers to "Update", and a pod on a node or not to "Pod".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from stowplan.engine.pods import assumed
from stowplan.framework.interfaces import Wake
from stowplan.objects import requests
from stowplan.objects.applications import DRIVER, identity
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import KIND, ResourceReservation, vacated

ASSIGNED, UNSCHEDULED = "AssignedPod", "UnschedulablePod"
PENDING_DRIVER = "PendingDriver"


class ClusterEvent(msgspec.Struct, frozen=True):
    resource: str
    action: str
    old: Any = None
    new: Any = None

    @property
    def label(self) -> str:
        """How metrics call it: AssignedPodDelete, NodeAdd."""
        return f"{self.resource}{self.action}"


EVERYTHING = ClusterEvent("*", "*")  # wakes every pod, whatever rejected it


def pod_left(pod: Pod, node_name: str) -> ClusterEvent:
    """What it means to others that a pod does not use its room on this node any more."""
    return ClusterEvent(ASSIGNED, "Delete", assumed(pod, node_name), None)


def concerns(wake: Wake, happening: ClusterEvent) -> bool:
    """Did a plugin register for this?"""
    pods = wake.resource == "Pod" and happening.resource in (ASSIGNED, UNSCHEDULED)
    if wake.resource not in (happening.resource, "*") and not pods:
        return False
    any_update = "Update" in wake.actions and happening.action.startswith("Update")
    return happening.action in wake.actions or any_update or "*" in wake.actions


def of(old: Object | None, new: Object | None) -> Iterator[ClusterEvent]:
    """What a change from one version of an object to the next means."""
    found = new if new is not None else old
    if isinstance(found, Pod):
        yield from _of_pod(old, new)  # type: ignore[arg-type]
    elif isinstance(found, ResourceReservation):
        yield from _of_reservation(old, new)  # type: ignore[arg-type]
    elif old is None or new is None:
        yield ClusterEvent(type(found).__name__, "Add" if old is None else "Delete", old, new)
    elif isinstance(old, Node) and isinstance(new, Node):
        yield from (ClusterEvent("Node", action, old, new) for action in _node_updates(old, new))
    elif old != new:
        yield ClusterEvent(type(found).__name__, "Update", old, new)


def _node_updates(old: Node, new: Node) -> Iterator[str]:
    if old.status.allocatable != new.status.allocatable:
        yield "UpdateNodeAllocatable"
    if old.labels != new.labels:
        yield "UpdateNodeLabel"
    if old.taints != new.taints or (old.spec.unschedulable and not new.spec.unschedulable):
        yield "UpdateNodeTaint"
    if old.status.conditions != new.status.conditions:
        yield "UpdateNodeCondition"
    if old.annotations != new.annotations:
        yield "UpdateNodeAnnotation"
    if old.status.declared_features != new.status.declared_features:
        yield "UpdateNodeDeclaredFeature"


def _of_reservation(old: ResourceReservation | None, new: ResourceReservation | None) -> Iterator[ClusterEvent]:
    """Room that is no longer held is, to whoever waits for room, what a pod leaves behind."""
    if old is None or new is None or old.spec != new.spec or old.owner != new.owner:
        yield ClusterEvent(KIND, "Add" if old is None else "Delete" if new is None else "Update", old, new)
    yield from (ClusterEvent(ASSIGNED, "Delete", left, None) for left in vacated(old, new))


def _of_pod(old: Pod | None, new: Pod | None) -> Iterator[ClusterEvent]:
    """Pods come to nodes, go from them and change there; one without a node changes, which concerns itself alone."""
    was, now = _sort(old), _sort(new)
    if was == now == ASSIGNED or was == now == UNSCHEDULED:
        assert old is not None and new is not None
        yield from (ClusterEvent(now, action, old, new) for action in _pod_updates(old, new))
        return
    if was == ASSIGNED:
        yield ClusterEvent(was, "Delete", old, None)
    if was == UNSCHEDULED and not now and old is not None and identity(old).role == DRIVER:
        yield ClusterEvent(PENDING_DRIVER, "Delete", old, None)  # others may have to wait for their turn
    if now == ASSIGNED:
        yield ClusterEvent(now, "Add", None, new)


def _sort(pod: Pod | None) -> str:
    if pod is None or pod.finished:
        return ""
    return ASSIGNED if pod.node_name else UNSCHEDULED


def _pod_updates(old: Pod, new: Pod) -> Iterator[str]:
    special = list(_special_updates(old, new))
    yield from special or (["Update"] if _by_others(old) != _by_others(new) else [])


def _by_others(pod: Pod) -> Any:
    """What others than a scheduler write: waking a pod by what was just said about it would never end."""
    said = pod.status
    conditions = [each for each in said.conditions if each.type != "PodScheduled"]
    status = msgspec.structs.replace(said, conditions=tuple(conditions), nominated_node_name="")
    return pod.labels, pod.annotations, pod.terminating, pod.spec, status


def _special_updates(old: Pod, new: Pod) -> Iterator[str]:
    if old.labels != new.labels:
        yield "UpdatePodLabel"
    if old.tolerations != new.tolerations:
        yield "UpdatePodToleration"
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        yield "UpdatePodSchedulingGatesEliminated"
    if old.status.resource_claim_statuses != new.status.resource_claim_statuses:
        yield "UpdatePodGeneratedResourceClaim"
    if _shrank(old, new):
        yield "UpdatePodScaleDown"


def _shrank(old: Pod, new: Pod) -> bool:
    if old.spec == new.spec and old.status == new.status:
        return False
    before, after = requests.running(old), requests.running(new)
    return any(after.get(resource, 0) < amount for resource, amount in before.items())
