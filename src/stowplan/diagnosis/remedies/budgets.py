"""A PodDisruptionBudget changed by just enough that pods may be evicted.

The disruption controller lets as many pods go as are healthy beyond what the budget asks for; a percentage is of the
pods that there should be, rounded up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stowplan.columns.state import ClusterState
from stowplan.diagnosis.edits import Edit, Edits
from stowplan.diagnosis.remedy import Operation, PatchObject
from stowplan.objects.affinity import PodQuery
from stowplan.objects.disruption import Budgets, importance
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import compile_selector
from stowplan.objects.workloads import PodDisruptionBudget

CHANGE_BUDGET = "change-budget"
_DEFAULT = 1  # what minAvailable is where a budget has neither field


def is_protected(pod: Pod, state: ClusterState) -> bool:
    """True if a budget allows no eviction of this pod now."""
    return any(_left(budget, pod) <= 0 for budget in state.store.budgets_of(pod))


def _left(budget: PodDisruptionBudget, pod: Pod) -> int:
    return 1 if pod.name in budget.status.disrupted_pods else budget.status.disruptions_allowed


def violated(pods: Sequence[Pod], state: ClusterState) -> list[Pod]:
    """Return those of the pods whose eviction, together with the others, violates a budget."""
    ordered = sorted(pods, key=importance)
    return Budgets(state.store.budgets_of).split(ordered, lambda pod: pod)[0]


def allowing(pods: Sequence[Pod], state: ClusterState) -> Edits | None:
    """Return the changes of budgets after which all of the pods may be evicted; None if there are none such."""
    numbers: Counter[str] = Counter()
    for pod in pods:
        for budget in state.store.budgets_of(pod):
            numbers[budget.key] += pod.name not in budget.status.disrupted_pods
    budgets = state.store.every(PodDisruptionBudget)
    found = []
    for key, number in numbers.items():
        if number > budgets[key].status.disruptions_allowed:
            edit = _changed(budgets[key], number, state)
            if edit is None:
                return None
            found.append(edit)
    return tuple(found)


def _changed(budget: PodDisruptionBudget, number: int, state: ClusterState) -> Edit | None:
    """Return the smallest change of a budget that allows so many evictions; None if its numbers are not the reason."""
    healthy, expected = _counted(budget, state)
    needed = healthy - number  # so many may still be asked for
    if needed < 0:
        return None
    if budget.spec.max_unavailable is not None:
        field, old, new = (
            "maxUnavailable",
            budget.spec.max_unavailable,
            _most(budget.spec.max_unavailable, expected, needed),
        )
        is_less = _number(new) > _number(old)
    else:
        old = _DEFAULT if budget.spec.min_available is None else budget.spec.min_available
        field, new = "minAvailable", _least(old, expected, needed)
        is_less = _number(new) < _number(old)
    if not is_less:  # its status lags behind
        return None
    text = f"change {field} of PodDisruptionBudget {budget.key} from {old} to {new}"
    patch = PatchObject("PodDisruptionBudget", budget.key, (Operation("add", f"/spec/{field}", new),))
    return Edit(CHANGE_BUDGET, text, (patch,), size=abs(_number(new) - _number(old)))


def _counted(budget: PodDisruptionBudget, state: ClusterState) -> tuple[int, int]:
    """Return how many pods are healthy, and how many there should be."""
    if budget.status.expected_pods:
        return budget.status.current_healthy, budget.status.expected_pods
    query = PodQuery(frozenset((budget.namespace,)), compile_selector(budget.spec.selector))
    number = len(list(state.uids_of(query)))
    return number, number


def _least(old: int | str, expected: int, needed: int) -> int | str:
    return needed if isinstance(old, int) else f"{100 * needed // max(expected, 1)}%"


def _most(old: int | str, expected: int, needed: int) -> int | str:
    gone = max(expected - needed, 0)
    return gone if isinstance(old, int) else f"{100 * (gone - 1) // max(expected, 1) + 1}%"


def _number(value: int | str) -> int:
    try:
        return value if isinstance(value, int) else int(value.rstrip("%"))
    except ValueError:
        return 0
