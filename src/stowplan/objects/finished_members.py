"""Pods of groups that have ended, as small as possible.

A scheduler follows the pods that have not ended. A pod that ends leaves its sight, and the API server does not say why:
the last that is told of the pod is its version before. Who must know how a pod of a group ended reads this kind: the
same pods of the API, but only those that have ended and have the label of a PodGroup of scheduling.x-k8s.io.
"""

from __future__ import annotations

import msgspec

from stowplan.objects.applications import POD_GROUP
from stowplan.objects.meta import ApiValue, Object, ObjectMeta
from stowplan.objects.pod_parts import SchedulingGroup
from stowplan.objects.pods import Pod


class FinishedMemberSpec(ApiValue, frozen=True):
    scheduling_group: SchedulingGroup | None = None


class FinishedMemberStatus(ApiValue, frozen=True):
    phase: str = ""


class FinishedMember(Object, frozen=True):
    """A pod that has ended, and that names a PodGroup of scheduling.x-k8s.io."""

    spec: FinishedMemberSpec = FinishedMemberSpec()
    status: FinishedMemberStatus = FinishedMemberStatus()

    def __post_init__(self) -> None:
        """Keep only what counts: there may be many, and they stay until somebody deletes them."""
        found = self.metadata
        kept = ObjectMeta(
            name=found.name,
            namespace=found.namespace,
            uid=found.uid,
            labels={POD_GROUP: found.labels.get(POD_GROUP, "")},
            creation_timestamp=found.creation_timestamp,
            deletion_timestamp=found.deletion_timestamp,
            resource_version=found.resource_version,
        )
        msgspec.structs.force_setattr(self, "metadata", kept)

    @property
    def phase(self) -> str:
        """Succeeded or Failed."""
        return self.status.phase

    @property
    def group(self) -> str:
        """The key of its PodGroup of scheduling.x-k8s.io; "" if its spec names another group (`applications`)."""
        own, name = self.spec.scheduling_group, self.labels[POD_GROUP]
        return f"{self.namespace}/{name}" if name and not (own and own.pod_group_name) else ""


def finished_member(pod: Pod) -> FinishedMember | None:
    """Return what a server tells of this pod to those who follow finished members; None for any other pod."""
    if not pod.finished or POD_GROUP not in pod.labels:
        return None
    spec, status = FinishedMemberSpec(pod.spec.scheduling_group), FinishedMemberStatus(pod.status.phase)
    return FinishedMember(pod.metadata, spec, status)
