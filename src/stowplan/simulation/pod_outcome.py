"""What became of one pod of a run, in seconds from its start."""

from __future__ import annotations

import msgspec

from stowplan.objects.pods import Pod

OWNER = "stowplan.io/owner"  # an annotation: to whom a pod belongs, in the figures
DISRUPTED = "DisruptionTarget"


class PodOutcome(msgspec.Struct):
    """`outcome`: pending, bound, running; then succeeded, failed, evicted or deleted.

    `initial`: the pod had a node when the run began. `waited`: the seconds from its arrival to its binding.
    """

    namespace: str
    name: str
    uid: str
    owner: str
    priority: int
    requests: dict[str, int]
    arrived: float
    node: str = ""
    bound: float | None = None
    started: float | None = None
    ended: float | None = None
    waited: float | None = None
    outcome: str = "pending"
    initial: bool = False
    share: float = 0.0  # its dominant share when it arrived

    def row(self) -> dict[str, object]:
        """As a row of the file of outcomes. Every row has the same keys."""
        return {
            "namespace": self.namespace, "name": self.name, "owner": self.owner, "priority": self.priority,
            "requests": dict(sorted(self.requests.items())), "arrived": _rounded(self.arrived), "node": self.node,
            "bound": _rounded(self.bound), "waited": _rounded(self.waited), "started": _rounded(self.started),
            "ended": _rounded(self.ended), "outcome": self.outcome, "initial": self.initial,
        }  # fmt: skip


def owner_of(pod: Pod) -> str:
    """Return to whom a pod belongs: what its annotation says, else its controller, "ReplicaSet/web-5d4f"."""
    told = pod.annotations.get(OWNER)
    owner = pod.controller()
    return told or (f"{owner.kind}/{owner.name}" if owner is not None else "")


def ending(pod: Pod, phase: str) -> str:
    """Return the outcome of a pod that is gone, or has finished. `phase`: the last one that the API server had."""
    if any(each.type == DISRUPTED and each.status == "True" for each in pod.status.conditions):
        return "evicted"
    return phase.lower() if phase in ("Succeeded", "Failed") else "deleted"


def _rounded(moment: float | None) -> float | None:
    return None if moment is None else round(moment, 6)
