"""PodGroups: how many pods of a group must run together.

There are two kinds of this name: that of Kubernetes, and the older one of the scheduler-plugins (scheduling.x-k8s.io).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from stowplan.objects.meta import CompleteApiValue, Condition, Object
from stowplan.objects.quantity import Quantity


class Gang(CompleteApiValue, frozen=True):
    min_count: int = 0


class SchedulingPolicy(CompleteApiValue, frozen=True):
    gang: Gang | None = None


class DisruptionMode(CompleteApiValue, frozen=True):
    """As 1.37 writes it: one of its members is there. Up to 1.36 it is a word: Pod or PodGroup."""

    single: dict[str, Any] | None = None
    all: dict[str, Any] | None = None


class PodGroupSpec(CompleteApiValue, frozen=True):
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    priority: int | None = None
    disruption_mode: str | DisruptionMode | None = None


class PodGroupStatus(CompleteApiValue, frozen=True):
    conditions: tuple[Condition, ...] = ()


class PodGroup(Object, frozen=True):
    """The PodGroup of Kubernetes. Its `basic` policy has no minimum."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def gang(self) -> bool:
        """True if the group has a minimum."""
        return self.spec.scheduling_policy.gang is not None

    @property
    def disruption(self) -> str:
        """How its pods may be disrupted: Pod (one by one), PodGroup (only all together), or "" if it does not say."""
        mode = self.spec.disruption_mode
        if not isinstance(mode, DisruptionMode):
            return mode if mode in ("Pod", "PodGroup") else ""
        if mode.all is not None:
            return "PodGroup"
        return "Pod" if mode.single is not None else ""

    @property
    def minimum(self) -> int:
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else max(gang.min_count, 1)


class SigsPodGroupSpec(CompleteApiValue, frozen=True):
    min_member: int = 1
    min_resources: dict[str, Quantity] = {}
    schedule_timeout_seconds: int | None = None


class SigsPodGroupStatus(CompleteApiValue, frozen=True):
    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: datetime | None = None


class SigsPodGroup(Object, frozen=True):
    """The PodGroup of scheduling.x-k8s.io/v1alpha1."""

    spec: SigsPodGroupSpec = SigsPodGroupSpec()
    status: SigsPodGroupStatus = SigsPodGroupStatus()

    @property
    def minimum(self) -> int:
        return max(self.spec.min_member, 1)
