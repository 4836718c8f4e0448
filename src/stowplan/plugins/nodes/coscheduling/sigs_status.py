"""What a PodGroup of scheduling.x-k8s.io is told about itself.

    Pending      fewer pods exist than it takes
    Scheduling   they exist, and do not all run yet
    Running      enough of them run, or have succeeded
    Failed       enough have come to an end or run, and one of them failed
    Finished     enough have succeeded

`scheduleStartTime` is when it first had so many pods: the creation of the one that made it enough, or its own. Pods
that have ended are no longer seen by a scheduler: each is counted in the moment it ends, on top of what the object says
already.
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


class _Seen:
    """A group's pods: those that are there, and how those ended that are not."""

    def __init__(self, there: dict[str, Pod] | None = None) -> None:
        self.there: dict[str, Pod] = there or {}
        self.ended: dict[str, str] = {}  # phases, by uid
        self.before: tuple[int, int] | None = None  # what had succeeded and failed when we first looked


class SigsGroupStatus:
    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def patches(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Patch]:
        if changed is None:
            for seen in self._seen.values():
                seen.there = {}
            concerned = dict.fromkeys(cluster.every(SigsPodGroup))
            pods: Sequence[Object] = list(cluster.known_pods())
        else:
            concerned, pods = {each.key: None for each in changed if isinstance(each, SigsPodGroup)}, changed
        for pod in pods:
            if isinstance(pod, Pod) and (name := _group(pod)):
                self._look(name, pod, cluster)
                concerned[name] = None
        for name in concerned:
            group = cluster.get(SigsPodGroup, name)
            if group is None:
                self._forget(name)
            else:
                yield from self._patch(group)

    def _forget(self, name: str) -> None:
        """There is no such object, or not yet: only who is there stays known."""
        seen = self._seen.pop(name, None)
        if seen is not None and seen.there:
            self._seen[name] = _Seen(seen.there)

    def _look(self, name: str, pod: Pod, cluster: Cluster) -> None:
        seen, now = self._seen.setdefault(name, _Seen()), cluster.known_pod(pod.uid)
        if now is not None:
            seen.there[pod.uid] = now
            return
        seen.there.pop(pod.uid, None)
        if pod.finished:
            seen.ended[pod.uid] = pod.status.phase

    def _patch(self, group: SigsPodGroup) -> Iterator[Patch]:
        seen, before = self._seen.setdefault(group.key, _Seen()), group.status
        if seen.before is None:
            seen.before = (before.succeeded, before.failed)
        phases = list(seen.ended.values())
        status = msgspec.structs.replace(
            before,
            running=sum(pod.status.phase == "Running" for pod in seen.there.values()),
            succeeded=seen.before[0] + phases.count("Succeeded"),
            failed=seen.before[1] + phases.count("Failed"),
            occupied_by=before.occupied_by or _owners(seen),
        )
        status = msgspec.structs.replace(status, phase=_phase(status, group.minimum, len(seen.there)))
        if status.phase != "Pending" and before.schedule_start_time is None:
            status = msgspec.structs.replace(status, schedule_start_time=_complete_since(group, seen))
        if status != before:
            body: dict[str, Any] = msgspec.to_builtins(status)
            if status.schedule_start_time is None:
                del body["scheduleStartTime"]
            yield Patch(kind="SigsPodGroup", key=group.key, body={"status": body})


def _group(pod: Pod) -> str:
    found = applications.identity(pod)
    return f"{pod.namespace}/{found.group}" if found.source == BY_SIGS else ""


def _complete_since(group: SigsPodGroup, seen: _Seen) -> datetime | None:
    """None if some of those pods were not seen, or nobody says when they were made."""
    made = sorted(each for pod in seen.there.values() if (each := pod.metadata.creation_timestamp) is not None)
    if len(made) < group.minimum:
        return None
    return max(made[group.minimum - 1], group.metadata.creation_timestamp or made[0])


def _owners(seen: _Seen) -> str:
    owner = next((pod.controller() for pod in seen.there.values() if pod.controller() is not None), None)
    if owner is None:
        return ""
    namespace = next(iter(seen.there.values())).namespace
    return f"{namespace}/{owner.name}"


def _phase(status: SigsPodGroupStatus, minimum: int, there: int) -> str:
    done = status.running + status.succeeded
    if status.succeeded >= minimum:
        return "Finished"
    if status.failed and status.failed + done >= minimum:
        return "Failed"
    if done >= minimum:
        return "Running"
    return "Scheduling" if there + status.succeeded >= minimum else "Pending"
