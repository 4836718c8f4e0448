"""Conditions and events for pods, as actions, in kube-scheduler's words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeAlias

from stowplan.framework.decision import counted
from stowplan.framework.group import Group
from stowplan.objects.actions import Evict, PodRef, Record, RequestEviction, SetCondition
from stowplan.objects.pods import Pod
from stowplan.objects.texts import MOST_OF_MESSAGE, MOST_OF_NOTE, shortened

UNSCHEDULABLE, ERROR, GATED = "Unschedulable", "SchedulerError", "SchedulingGated"  # Kubernetes' reasons
PLUGIN_HUNG = "PluginHung"  # a reason of the PodScheduled condition, and of an event
MOST_NAMES = 5
_TIMES = re.compile(r"the scheduler had to be ended (\d{1,6}) times ")
Counted: TypeAlias = tuple[int, Iterable[Pod]]  # how many pods, and which; only the first few are read
PREEMPTED = "preempting to accommodate a higher priority"  # and of what


class Preemptor(NamedTuple):
    """For whom pods are evicted: a pod, or a group by an object of its own, in kube-scheduler's words.

    where  what kube-scheduler names as the node, if it is not the victim's
    """

    scheduler_name: str
    kind: str
    ref: PodRef
    where: str = ""


def preemptor(pod: Pod, group: Group | None = None) -> Preemptor:
    """`pod`: the preemptor, or a member of the group that is."""
    if group is None or group.own_object is None:
        return Preemptor(pod.scheduler_name, "pod", ref(pod))
    return Preemptor(pod.scheduler_name, group.own_object.kind.lower(), group.own_object, "cluster")


def ref(pod: Pod) -> PodRef:
    return PodRef(pod.namespace, pod.name, pod.uid)


def scheduled(pod: Pod, node_name: str) -> Record:
    note = f"Successfully assigned {pod.key} to {node_name}"
    return _event(pod, "Normal", "Scheduled", "Binding", note)


def failure(
    pod: Pod, message: str, *, error: bool, nominated: str | None, announced: bool = False
) -> Iterator[SetCondition | Record]:
    """The pod's PodScheduled condition, unless the pod has it already, and an event."""
    reason = ERROR if error else UNSCHEDULABLE
    message, now = shortened(message, MOST_OF_MESSAGE), pod.condition("PodScheduled")
    same = now is not None and (now.status, now.reason, now.message) == ("False", reason, message)
    renamed = nominated is not None and (announced or nominated != pod.nominated_node)
    if renamed or not same:
        yield SetCondition(
            pod=ref(pod), status="False", reason=reason, message=message, nominated_node=nominated if renamed else None
        )
    yield _event(pod, "Warning", "FailedScheduling", "Scheduling", message)


def waits(pod: Pod, message: str) -> Iterator[SetCondition | Record]:
    """The pod is not attempted yet: its group waits for other pods.

    It gets an event, and no condition, as a gated pod of kube-scheduler: an autoscaler adds nodes for pods that are
    Unschedulable, and nodes are not what this one waits for. A condition of an earlier attempt must not stay either.
    Since no condition says what the group waits for now, each event has its own note; numbers in it may be old, as a
    group whose pods come one by one would have an event for each pod and number.
    """
    message, now = shortened(message, MOST_OF_MESSAGE), pod.condition("PodScheduled")
    if now is not None and now.status == "False" and now.reason in (UNSCHEDULABLE, ERROR):
        yield SetCondition(pod=ref(pod), status="False", reason=GATED, message=message)
    yield _event(pod, "Warning", "FailedScheduling", "Scheduling", message, by_note=True)


def set_aside(pod: Pod, problem: str) -> Iterator[SetCondition | Record]:
    """A plugin hung again and again over this pod."""
    message = shortened(f"{problem}; the pod is set aside until it or the configuration changes", MOST_OF_MESSAGE)
    yield hung(pod, message)
    yield _event(pod, "Warning", PLUGIN_HUNG, "Scheduling", message)  # no part of the series of failed attempts


def hung(pod: Pod, message: str) -> SetCondition:
    """The mark of a pod that a plugin hung over. The next scheduler tries it after all others."""
    return SetCondition(
        pod=ref(pod), status="False", reason=PLUGIN_HUNG, message=shortened(message, MOST_OF_MESSAGE)
    )  # fmt: skip


def ended(pod: Pod, problem: str) -> SetCondition:
    """The mark of a pod over which the scheduler has to be ended now."""
    times = times_hung(pod) + 1
    often = "once" if times == 1 else f"{times} times"
    return hung(pod, f"the scheduler had to be ended {often} over this pod, and tries it after all others: {problem}")


def times_hung(pod: Pod) -> int:
    """How often the scheduler had to be ended over this pod; at least 1 if it has the mark of a plugin that hung."""
    condition = pod.condition("PodScheduled")
    if condition is None or condition.reason != PLUGIN_HUNG:
        return 0
    found = _TIMES.match(condition.message)
    return int(found[1]) if found else 1


def eviction(victim: Pod, by: Preemptor) -> Evict:
    message = f"{by.scheduler_name}: {PREEMPTED} {by.kind}"
    return Evict(pod=ref(victim), reason="PreemptionByScheduler", message=message)


def preempted(victim: Pod, by: Preemptor, node_name: str, *, in_memory: bool = False) -> Record:
    """`in_memory`: the victim was not bound yet, so nothing had to be deleted."""
    note = f"Preempted by {by.kind} {by.ref.uid} on node {by.where or node_name}"
    return Record(
        pod=ref(victim),
        type="Normal",
        reason="Preempted",
        action="Preempting",
        note=f"{note} (in kube-scheduler memory)." if in_memory else note,
        reporting_controller=by.scheduler_name,
        related=by.ref,
    )


def rebalanced(eviction: RequestEviction) -> Record:
    """The eviction that a plugin asked for was accepted."""
    return Record(
        pod=eviction.pod,
        type="Normal",
        reason="Rebalanced",
        action="Evicting",
        note=eviction.message,
        reporting_controller=eviction.reporting_controller,
    )


def refused(reasons: Iterable[str]) -> str:
    """A plugin refused the chosen node at reserve or permit."""
    return f"0/1 nodes are available{counted(Counter(reasons))}"


def at_pre_bind(plugin: str, problem: str) -> str:
    return f'running PreBind plugin "{plugin}": {problem}'


def waited(seconds: float, plugin: str) -> str:
    return f"rejected due to timeout after waiting {duration(seconds)} at plugin {plugin}"


def duration(seconds: float) -> str:
    """As Go prints durations: 1m0s, 1.5s, 200ms."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms" if seconds else "0s"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{f'{hours}h' if hours else ''}{f'{minutes}m' if hours or minutes else ''}{rest:g}s"


def half_bound(group: str, bound: Counted, missing: Counted) -> str:
    """A group of which only some pods are bound."""
    if not bound[0]:
        return f"Pod group {group}: none of its pods is bound"
    return f"Pod group {group}: {bound[0]} bound or about to be ({_some(bound)}), {missing[0]} not ({_some(missing)})"


def protected(pods: list[Pod]) -> str:
    return f"a PodDisruptionBudget protects {_some((len(pods), pods))}"


def warning(pod: Pod, reason: str, action: str, note: str) -> Record:
    return _event(pod, "Warning", reason, action, note)


def _some(pods: Counted) -> str:
    names = sorted(pod.name for pod in islice(pods[1], MOST_NAMES))
    more = pods[0] - len(names)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _event(pod: Pod, kind: str, reason: str, action: str, note: str, *, by_note: bool = False) -> Record:
    return Record(
        pod=ref(pod), type=kind, reason=reason, action=action, note=shortened(note, MOST_OF_NOTE),
        reporting_controller=pod.scheduler_name, by_note=by_note,
    )  # fmt: skip
