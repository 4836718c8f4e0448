"""kube-scheduler's metrics, under its names and labels, made of what the engine reports and of timed plugins."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics

from stowplan.apps.run import group_metrics
from stowplan.apps.run.group_metrics import GroupMetrics
from stowplan.apps.run.plugin_metrics import PluginGauges
from stowplan.engine import reports
from stowplan.engine.scheduler import Scheduler
from stowplan.engine.unit import QueueStage
from stowplan.framework.extension_points import METHODS
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import ResourceReservation


def doubling(first: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(first * factor**step for step in range(count))


ATTEMPT = doubling(0.001, 2, 15)
POINT = doubling(0.0001, 2, 12)
PLUGIN = doubling(1e-5, 1.5, 20)
SLI = doubling(0.01, 2, 20)
QUEUES = {
    QueueStage.ACTIVE: "active",
    QueueStage.BACKOFF: "backoff",
    QueueStage.UNSCHEDULABLE: "unschedulable",
    QueueStage.GATED: "gated",
}
SPELLED = {method: point[0].upper() + point[1:] for point, method in METHODS.items() if method}
STATUSES = ("Success", "Error")
SAMPLED = 10  # one step in so many has its plugins timed, as with kube-scheduler


class Metrics:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        self._began = 0.0
        self._steps = 0
        self._points: dict[tuple[str, str, str], float] = {}
        self._calls: dict[tuple[str, str, str], list[int]] = {}  # how often a plugin was called at a point
        self.sampling = True
        new = partial(_make, self.registry)
        self.attempts = new(Counter, "schedule_attempts_total", "Attempts to schedule pods.", ["result", "profile"])
        self.attempt_seconds = new(
            Histogram, "scheduling_attempt_duration_seconds", "Seconds an attempt took.", ["result", "profile"], ATTEMPT
        )
        self.algorithm_seconds = new(
            Histogram, "scheduling_algorithm_duration_seconds", "Seconds a decision took.", [], ATTEMPT
        )
        self.pending = new(Gauge, "pending_pods", "Pods that wait, by queue.", ["queue"])
        self.incoming = new(Counter, "queue_incoming_pods_total", "Pods that entered a queue.", ["queue", "event"])
        self.point_seconds = new(
            Histogram,
            "framework_extension_point_duration_seconds",
            "Seconds all plugins of a point took for a pod.",
            ["extension_point", "status", "profile"],
            POINT,
        )
        self.plugin_seconds = new(
            Histogram,
            "plugin_execution_duration_seconds",
            "Seconds one plugin took at a point.",
            ["plugin", "extension_point", "status"],
            PLUGIN,
        )
        self.evaluations = new(
            Counter, "plugin_evaluation_total", "Calls of plugins.", ["plugin", "extension_point", "profile"]
        )
        self.preemptions = new(Counter, "preemption_attempts_total", "Attempts to make room by evicting pods.", [])
        self.victims = new(Histogram, "preemption_victims", "Pods chosen to be evicted at once.", [], doubling(1, 2, 7))
        self.pod_attempts = new(
            Histogram, "pod_scheduling_attempts", "Attempts it took to bind a pod.", [], doubling(1, 2, 5)
        )
        self.sli = new(
            Histogram,
            "pod_scheduling_sli_duration_seconds",
            "Seconds from first seeing a pod until it was bound.",
            ["attempts"],
            SLI,
        )
        self.unschedulable = new(Gauge, "unschedulable_pods", "Pods held back by a plugin.", ["plugin", "profile"])
        self.permit_seconds = new(
            Histogram, "permit_wait_duration_seconds", "Seconds pods waited for a permit.", ["result"], ATTEMPT
        )
        self.after_flush = new(
            Counter, "pod_scheduled_after_flush_total", "Pods bound after a flush got them tried.", []
        )
        self.cache = new(Gauge, "cache_size", "What the scheduler holds.", ["type"])
        self._figures = PluginGauges(self.registry)  # of plugins
        self._gangs: GroupMetrics | None = None
        self.pod_of: Callable[[str], Pod | None] = lambda _: None
        self._incoming_told: Tally[tuple[str, str]] = Tally()
        self._unschedulable_told: set[tuple[str, str]] = set()

    # -- what the engine reports

    def report(self, what: reports.Report) -> None:
        if self._gangs is not None:
            self._gangs.report(what, max(self._clock() - self._began, 0.0), self.pod_of)
        match what:
            case reports.PodBound():
                self._attempted("scheduled", what.profile)
                self.pod_attempts.observe(what.attempts)
                attempts = str(what.attempts) if what.attempts < 15 else "15+"
                self.sli.labels(attempts).observe(max(self._clock() - what.since, 0.0))
                self.after_flush.inc(what.flushed)
            case reports.AttemptFailed():
                self._attempted("error" if what.error else "unschedulable", what.profile)
            case reports.PreemptionStarted():
                self.preemptions.inc()
                self.victims.observe(what.victims)
            case reports.PermitWaited():
                self.permit_seconds.labels("Success" if what.allowed else "Unschedulable").observe(what.seconds)

    def _attempted(self, result: str, profile: str) -> None:
        self.attempts.labels(result, profile).inc()
        self.attempt_seconds.labels(result, profile).observe(max(self._clock() - self._began, 0.0))

    def stepped(self, seconds: float) -> None:
        """A step is over: what its plugins took goes into the histograms of their points."""
        self.algorithm_seconds.observe(seconds)
        for (point, status, profile), taken in self._points.items():
            self.point_seconds.labels(point, status, profile).observe(taken)
        self._points.clear()
        self._steps += 1
        self.sampling = self._steps % SAMPLED == 0
        self._began = self._clock()

    # -- what is read off the engine, now and then

    def look_at(self, engine: Scheduler) -> None:
        stages = Tally(unit.stage for unit in engine.queue.units.values() for _ in unit.pods)
        for stage, queue in QUEUES.items():
            self.pending.labels(queue).set(stages[stage])
        for (queue, event), times in engine.queue.incoming.items():
            self.incoming.labels(queue, event).inc(times - self._incoming_told[queue, event])
            self._incoming_told[queue, event] = times
        held = {(plugin, profile): number for profile, plugin, number in engine.queue.waiting()}
        for plugin, profile in self._unschedulable_told - held.keys():
            self.unschedulable.labels(plugin, profile).set(0)
        for (plugin, profile), number in held.items():
            self.unschedulable.labels(plugin, profile).set(number)
        self._unschedulable_told = set(held)
        for (plugin, point, profile), cell in self._calls.items():
            self.evaluations.labels(plugin, point, profile).inc(cell[0])
            cell[0] = 0
        self.cache.labels("nodes").set(len(engine.state.table.live_rows()))
        self.cache.labels("pods").set(len(engine.state.pods))
        self.cache.labels("assumed_pods").set(len(engine.assumed_pods))
        if self._gangs is not None:
            self._gangs.look_at(engine)

    def look_at_plugins(
        self, engine: Scheduler, misbehaved: Callable[[reports.PluginMisbehaved], None] = lambda _: None
    ) -> None:
        self._figures.look(engine, misbehaved)
        if self._gangs is not None:
            self._gangs.look_at_reservations(engine.state.store.every(ResourceReservation).values())

    def text(self, accept: str = "") -> tuple[bytes, str]:
        if "application/openmetrics-text" in accept:
            text = openmetrics(self.registry)  # type: ignore[no-untyped-call]
            return bytes(text), "application/openmetrics-text; version=1.0.0; charset=utf-8"
        return bytes(generate_latest(self.registry)), "text/plain; version=0.0.4; charset=utf-8"

    # -- plugins

    def timed(self, profile: Profile) -> Profile:
        """The profile with plugins whose calls are counted and timed."""
        if self._gangs is None and group_metrics.concern(profile):
            self._gangs = GroupMetrics(self.registry)
        made: dict[str, Any] = {}
        points = {
            point: tuple(
                EnabledPlugin(
                    enabled.name, made.setdefault(enabled.name, Timed(enabled, profile, self)), enabled.weight
                )
                for enabled in plugins
            )
            for point, plugins in profile.points.items()
        }
        return Profile(profile.scheduler_name, points, profile.percentage_of_nodes_to_score)

    def calls(self, plugin: str, point: str, profile: str) -> list[int]:
        """A cell to count in; it is emptied into the metric now and then, which costs more than counting."""
        return self._calls.setdefault((plugin, point, profile), [0])

    def took(self, point: str, status: str, profile: str, seconds: float) -> None:
        key = (point, status, profile)
        self._points[key] = self._points.get(key, 0.0) + seconds


class Timed:
    """A plugin whose methods are timed; in all else it is that plugin."""

    def __init__(self, enabled: EnabledPlugin[Any], profile: Profile, metrics: Metrics) -> None:
        self.__plugin = enabled.plugin
        for method, point in SPELLED.items():
            call = getattr(enabled.plugin, method, None)
            if call is not None and method != "sort_key":
                setattr(self, method, self._wrapped(call, enabled.name, point, profile.scheduler_name, metrics))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__plugin, name)

    @staticmethod
    def _wrapped(call: Callable[..., Any], plugin: str, point: str, profile: str, metrics: Metrics) -> Any:
        cell = metrics.calls(plugin, point, profile)
        observed = {status: metrics.plugin_seconds.labels(plugin, point, status).observe for status in STATUSES}
        clock = time.perf_counter

        def timed(*arguments: Any) -> Any:
            cell[0] += 1
            if not metrics.sampling:
                return call(*arguments)
            begun, status = clock(), "Error"
            try:
                answer = call(*arguments)
                if isinstance(answer, Iterator):
                    answer = list(answer)  # a generator does its work only now
                status = "Success"
                return answer
            finally:
                seconds = clock() - begun
                observed[status](seconds)
                metrics.took(point, status, profile, seconds)

        return timed


def _make(
    registry: CollectorRegistry, kind: Any, name: str, text: str, labels: list[str], buckets: Any = None
) -> Any:  # fmt: skip
    options = {} if buckets is None else {"buckets": buckets}
    return kind(f"scheduler_{name}", text, labels, registry=registry, **options)
