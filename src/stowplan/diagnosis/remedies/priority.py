"""A higher priority: the lowest one with which evictions make room, found by DefaultPreemption's own dry run."""

from __future__ import annotations

from collections.abc import Iterator

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
MOST_NODES = 256  # on which evictions are looked for: those that lack the least


def remedy(pod: Pod, state: ClusterState, trying: Trying, within: Rows | None = None) -> tuple[Edits, Decision] | None:
    """Return the smallest change of priority and preemption policy that lets the pod preempt, and the decision then.

    within   the only rows that are looked at
    """
    allowed: Edits = (_allowing(pod),) if pod.spec.preemption_policy == "Never" else ()
    if allowed:
        decision = _helps(allowed, trying, within)
        if decision is not None:
            return allowed, decision
    levels = list(_levels(pod, state))
    best: tuple[Edits, Decision] | None = None
    low, high = 0, len(levels)
    while low < high:
        middle = (low + high) // 2
        edits = (*allowed, _raising(pod, levels[middle], state))
        decision = _helps(edits, trying, within)
        if decision is None:
            low = middle + 1
        else:
            best, high = (edits, decision), middle
    if best is not None and allowed:  # a nominated pod may have been all that was in the way
        decision = _helps(best[0][1:], trying, within)
        best = best if decision is None else (best[0][1:], decision)
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
    known = state.store.every(PriorityClass).items()  # those of the system are for nobody's pods
    classes = {each.value: name for name, each in known if pod.priority < each.value <= HIGHEST_USER_PRIORITY}
    if not classes:
        yield from ((each, "") for each in needed)
        return
    highest = max(classes)
    yield from sorted(classes.items())
    yield from ((each, "") for each in needed if each > highest)


def _raising(pod: Pod, level: tuple[int, str], state: ClusterState) -> Edit:
    value, name = level
    changes: list[ObjectChange] = []
    operations = [Operation("add", "/spec/priority", value)]
    if not name and state.store.every(PriorityClass):
        name = f"{pod.name}-priority"
        metadata = {"name": name}
        document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}
        changes.append(CreateObject(document))
    if name:
        operations.append(Operation("add", "/spec/priorityClassName", name))
    changes.insert(0, PatchObject("Pod", pod.key, tuple(operations)))
    text = f"raise the priority from {pod.priority} to {value}" + (f" (class {name})" if name else "")
    return Edit(RAISE, text, tuple(changes), size=float(value - pod.priority))


def _allowing(pod: Pod) -> Edit:
    operation = Operation("replace", "/spec/preemptionPolicy", "PreemptLowerPriority")
    return Edit(ALLOW, "set preemptionPolicy to PreemptLowerPriority", (PatchObject("Pod", pod.key, (operation,)),))
