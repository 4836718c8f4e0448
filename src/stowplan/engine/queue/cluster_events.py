"""What happened to the cluster, in kube-scheduler's words: the events that may make a rejected pod schedulable.

A change of an object becomes one event for each aspect that changed. Plugins register for events (`Wake`); "Update" is
every update of a kind, "Pod" is a pod with or without a node. Plugins may add events of their own (`cluster_events`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from stowplan.framework.cluster_event import ASSIGNED, UNSCHEDULED, ClusterEvent
from stowplan.framework.interfaces import Wake
from stowplan.framework.plugin_calls import ask_list
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects import requests
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

__all__ = ["ASSIGNED", "EVERYTHING", "UNSCHEDULED", "ClusterEvent", "concerns", "of"]

EVERYTHING = ClusterEvent("*", "*")  # wakes every pod, whatever rejected it


def concerns(wake: Wake, happening: ClusterEvent) -> bool:
    """Did a plugin register for this?"""
    pods = wake.resource == "Pod" and happening.resource in (ASSIGNED, UNSCHEDULED)
    if wake.resource not in (happening.resource, "*") and not pods:
        return False
    any_update = "Update" in wake.actions and happening.action.startswith("Update")
    return happening.action in wake.actions or any_update or "*" in wake.actions


def of(old: Object | None, new: Object | None, profiles: Mapping[str, Profile]) -> Iterator[ClusterEvent]:
    """Return the events of a change from one version of an object to the next."""
    plugins = {bound.name: bound for profile in profiles.values() for bound in profile.event_plugins}
    kind = type(old if new is None else new).__name__
    if not any(kind in getattr(bound.plugin, "own_kinds", ()) for bound in plugins.values()):
        yield from _of_kubernetes(old, new)
    for bound in plugins.values():
        yield from _of_plugin(bound, old, new)


def _of_plugin(bound: EnabledPlugin, old: Object | None, new: Object | None) -> list[ClusterEvent]:
    try:
        return ask_list(bound, "cluster_events", ClusterEvent, old, new)
    except PluginError:
        return [EVERYTHING]  # as with a hint that raises: better an attempt too many than a pod that is forgotten


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
    """Pods come to nodes, go from them and change there; one without a node changes, which concerns itself alone."""
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
