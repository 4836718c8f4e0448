"""The event about a pod that cannot be read (`kube/unreadable.py`). `reflector_gauges` counts such objects."""

from __future__ import annotations

from stowplan.kube.unreadable import UnreadableObject
from stowplan.objects.actions import PodRef, Record


def event(pod: UnreadableObject) -> Record:
    """The event about a pod that cannot be read."""
    return Record(
        pod=PodRef(pod.namespace, pod.name, pod.uid),
        type="Warning",
        reason="Unreadable",
        action="Scheduling",
        note=pod.problem,
        reporting_controller=pod.scheduler_name,
    )
