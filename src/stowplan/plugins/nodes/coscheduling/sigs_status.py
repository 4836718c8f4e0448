"""The status of PodGroups of scheduling.x-k8s.io.

    Pending      fewer pods exist than the minimum
    Scheduling   enough pods exist, and too few of them run
    Running      enough pods run or have succeeded
    Failed       enough pods run or have ended, and at least one has failed
    Finished     enough pods have succeeded

`scheduleStartTime` is when the group first had enough pods: the creation of the last pod that was needed, or of the
PodGroup. The scheduler does not see pods that have ended, so each is counted when it ends, and added to the numbers
that the object has already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from stowplan.columns.nodes.views import Cluster
from stowplan.objects import applications
from stowplan.objects.actions import Patch
from stowplan.objects.applications import BY_SIGS
from stowplan.objects.meta import Object
from stowplan.objects.pod_groups import SigsPodGroup, SigsPodGroupStatus
from stowplan.objects.pods import Pod


class _Members:
    """A group's pods: those that exist, and the phases of those that have ended."""

    def __init__(self, pods: dict[str, Pod] | None = None) -> None:
        self.pods: dict[str, Pod] = pods or {}
        self.ended: dict[str, str] = {}  # phases, by uid
        self.before: tuple[int, int] | None = None  # succeeded and failed when the group was first looked at


class SigsGroupStatus:
    def __init__(self) -> None:
        self._members: dict[str, _Members] = {}

    def patches(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Patch]:
        if changed is None:
            for members in self._members.values():
                members.pods = {}
            affected = dict.fromkeys(cluster.every(SigsPodGroup))
            pods: Sequence[Object] = list(cluster.known_pods())
        else:
            affected, pods = {each.key: None for each in changed if isinstance(each, SigsPodGroup)}, changed
        for pod in pods:
            if isinstance(pod, Pod) and (name := _group(pod)):
                self._pod_changed(name, pod, cluster)
                affected[name] = None
        for name in affected:
            group = cluster.get(SigsPodGroup, name)
            if group is None:
                self._forget(name)
            else:
                yield from self._patch(group)

    def _forget(self, name: str) -> None:
        """The object does not exist, or not yet: keep only the pods that exist."""
        members = self._members.pop(name, None)
        if members is not None and members.pods:
            self._members[name] = _Members(members.pods)

    def _pod_changed(self, name: str, pod: Pod, cluster: Cluster) -> None:
        members, now = self._members.setdefault(name, _Members()), cluster.known_pod(pod.uid)
        if now is not None:
            members.pods[pod.uid] = now
            return
        members.pods.pop(pod.uid, None)
        if pod.finished:
            members.ended[pod.uid] = pod.status.phase

    def _patch(self, group: SigsPodGroup) -> Iterator[Patch]:
        members, before = self._members.setdefault(group.key, _Members()), group.status
        if members.before is None:
            members.before = (before.succeeded, before.failed)
        phases = list(members.ended.values())
        status = msgspec.structs.replace(
            before,
            running=sum(pod.status.phase == "Running" for pod in members.pods.values()),
            succeeded=members.before[0] + phases.count("Succeeded"),
            failed=members.before[1] + phases.count("Failed"),
            occupied_by=before.occupied_by or _owners(members),
        )
        status = msgspec.structs.replace(status, phase=_phase(status, group.minimum, len(members.pods)))
        if status.phase != "Pending" and before.schedule_start_time is None:
            status = msgspec.structs.replace(status, schedule_start_time=_complete_since(group, members))
        if status != before:
            body: dict[str, Any] = msgspec.to_builtins(status)
            if status.schedule_start_time is None:
                del body["scheduleStartTime"]
            yield Patch(kind="SigsPodGroup", key=group.key, body={"status": body})


def _group(pod: Pod) -> str:
    found = applications.identity(pod)
    return f"{pod.namespace}/{found.group}" if found.source == BY_SIGS else ""


def _complete_since(group: SigsPodGroup, members: _Members) -> datetime | None:
    """Return when the group first had enough pods; None if some of these pods were not seen."""
    created = sorted(each for pod in members.pods.values() if (each := pod.metadata.creation_timestamp) is not None)
    if len(created) < group.minimum:
        return None
    return max(created[group.minimum - 1], group.metadata.creation_timestamp or created[0])


def _owners(members: _Members) -> str:
    owner = next((pod.controller() for pod in members.pods.values() if pod.controller() is not None), None)
    if owner is None:
        return ""
    namespace = next(iter(members.pods.values())).namespace
    return f"{namespace}/{owner.name}"


def _phase(status: SigsPodGroupStatus, minimum: int, pods: int) -> str:
    done = status.running + status.succeeded
    if status.succeeded >= minimum:
        return "Finished"
    if status.failed and status.failed + done >= minimum:
        return "Failed"
    if done >= minimum:
        return "Running"
    return "Scheduling" if pods + status.succeeded >= minimum else "Pending"
