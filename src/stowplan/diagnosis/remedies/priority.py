"""A higher priority: the lowest one with which evictions make room, found by DefaultPreemption's own dry run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from stowplan.columns.arrays import Rows
from stowplan.columns.state import ClusterState
from stowplan.diagnosis.edits import Edit, Edits
from stowplan.diagnosis.remedy import CreateObject, ObjectChange, Operation, PatchObject
from stowplan.diagnosis.trying import Trying
from stowplan.framework.decision import Decision
from stowplan.framework.filtering import HIGHEST_USER_PRIORITY
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PriorityClass

RAISE, ALLOW = "raise-priority", "allow-preemption"
NEVER, PREEMPTS = "Never", "PreemptLowerPriority"
MOST_NODES = 256  # on which evictions are looked for: those that lack the least


def remedy(pod: Pod, state: ClusterState, trying: Trying, within: Rows | None = None) -> tuple[Edits, Decision] | None:
    """Return the smallest change of priority and preemption policy that lets the pod preempt, and the decision then.

    within   the only rows that are looked at
    """
    if pod.spec.preemption_policy == NEVER:
        allowed = (_allowing(pod, state),)
        decision = _helps(allowed, trying, within)
        if decision is not None:
            return allowed, decision
    levels = list(_levels(pod, state))
    best: tuple[Edits, Decision] | None = None
    low, high = 0, len(levels)
    while low < high:
        middle = (low + high) // 2
        edits = (_raising(pod, levels[middle], state),)
        decision = _helps(edits, trying, within)
        if decision is None:
            low = middle + 1
        else:
            best, high = (edits, decision), middle
    return best


def _helps(edits: Edits, trying: Trying, within: Rows | None) -> Decision | None:
    decision = trying.decide(edits, preempt=True, within=within)
    if decision is None:
        return None
    evicts = decision.post_filter is not None and decision.post_filter.candidate is not None
    return decision if decision.node is not None or evicts else None


def _levels(pod: Pod, state: ClusterState) -> Iterator[tuple[int, str]]:
    """Yield priorities that could help, ascending, each with the name of its class if there are classes."""
    nominated = [each.priority for others in state.nominated_pods.by_node.values() for each in others.values()]
    above = sorted({each + 1 for each in (*state.priorities, *nominated) if each >= pod.priority})
    needed = [each for each in above if each <= HIGHEST_USER_PRIORITY]
    known = _preempting(state)  # those of the system are for nobody's pods
    classes = {value: name for value, name in known.items() if pod.priority < value <= HIGHEST_USER_PRIORITY}
    if not classes:
        yield from ((each, "") for each in needed)
        return
    highest = max(classes)
    yield from sorted(classes.items())
    yield from ((each, "") for each in needed if each > highest)


def _preempting(state: ClusterState) -> dict[int, str]:
    """Return the classes whose pods may preempt, by value."""
    known = state.store.every(PriorityClass).items()
    return {each.value: name for name, each in known if each.preemption_policy != NEVER}


def _raising(pod: Pod, level: tuple[int, str], state: ClusterState) -> Edit:
    value, name = level
    name, changes = _with_class(pod, value, name, state)
    text = f"raise the priority from {pod.priority} to {value}" + (f" (class {name})" if name else "")
    return Edit(RAISE, text, changes, size=float(value - pod.priority))


def _allowing(pod: Pod, state: ClusterState) -> Edit:
    """Return the edit that lets the pod preempt with the priority that it has: another class, since a class says it."""
    name, changes = _with_class(pod, pod.priority, _preempting(state).get(pod.priority, ""), state)
    text = f"set preemptionPolicy to {PREEMPTS}" + (f" (class {name})" if name else "")
    return Edit(ALLOW, text, changes)


def _with_class(pod: Pod, value: int, name: str, state: ClusterState) -> tuple[str, tuple[ObjectChange, ...]]:
    """Return the name of a class with this value, and the changes that give it to the pod: it is made if need be."""
    operations = [] if pod.priority == value else [Operation("add", "/spec/priority", value)]
    if pod.spec.preemption_policy == NEVER:
        operations.append(Operation("replace", "/spec/preemptionPolicy", PREEMPTS))
    created: tuple[ObjectChange, ...] = ()
    known = state.store.every(PriorityClass)
    if not name and known:
        name = next(each for each in _names(value) if each not in known)
        metadata = {"name": name}
        document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}
        created = (CreateObject(document),)
    if name:
        operations.append(Operation("add", "/spec/priorityClassName", name))
    return name, (PatchObject("Pod", pod.key, tuple(operations)), *created)


def _names(value: int) -> Iterator[str]:
    yield f"priority-{value}"
    yield from (f"priority-{value}-{number}" for number in count(2))
