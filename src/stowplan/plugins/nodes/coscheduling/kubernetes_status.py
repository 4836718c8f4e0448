"""The status of Kubernetes' own PodGroups: the condition PodGroupScheduled.

    True    Scheduled                            enough pods of the group had a node; this does not change again
    False   Unschedulable, or SchedulerError     how many pods have a node and how many must; the reason of one pod

The condition follows from the group's pods alone, so it is the same after a restart. Groups that are not scheduled as
one, and groups without pods of this scheduler, are ignored; so are other conditions of the object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.decision import WOULD_FIT
from stowplan.objects import applications
from stowplan.objects.actions import Patch
from stowplan.objects.applications import BY_KUBERNETES
from stowplan.objects.meta import Condition, Object
from stowplan.objects.pod_groups import PodGroup
from stowplan.objects.pods import Pod

SCHEDULED = "PodGroupScheduled"
LONGEST = 32_768  # characters of a condition's message, the API's limit


class KubernetesGroupStatus:
    def __init__(self) -> None:
        self._pods: dict[str, dict[str, Pod]] = {}  # each group's pods by uid

    def patches(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Patch]:
        """Yield the patches that follow from what changed since the last call; None: from all objects."""
        if changed is None:
            self._pods.clear()
            affected = dict.fromkeys(cluster.every(PodGroup))
            changed = list(cluster.known_pods())
        else:
            affected = {each.key: None for each in changed if isinstance(each, PodGroup)}
        for pod in changed:
            if isinstance(pod, Pod) and (name := _group(pod)):
                self._pod_changed(name, pod, cluster)
                affected[name] = None
        for name in affected:
            group, pods = cluster.get(PodGroup, name), self._pods.get(name)
            if group is not None and pods and group.gang:
                yield from _patch(group, pods)

    def _pod_changed(self, name: str, pod: Pod, cluster: Cluster) -> None:
        now = cluster.known_pod(pod.uid)
        if now is not None and cluster.is_ours(now):
            self._pods.setdefault(name, {})[pod.uid] = now
        elif name in self._pods:
            self._pods[name].pop(pod.uid, None)
            if not self._pods[name]:
                del self._pods[name]


def _patch(group: PodGroup, pods: Mapping[str, Pod]) -> Iterator[Patch]:
    before = next((each for each in group.status.conditions if each.type == SCHEDULED), None)
    found = _condition(group, pods)
    if found is None or (before is not None and before.status == "True"):
        return
    if before is not None and before.status == found.status:
        found = msgspec.structs.replace(found, last_transition_time=before.last_transition_time)
    if found != before:
        others = [each for each in group.status.conditions if each.type != SCHEDULED]
        version = {"resourceVersion": group.metadata.resource_version}
        body = {"metadata": version, "status": {"conditions": [_written(each) for each in (*others, found)]}}
        yield Patch(kind="PodGroup", key=group.key, body=body)


def _condition(group: PodGroup, pods: Mapping[str, Pod]) -> Condition | None:
    """Return the group's condition; None while no waiting pod says why an attempt failed. A gated one does not."""
    generation, placed = group.metadata.generation, sum(_has_a_node(pod) for pod in pods.values())
    count = f"{placed} of {group.minimum} pods have a node"
    if placed >= group.minimum:
        return Condition(SCHEDULED, "True", "Scheduled", count, generation)
    told = ((pod, pod.condition("PodScheduled")) for pod in pods.values() if not pod.node_name)
    waiting = [(pod, each) for pod, each in told if each is not None and each.reason != "SchedulingGated"]
    if not waiting:
        return None
    pod, reason = min(waiting, key=lambda each: (each[1].message.startswith(WOULD_FIT), each[0].name))
    message = f"{count}; pod {pod.name}: {reason.message}"
    return Condition(SCHEDULED, "False", reason.reason or "Unschedulable", message[:LONGEST], generation)


def _has_a_node(pod: Pod) -> bool:
    return bool(pod.node_name) and not pod.terminating


def _written(condition: Condition) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.to_builtins(condition)
    return {name: value for name, value in body.items() if value is not None}


def _group(pod: Pod) -> str:
    found = applications.identity(pod)
    return f"{pod.namespace}/{found.group}" if found.group and found.source == BY_KUBERNETES else ""
