"""What is said about a pod, as actions: conditions and events, in kube-scheduler's words."""

from __future__ import annotations

from stowplan.objects.actions import PodRef, Record, SetCondition
from stowplan.objects.pods import Pod

LONGEST_NOTE = 1024
PREEMPTED = "preempting to accommodate a higher priority pod"


def ref(pod: Pod) -> PodRef:
    return PodRef(pod.namespace, pod.name, pod.uid)


def scheduled(pod: Pod, node_name: str) -> Record:
    note = f"Successfully assigned {pod.key} to {node_name}"
    return _event(pod, "Normal", "Scheduled", "Binding", note)


def failed(pod: Pod, message: str) -> Record:
    note = message if len(message) <= LONGEST_NOTE else message[: LONGEST_NOTE - 4] + " ..."
    return _event(pod, "Warning", "FailedScheduling", "Scheduling", note)


def preempted(victim: Pod, preemptor: Pod, node_name: str) -> Record:
    note = f"Preempted by pod {preemptor.uid} on node {node_name}"
    return Record(
        pod=ref(victim),
        type="Normal",
        reason="Preempted",
        action="Preempting",
        note=note,
        reporting_controller=preemptor.scheduler_name,
        related=ref(preemptor),
    )


def unschedulable(pod: Pod, message: str, *, error: bool, nominated_node: str | None) -> SetCondition | None:
    """The PodScheduled condition, None if the pod says so already."""
    reason = "SchedulerError" if error else "Unschedulable"
    now = pod.condition("PodScheduled")
    same = now is not None and (now.status, now.reason, now.message) == ("False", reason, message)
    renamed = nominated_node is not None and nominated_node != pod.nominated_node
    if same and not renamed:
        return None
    return SetCondition(
        pod=ref(pod), status="False", reason=reason, message=message, nominated_node=nominated_node if renamed else None
    )


def _event(pod: Pod, kind: str, reason: str, action: str, note: str) -> Record:
    return Record(
        pod=ref(pod), type=kind, reason=reason, action=action, note=note, reporting_controller=pod.scheduler_name
    )
