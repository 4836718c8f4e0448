"""What Kubernetes' own PodGroup is told about itself: its condition PodGroupScheduled.

    True    Scheduled                            enough of its pods had a node; that stands
    False   Unschedulable, or SchedulerError     so many have, so many must; and what one of its waiting pods was told

All of it is read from the group's pods, so it comes out the same after a restart. Groups that are no gang, and those of
which no pod is ours, are left alone; so are the object's other conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.verdict import WOULD_FIT
from stowplan.objects import applications
from stowplan.objects.actions import Patch
from stowplan.objects.applications import BY_KUBERNETES
from stowplan.objects.meta import Condition, Object
from stowplan.objects.pod_groups import PodGroup
from stowplan.objects.pods import Pod

SCHEDULED = "PodGroupScheduled"
LONGEST = 32_768  # characters of a condition's message, as the API has it


class KubernetesGroupStatus:
    def __init__(self) -> None:
        self._there: dict[str, dict[str, Pod]] = {}  # each group's pods by uid

    def patches(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Patch]:
        """Whatever changed since the last time; None: everything."""
        if changed is None:
            self._there.clear()
            concerned = dict.fromkeys(cluster.every(PodGroup))
            changed = list(cluster.known_pods())
        else:
            concerned = {each.key: None for each in changed if isinstance(each, PodGroup)}
        for pod in changed:
            if isinstance(pod, Pod) and (name := _group(pod)):
                self._look(name, pod, cluster)
                concerned[name] = None
        for name in concerned:
            group, pods = cluster.get(PodGroup, name), self._there.get(name)
            if group is not None and pods and group.gang:
                yield from _patch(group, pods)

    def _look(self, name: str, pod: Pod, cluster: Cluster) -> None:
        now = cluster.known_pod(pod.uid)
        if now is not None and cluster.is_ours(now):
            self._there.setdefault(name, {})[pod.uid] = now
        elif name in self._there:
            self._there[name].pop(pod.uid, None)
            if not self._there[name]:
                del self._there[name]


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
    """None as long as none of its pods was told anything."""
    generation, placed = group.metadata.generation, sum(_has_a_node(pod) for pod in pods.values())
    count = f"{placed} of {group.minimum} pods have a node"
    if placed >= group.minimum:
        return Condition(SCHEDULED, "True", "Scheduled", count, generation)
    told = [(pod, each) for pod in pods.values() if not pod.node_name and (each := pod.condition("PodScheduled"))]
    if not told:
        return None
    pod, said = min(told, key=lambda each: (each[1].message.startswith(WOULD_FIT), each[0].name))
    message = f"{count}; pod {pod.name}: {said.message}"
    return Condition(SCHEDULED, "False", said.reason or "Unschedulable", message[:LONGEST], generation)


def _has_a_node(pod: Pod) -> bool:
    return bool(pod.node_name) and not pod.terminating


def _written(condition: Condition) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.to_builtins(condition)
    return {name: value for name, value in body.items() if value is not None}


def _group(pod: Pod) -> str:
    found = applications.identity(pod)
    return f"{pod.namespace}/{found.group}" if found.group and found.source == BY_KUBERNETES else ""
