"""KubeNexus' metrics of pod groups and reservations, for profiles that have a plugin for them.

The number of label values is limited: further namespaces, or waiting groups, are counted together under OTHERS.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Gauge

from stowplan.apps.metric_factory import MetricFactory, exponential
from stowplan.engine import reports
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.objects import spark
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import ResourceReservation

GROUPS, RESERVATIONS = "Coscheduling", "ResourceReservation"
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500)
MAX_NAMESPACES, MAX_GROUPS = 200, 500
OTHERS = "(others)"
PodOf = Callable[[str], Pod | None]


def has_groups(profile: Profile) -> bool:
    """True if the profile has a plugin that these metrics are about."""
    return any(enabled.name in (GROUPS, RESERVATIONS) for enabled in profile.all)


class GroupMetrics:
    def __init__(self, registry: CollectorRegistry, now: Callable[[], float] = time.time) -> None:
        self._now, self._namespaces = now, dict[str, str]()
        new = MetricFactory(registry, "kubenexus_")
        self._attempts = new.counter(
            "scheduling_attempts_total", "Attempts to schedule groups and Spark drivers.", "result", "plugin"
        )
        self._seconds = new.histogram(
            "scheduling_duration_seconds",
            "Seconds that these attempts took.",
            *("operation", "plugin"),
            buckets=exponential(0.001, 2, 15),
        )
        self._size = new.histogram("pod_group_size", "Pods of groups that are complete.", "namespace", buckets=SIZES)
        self._waiting = new.gauge("waiting_pods", "Pods of groups that have no node.", "namespace", "pod_group")
        self._reservations = new.gauge("resource_reservations", "ResourceReservations.", "namespace")
        self._wait_seconds = new.histogram(
            "gang_wait_duration_seconds",
            "Seconds from the first sight of a group until enough of its pods were bound.",
            buckets=exponential(0.1, 2, 15),
        )
        self._timeouts = new.counter("gang_timeouts_total", "Groups whose pods were not all ready to bind in time.")
        self._partially_bound = new.counter("gang_bound_in_part_total", "Times that a group was found partially bound.")
        self._oldest = new.gauge(
            "resource_reservation_oldest_age_seconds", "Seconds since the oldest ResourceReservation was created."
        )
        self._shown: dict[Gauge, set[tuple[str, ...]]] = {self._waiting: set(), self._reservations: set()}

    # -- from reports of the engine

    def report(self, report: reports.Report, seconds: float, pod_of: PodOf) -> None:
        """`seconds`: the time since the step began in which this is reported."""
        match report:
            case reports.GroupAttempted():
                self._attempted("scheduled" if report.whole else _failed(report.error), GROUPS, seconds)
            case reports.GroupComplete():
                self._size.labels(self._namespace(report.group)).observe(report.pods)
                self._wait_seconds.observe(report.seconds)
            case reports.GroupTimedOut():
                self._timeouts.inc()
            case reports.GroupPartiallyBound():
                self._partially_bound.inc()
            case reports.PodBound() | reports.AttemptFailed():
                pod = pod_of(report.pod)
                if pod is not None and (spark.executors(pod) or spark.of_group(pod, {})) is not None:
                    result = "scheduled" if isinstance(report, reports.PodBound) else _failed(report.error)
                    self._attempted(result, RESERVATIONS, seconds)

    def _attempted(self, result: str, plugin: str, seconds: float) -> None:
        self._attempts.labels(result, plugin).inc()
        self._seconds.labels("attempt", plugin).observe(seconds)

    def _namespace(self, key: str) -> str:
        """Return the namespace of an object; OTHERS if there are too many namespaces."""
        namespace = key.partition("/")[0]
        if len(self._namespaces) >= MAX_NAMESPACES:
            return self._namespaces.get(namespace, OTHERS)
        return self._namespaces.setdefault(namespace, namespace)

    # -- from the state of the engine, once a second

    def read_engine(self, engine: Scheduler) -> None:
        units = ((unit.group, len(unit.pods)) for unit in engine.queue.units.values() if unit.group)
        waiting = Tally[tuple[str, ...]]()
        for rank, (group, number) in enumerate(sorted(units, key=lambda each: -each[1])):
            namespace, _, name = group.partition("/")
            waiting[(namespace, name) if rank < MAX_GROUPS else (OTHERS, OTHERS)] += number
        self._show(self._waiting, waiting)

    def read_reservations(self, reservations: Iterable[ResourceReservation]) -> None:
        found, oldest = Tally[tuple[str, ...]](), 0.0
        for each in reservations:
            found[self._namespace(each.key),] += 1
            created = each.metadata.creation_timestamp
            oldest = max(oldest, 0.0 if created is None else self._now() - created.timestamp())
        self._show(self._reservations, found)
        self._oldest.set(oldest)

    def _show(self, gauge: Gauge, found: Tally[tuple[str, ...]]) -> None:
        """Set the gauge. Old labels are removed last: a page that another thread reads meanwhile misses none."""
        for labels, number in found.items():
            gauge.labels(*labels).set(number)
        for labels in self._shown[gauge] - found.keys():
            gauge.remove(*labels)
        self._shown[gauge] = set(found)


def _failed(error: bool) -> str:
    return "error" if error else "unschedulable"
