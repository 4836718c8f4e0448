"""The pods that have no node, by cause: in the words of the scheduler that tried them. Kept up to date pod by pod."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stowplan.objects.pods import Pod
from stowplan.simulation.report.pending_causes import FAILED, NOT_TRIED, cause_of_message

GATED = "held back by its scheduling gates"
ENDING = "is being deleted"


@dataclass(frozen=True)
class WaitingGroup:
    """The pods that wait for one cause. `since`: when the oldest was created, in seconds since 1970."""

    cause: str
    pods: int
    oldest: str
    since: float | None


class WaitingByCause:
    def __init__(self) -> None:
        self._cause_of: dict[str, str] = {}
        self._pods: dict[str, dict[str, float | None]] = {}  # by cause: when each pod was created
        self._groups: dict[str, WaitingGroup] = {}
        self._known: dict[str, str] = {}  # causes by message: many pods have the same

    def __len__(self) -> int:
        return len(self._cause_of)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cause_of)

    def put(self, pod: Pod) -> None:
        """Take in a pod, or a new version of one."""
        if not pod.pending:
            self.remove(pod.key)
            return
        cause = self._cause(pod)
        if self._cause_of.get(pod.key) != cause:
            self.remove(pod.key)
        created = pod.metadata.creation_timestamp
        self._cause_of[pod.key] = cause
        self._pods.setdefault(cause, {})[pod.key] = None if created is None else created.timestamp()
        self._groups.pop(cause, None)

    def remove(self, key: str) -> None:
        cause = self._cause_of.pop(key, None)
        if cause is not None:
            del self._pods[cause][key]
            self._groups.pop(cause, None)
            if not self._pods[cause]:
                del self._pods[cause]

    def cause_of(self, key: str) -> str:
        return self._cause_of.get(key, "")

    def groups(self) -> list[WaitingGroup]:
        """Return the causes, those of most pods first."""
        for cause, pods in self._pods.items():
            if cause not in self._groups:
                oldest = min(pods, key=lambda key: (pods[key] is None, pods[key] or 0.0, key))
                self._groups[cause] = WaitingGroup(cause, len(pods), oldest, pods[oldest])
        return sorted(self._groups.values(), key=lambda each: (-each.pods, each.cause))

    def _cause(self, pod: Pod) -> str:
        if pod.terminating:
            return ENDING
        condition = pod.condition("PodScheduled")
        if condition is None or condition.status != "False":
            return NOT_TRIED
        if condition.reason == "SchedulingGated":
            return GATED
        if condition.reason == "SchedulerError":
            return FAILED
        if len(self._known) > 10_000:
            self._known.clear()
        if condition.message not in self._known:
            self._known[condition.message] = cause_of_message(condition.message)
        return self._known[condition.message]
