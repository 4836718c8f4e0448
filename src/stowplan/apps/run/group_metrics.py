"""KubeNexus' metrics: groups and reservations. They are there once a profile has a plugin that they are about.

Labels are bounded: beyond so many namespaces, or groups that wait, the others are counted together under OTHERS.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from stowplan.engine import reports
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.objects import spark
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import ResourceReservation

GROUPS, RESERVATIONS = "Coscheduling", "ResourceReservation"
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500)
ATTEMPT = tuple(0.001 * 2**step for step in range(15))
WAIT = tuple(0.1 * 2**step for step in range(15))
MOST_NAMESPACES, MOST_GROUPS = 200, 500
OTHERS = "(others)"
PodOf = Callable[[str], Pod | None]


def concern(profile: Profile) -> bool:
    return any(enabled.name in (GROUPS, RESERVATIONS) for enabled in profile.all)


class GroupMetrics:
    def __init__(self, registry: CollectorRegistry, now: Callable[[], float] = time.time) -> None:
        self._now, self._namespaces = now, dict[str, str]()
        new = partial(_make, registry)
        self.attempts = new(
            Counter, "scheduling_attempts_total", "Attempts at groups, and at drivers.", ["result", "plugin"]
        )
        self.seconds = new(
            Histogram, "scheduling_duration_seconds", "Seconds they took.", ["operation", "plugin"], ATTEMPT
        )
        self.size = new(Histogram, "pod_group_size", "Pods of groups that became complete.", ["namespace"], SIZES)
        self.waiting = new(Gauge, "waiting_pods", "Pods of groups without a node.", ["namespace", "pod_group"])
        self.reservations = new(Gauge, "resource_reservations", "ResourceReservations.", ["namespace"])
        self.wait_seconds = new(
            Histogram,
            "gang_wait_duration_seconds",
            "Seconds from first seeing a group until enough of it was bound.",
            [],
            WAIT,
        )
        self.timeouts = new(
            Counter, "gang_timeouts_total", "Groups whose pods were not all ready to be bound in time.", []
        )
        self.in_part = new(Counter, "gang_bound_in_part_total", "Times that a group was found bound in part.", [])
        self.oldest = new(
            Gauge, "resource_reservation_oldest_age_seconds", "The age of the oldest ResourceReservation.", []
        )
        self._shown: dict[Gauge, set[tuple[str, ...]]] = {self.waiting: set(), self.reservations: set()}

    # -- what the engine reports

    def report(self, what: reports.Report, seconds: float, pod_of: PodOf) -> None:
        """`seconds`: how long the step has taken that this is reported from."""
        match what:
            case reports.GroupTried():
                self._attempted("scheduled" if what.whole else _failed(what.error), GROUPS, seconds)
            case reports.GroupComplete():
                self.size.labels(self._namespace(what.group)).observe(what.pods)
                self.wait_seconds.observe(what.seconds)
            case reports.GroupTimedOut():
                self.timeouts.inc()
            case reports.GroupInPart():
                self.in_part.inc()
            case reports.PodBound() | reports.AttemptFailed():
                pod = pod_of(what.pod)
                if pod is not None and spark.executors(pod) is not None:
                    result = "scheduled" if isinstance(what, reports.PodBound) else _failed(what.error)
                    self._attempted(result, RESERVATIONS, seconds)

    def _attempted(self, result: str, plugin: str, seconds: float) -> None:
        self.attempts.labels(result, plugin).inc()
        self.seconds.labels("attempt", plugin).observe(seconds)

    def _namespace(self, key: str) -> str:
        """That of an object, or OTHERS if there are too many to tell them apart."""
        namespace = key.partition("/")[0]
        if len(self._namespaces) >= MOST_NAMESPACES:
            return self._namespaces.get(namespace, OTHERS)
        return self._namespaces.setdefault(namespace, namespace)

    # -- what is read off the engine, now and then

    def look_at(self, engine: Scheduler) -> None:
        units = ((unit.group, len(unit.pods)) for unit in engine.queue.units.values() if unit.group)
        waiting = Tally[tuple[str, ...]]()
        for at, (group, number) in enumerate(sorted(units, key=lambda each: -each[1])):
            namespace, _, name = group.partition("/")
            waiting[(namespace, name) if at < MOST_GROUPS else (OTHERS, OTHERS)] += number
        self._show(self.waiting, waiting)

    def look_at_reservations(self, every: Iterable[ResourceReservation]) -> None:
        found, oldest = Tally[tuple[str, ...]](), 0.0
        for each in every:
            found[self._namespace(each.key),] += 1
            created = each.metadata.creation_timestamp
            oldest = max(oldest, 0.0 if created is None else self._now() - created.timestamp())
        self._show(self.reservations, found)
        self.oldest.set(oldest)

    def _show(self, gauge: Gauge, found: Tally[tuple[str, ...]]) -> None:
        """What is gone is taken away last: whoever reads meanwhile, in another thread, misses none."""
        for labels, number in found.items():
            gauge.labels(*labels).set(number)
        for labels in self._shown[gauge] - found.keys():
            gauge.remove(*labels)
        self._shown[gauge] = set(found)


def _failed(error: bool) -> str:
    return "error" if error else "unschedulable"


def _make(
    registry: CollectorRegistry, kind: Any, name: str, text: str, labels: list[str], buckets: Any = None
) -> Any:  # fmt: skip
    options = {} if buckets is None else {"buckets": buckets}
    return kind(f"kubenexus_{name}", text, labels, registry=registry, **options)
