"""The status of PodGroups of scheduling.x-k8s.io.

    Pending      fewer pods exist than the minimum
    Scheduling   enough pods exist, and too few of them run
    Running      enough pods run or have succeeded
    Failed       enough pods run or have ended, and at least one has failed
    Finished     enough pods have succeeded

`scheduleStartTime` is when the group first had enough pods: the creation of the last pod that was needed, or of the
PodGroup.

A pod that ends leaves the scheduler's sight as a deleted one does, and is told of once more, as a `FinishedMember`. The
two do not come together, so a pod that is gone counts as it was for a moment more: a phase that holds for an instant is
not worth a write. A pod that ended because it is being deleted does not count. Any other that ended stays counted when
it is deleted, and after a restart: the numbers of the status never go down, and those that exist are among them. (One
that ends while no scheduler runs may be taken for one that was counted and deleted; then the number is too small.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from stowplan.columns.nodes.views import Cluster
from stowplan.objects import applications
from stowplan.objects.actions import Patch
from stowplan.objects.applications import BY_SIGS
from stowplan.objects.finished_members import FinishedMember
from stowplan.objects.meta import Object
from stowplan.objects.pod_groups import SigsPodGroup, SigsPodGroupStatus
from stowplan.objects.pods import Pod

ENDS = ("Succeeded", "Failed")
SETTLES_IN = 1.0  # seconds in which it turns out if a pod that is gone has ended


class _Members:
    """A group's pods: those that run or wait, those that have ended and still exist, and how many did so before."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}  # by uid
        self.ended: dict[str, FinishedMember] = {}  # by uid
        self.deleted: Counter[str] = Counter()  # those that ended and are deleted, by phase
        self.group_uid = ""

    def of(self, group: SigsPodGroup) -> None:
        """The object is another one of the same name: it never had the pods that do not exist any more."""
        if group.uid != self.group_uid:
            self.deleted.clear()
            self.group_uid = group.uid

    def count(self, phase: str, told: int) -> int:
        """Return how many have ended like this. `told`: what the status says; it knows of some that we never saw."""
        existing = sum(member.phase == phase for member in self.ended.values())
        self.deleted[phase] = max(self.deleted[phase], told - existing)
        return existing + self.deleted[phase]


class SigsGroupStatus:
    def __init__(self) -> None:
        self._members: dict[str, _Members] = {}
        self._leaving: dict[str, tuple[str, float]] = {}  # pods that are gone: their group, and until when they count

    @property
    def again_at(self) -> float | None:
        """When a pod that is gone stops to count."""
        return next((until for _, until in self._leaving.values()), None)

    def patches(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Patch]:
        affected = dict.fromkeys(self._settle(cluster.now))
        if changed is None:
            affected |= dict.fromkeys(cluster.every(SigsPodGroup))
            changed = self._everything(cluster)
        affected |= dict.fromkeys(each.key for each in changed if isinstance(each, SigsPodGroup))
        affected |= dict.fromkeys(self._members_ended(changed, cluster))
        for each in changed:
            if isinstance(each, Pod) and (name := _group(each)):
                self._pod_changed(name, each, cluster)
                affected[name] = None
        for name in affected:
            group = cluster.get(SigsPodGroup, name)
            if group is None:
                self._forget(name)
            else:
                yield from self._patch(group)

    def _everything(self, cluster: Cluster) -> list[Object]:
        """Return all objects to look at: those that exist, and those that we know, which may be gone."""
        known: list[Object] = []
        for members in self._members.values():
            known += (*members.pods.values(), *members.ended.values())
        return [*known, *cluster.every(FinishedMember).values(), *cluster.known_pods()]

    def _forget(self, name: str) -> None:
        """The object does not exist, or not yet: keep only the pods that exist."""
        members = self._members.get(name)
        if members is not None:
            members.deleted.clear()
            if not members.pods and not members.ended:
                del self._members[name]

    def _members_ended(self, changed: Sequence[Object], cluster: Cluster) -> Iterator[str]:
        """Yield the groups of pods that have ended, or had ended and are deleted; both may be new to us."""
        counted: dict[tuple[str, str], FinishedMember] = {}  # each pod once, whatever happened to it meanwhile
        for each in changed:
            if isinstance(each, FinishedMember) and each.group and each.phase in ENDS:
                self._members.setdefault(each.group, _Members()).pods.pop(each.uid, None)
                self._leaving.pop(each.uid, None)
                if not each.terminating:
                    counted[each.group, each.uid] = each
                yield each.group
        for (group, uid), each in counted.items():
            members, now = self._members[group], cluster.get(FinishedMember, each.key)
            if now is not None and (now.group, now.uid) == (group, uid) and not now.terminating:
                members.ended[uid] = now
            else:
                members.ended.pop(uid, None)
                members.deleted[each.phase] += 1

    def _pod_changed(self, name: str, pod: Pod, cluster: Cluster) -> None:
        members, now = self._members.setdefault(name, _Members()), cluster.known_pod(pod.uid)
        if pod.uid in members.ended:
            return  # this watch is late
        if now is None:
            if pod.uid in members.pods:
                self._leaving.setdefault(pod.uid, (name, cluster.now + SETTLES_IN))
            return
        self._leaving.pop(pod.uid, None)
        if _group(now) == name:
            members.pods[pod.uid] = now
        else:
            members.pods.pop(pod.uid, None)

    def _settle(self, now: float) -> Iterator[str]:
        """Yield the groups of pods that are gone and have not ended, and stop to count them."""
        for uid, (name, until) in list(self._leaving.items()):
            if until > now:
                return
            del self._leaving[uid]
            if name in self._members:
                self._members[name].pods.pop(uid, None)
            yield name

    def _patch(self, group: SigsPodGroup) -> Iterator[Patch]:
        members, before = self._members.setdefault(group.key, _Members()), group.status
        members.of(group)
        status = msgspec.structs.replace(
            before,
            running=sum(pod.status.phase == "Running" for pod in members.pods.values()),
            succeeded=members.count("Succeeded", before.succeeded),
            failed=members.count("Failed", before.failed),
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
    seen = (*members.pods.values(), *members.ended.values())
    created = sorted(each for pod in seen if (each := pod.metadata.creation_timestamp) is not None)
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
