"""PrioritySort: the pod with the highest priority first, then the one that has waited longest."""

from __future__ import annotations

from stowplan.objects.pods import Pod


class PrioritySort:
    def sort_key(self, pod: Pod, queued_at: float) -> tuple[int, float]:
        return -pod.priority, queued_at
