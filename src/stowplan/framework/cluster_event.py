"""A change in the cluster that may make a rejected pod schedulable, in kube-scheduler's words."""

from __future__ import annotations

from typing import Any

import msgspec

ASSIGNED, UNSCHEDULED = "AssignedPod", "UnschedulablePod"


class ClusterEvent(msgspec.Struct, frozen=True):
    """An action on a resource, with the object before and after it."""

    resource: str
    action: str
    old: Any = None
    new: Any = None

    @property
    def label(self) -> str:
        """The name in metrics: AssignedPodDelete, NodeAdd."""
        return f"{self.resource}{self.action}"
