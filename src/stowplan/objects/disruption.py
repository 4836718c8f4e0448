"""The order of victims, and evictions that would violate disruption budgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PodDisruptionBudget

Item = TypeVar("Item")
NOT_STARTED = datetime.max.replace(tzinfo=UTC)  # a pod without a start time counts as just started


class Budgets:
    """Finds evictions that would violate a disruption budget; `budgets_of` returns the budgets that select a pod."""

    def __init__(self, budgets_of: Callable[[Pod], list[PodDisruptionBudget]]) -> None:
        self._budgets_of = budgets_of

    def split(self, items: Sequence[Item], pod_of: Callable[[Item], Pod]) -> tuple[list[Item], list[Item]]:
        """Return the pods whose eviction would violate a budget, and the others. The most important pods come first."""
        left: dict[str, int] = {}
        violating: list[Item] = []
        others: list[Item] = []
        for item in items:
            pod, violated = pod_of(item), False
            for budget in self._budgets_of(pod):
                if pod.name in budget.status.disrupted_pods:
                    continue
                left[budget.key] = left.get(budget.key, budget.status.disruptions_allowed) - 1
                violated = violated or left[budget.key] < 0
            (violating if violated else others).append(item)
        return violating, others


def importance(pod: Pod) -> tuple[int, datetime]:
    """Return a sort key, the most important pod first: higher priority, then the earlier start time."""
    return -pod.priority, started(pod)


def started(pod: Pod) -> datetime:
    return pod.status.start_time or NOT_STARTED
