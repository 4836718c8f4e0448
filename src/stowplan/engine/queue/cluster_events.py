"""Cluster events, in kube-scheduler's words: changes that may make a rejected pod schedulable.

A change of an object becomes one event for each aspect that changed. Plugins register for events (`Wake`); "Update" is
every update of a kind, "Pod" is a pod with or without a node. Plugins may add events of their own (`cluster_events`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from stowplan.engine.pods import assumed
from stowplan.framework.cluster_event import ASSIGNED, UNSCHEDULED, ClusterEvent
from stowplan.framework.interfaces import Wake
from stowplan.framework.plugin_calls import call_list
from stowplan.framework.profile import Profile
from stowplan.objects import requests
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

__all__ = [
    "ASSIGNED",
    "EVERYTHING",
    "UNSCHEDULED",
    "ClusterEvent",
    "ClusterEvents",
    "by_others",
    "concerns",
    "pod_left",
]

EVERYTHING = ClusterEvent("*", "*")  # requeues every unit, whatever rejected it


def pod_left(pod: Pod, node_name: str) -> ClusterEvent:
    """What it means to others that a pod does not use its room on this node any more."""
    return ClusterEvent(ASSIGNED, "Delete", assumed(pod, node_name), None)


def concerns(wake: Wake, happening: ClusterEvent) -> bool:
    """True if a plugin registered for this event."""
    pods = wake.resource == "Pod" and happening.resource in (ASSIGNED, UNSCHEDULED)
    if wake.resource not in (happening.resource, "*") and not pods:
        return False
    any_update = "Update" in wake.actions and happening.action.startswith("Update")
    return happening.action in wake.actions or any_update or "*" in wake.actions


class ClusterEvents:
    """The events of changes, with those that plugins of the profiles add."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._profiles = profiles
        self.clear()

    def clear(self) -> None:
        """The profiles have other plugins now."""
        plugins = {each.name: each for profile in self._profiles.values() for each in profile.event_plugins}
        self._plugins = tuple(plugins.values())
        self._own_kinds = frozenset(kind for each in self._plugins for kind in getattr(each.plugin, "own_kinds", ()))

    def of(self, old: Object | None, new: Object | None) -> list[ClusterEvent]:
        """The events of a change from one version of an object to the next; None is no object."""
        kind = type(old if new is None else new).__name__
        found = [] if kind in self._own_kinds else list(_of_kubernetes(old, new))
        for enabled in self._plugins:
            try:
                found += call_list(enabled, enabled.plugin.cluster_events, ClusterEvent, old, new)
            except PluginError:
                found.append(EVERYTHING)  # as with a hint that raises: an attempt too many does no harm
        return found


def _of_kubernetes(old: Object | None, new: Object | None) -> Iterator[ClusterEvent]:
    found = new if new is not None else old
    if isinstance(found, Pod):
        yield from _of_pod(old, new)  # type: ignore[arg-type]
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


def _of_pod(old: Pod | None, new: Pod | None) -> Iterator[ClusterEvent]:
    """Pods with a node are added, deleted or updated. An update of a pod without a node concerns only that pod."""
    was, now = _sort(old), _sort(new)
    if was == now == ASSIGNED or was == now == UNSCHEDULED:
        assert old is not None and new is not None
        yield from (ClusterEvent(now, action, old, new) for action in _pod_updates(old, new))
        return
    if was == ASSIGNED:
        yield ClusterEvent(was, "Delete", old, None)
    if now == ASSIGNED:
        yield ClusterEvent(now, "Add", None, new)


def _sort(pod: Pod | None) -> str:
    if pod is None or pod.finished:
        return ""
    return ASSIGNED if pod.node_name else UNSCHEDULED


def _pod_updates(old: Pod, new: Pod) -> Iterator[str]:
    special = list(_special_updates(old, new))
    yield from special or (["Update"] if by_others(old) != by_others(new) else [])


def by_others(pod: Pod) -> Any:
    """What is not written by a scheduler: a pod must not be requeued by the condition it just got."""
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
