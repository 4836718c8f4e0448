"""Which of several pods matters most, and which evictions their disruption budgets would not allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from stowplan.objects import selectors
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PodDisruptionBudget

Item = TypeVar("Item")
NOT_STARTED = datetime.max.replace(tzinfo=UTC)  # a pod without a start time counts as just started


class Budgets:
    """Disruption budgets, and which evictions they would not allow."""

    def __init__(self, budgets: Sequence[PodDisruptionBudget]) -> None:
        compiled = [(budget, selectors.compile_selector(budget.spec.selector)) for budget in budgets]
        self._budgets = [(budget, selector) for budget, selector in compiled if selector]

    def split(self, items: Sequence[Item], pod_of: Callable[[Item], Pod]) -> tuple[list[Item], list[Item]]:
        """Pods (the most important first) whose eviction would violate a budget, and the others."""
        if not self._budgets:
            return [], list(items)
        left = [budget.status.disruptions_allowed for budget, _ in self._budgets]
        violating: list[Item] = []
        others: list[Item] = []
        for item in items:
            pod, violated = pod_of(item), False
            for at, (budget, selector) in enumerate(self._budgets):
                if budget.namespace != pod.namespace or pod.name in budget.status.disrupted_pods:
                    continue
                if pod.labels and selectors.matches(selector, pod.labels):
                    left[at] -= 1
                    violated = violated or left[at] < 0
            (violating if violated else others).append(item)
        return violating, others


def importance(pod: Pod) -> tuple[int, datetime]:
    """Sorts the most important pod first: higher priority, then the one that started earlier."""
    return -pod.priority, started(pod)


def started(pod: Pod) -> datetime:
    return pod.status.start_time or NOT_STARTED
