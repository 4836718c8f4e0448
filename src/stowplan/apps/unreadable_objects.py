"""What is told of objects that cannot be read (`kube/unreadable.py`): a metric, and an event about a pod."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge

from stowplan.kube.reflector import Reflector
from stowplan.kube.unreadable import UnreadableObject
from stowplan.objects.actions import PodRef, Record


class UnreadableGauge:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._objects = Gauge(
            "stowplan_unreadable_objects",
            "Objects whose latest version cannot be read; the log says what counts instead.",
            ("kind",),
            registry=registry,
        )

    def read(self, reflectors: Mapping[str, Reflector]) -> None:
        for kind, reflector in reflectors.items():
            self._objects.labels(kind).set(len(reflector.cache.unreadable))


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
