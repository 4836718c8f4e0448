"""A change in the cluster that may make a rejected pod schedulable, in kube-scheduler's words."""

from __future__ import annotations

from typing import Any

import msgspec

ASSIGNED, UNSCHEDULED = "AssignedPod", "UnschedulablePod"
ANY = "*"  # every resource, or every action
PODS = ("Pod", ASSIGNED, UNSCHEDULED)  # "Pod" is a pod with or without a node
NODE_UPDATES = (
    *("UpdateNodeAllocatable", "UpdateNodeLabel", "UpdateNodeTaint", "UpdateNodeCondition", "UpdateNodeAnnotation"),
    "UpdateNodeDeclaredFeature",
)
POD_UPDATES = (
    *("UpdatePodLabel", "UpdatePodToleration", "UpdatePodScaleDown", "UpdatePodSchedulingGatesEliminated"),
    "UpdatePodGeneratedResourceClaim",
)


def actions_of(resource: str) -> tuple[str, ...]:
    """Return the actions that a plugin can wait for: those that happen to a resource, "Update" (any), and "*"."""
    match resource:
        case "Node":
            named: tuple[str, ...] = ("Add", "Delete", "Update", *NODE_UPDATES)
        case "UnschedulablePod":  # one that comes is queued, and one that goes helps nobody
            named = ("Update", *POD_UPDATES)
        case "Pod" | "AssignedPod":
            named = ("Add", "Delete", "Update", *POD_UPDATES)
        case "*":
            named = ("Add", "Delete", "Update", *NODE_UPDATES, *POD_UPDATES)
        case _:
            named = ("Add", "Update", "Delete")
    return (*named, ANY)


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
