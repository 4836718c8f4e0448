"""kube-scheduler's metrics under its names and labels, from the engine's reports and from timed calls of plugins."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from stowplan.apps.exposition import exposition
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


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(first * factor**step for step in range(count))


ATTEMPT = exponential(0.001, 2, 15)
POINT = exponential(0.0001, 2, 12)
PLUGIN = exponential(1e-5, 1.5, 20)
SLI = exponential(0.01, 2, 20)
QUEUES = {
    QueueStage.ACTIVE: "active",
    QueueStage.BACKOFF: "backoff",
    QueueStage.UNSCHEDULABLE: "unschedulable",
    QueueStage.GATED: "gated",
}
POINT_NAMES = {method: point[0].upper() + point[1:] for point, method in METHODS.items() if method}
STATUSES = ("Success", "Error")
SAMPLE_EVERY = 10  # steps; plugins are timed in one of them, as with kube-scheduler


class Metrics:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        self._step_began = 0.0
        self._steps = 0
        self._points: dict[tuple[str, str, str], float] = {}
        self._calls: dict[
            tuple[str, str, str], list[int]
        ] = {}  # calls of a plugin at a point that are not in the metric yet
        self.sampling = True
        new = partial(_make, self.registry)
        self.attempts = new(Counter, "schedule_attempts_total", "Attempts to schedule pods.", ["result", "profile"])
        self.attempt_seconds = new(
            Histogram,
            "scheduling_attempt_duration_seconds",
            "Seconds that an attempt took.",
            ["result", "profile"],
            ATTEMPT,
        )
        self.algorithm_seconds = new(
            Histogram, "scheduling_algorithm_duration_seconds", "Seconds that a decision took.", [], ATTEMPT
        )
        self.pending = new(Gauge, "pending_pods", "Pending pods, by queue.", ["queue"])
        self.incoming = new(Counter, "queue_incoming_pods_total", "Pods that entered a queue.", ["queue", "event"])
        self.point_seconds = new(
            Histogram,
            "framework_extension_point_duration_seconds",
            "Seconds that all plugins of a point took for a pod.",
            ["extension_point", "status", "profile"],
            POINT,
        )
        self.plugin_seconds = new(
            Histogram,
            "plugin_execution_duration_seconds",
            "Seconds that one plugin took at a point.",
            ["plugin", "extension_point", "status"],
            PLUGIN,
        )
        self.evaluations = new(
            Counter, "plugin_evaluation_total", "Calls of plugins.", ["plugin", "extension_point", "profile"]
        )
        self.preemptions = new(Counter, "preemption_attempts_total", "Attempts to preempt pods.", [])
        self.victims = new(
            Histogram, "preemption_victims", "Victims that were chosen at once.", [], exponential(1, 2, 7)
        )
        self.pod_attempts = new(
            Histogram, "pod_scheduling_attempts", "Attempts until a pod was enabled.", [], exponential(1, 2, 5)
        )
        self.sli = new(
            Histogram,
            "pod_scheduling_sli_duration_seconds",
            "Seconds from the first sight of a pod until it was enabled.",
            ["attempts"],
            SLI,
        )
        self.unschedulable = new(Gauge, "unschedulable_pods", "Pods that a plugin rejected.", ["plugin", "profile"])
        self.permit_seconds = new(
            Histogram, "permit_wait_duration_seconds", "Seconds that pods waited for a permit.", ["result"], ATTEMPT
        )
        self.after_flush = new(
            Counter,
            "pod_scheduled_after_flush_total",
            "Pods that were enabled after a flush of the unschedulable queue.",
            [],
        )
        self.cache = new(Gauge, "cache_size", "Objects in the scheduler's cache.", ["type"])
        self._plugin_gauges = PluginGauges(self.registry)
        self._groups: GroupMetrics | None = None
        self.pod_of: Callable[[str], Pod | None] = lambda _: None
        self._incoming_shown: Tally[tuple[str, str]] = Tally()
        self._unschedulable_shown: set[tuple[str, str]] = set()

    # -- from reports of the engine

    def report(self, report: reports.Report) -> None:
        if self._groups is not None:
            self._groups.report(report, max(self._clock() - self._step_began, 0.0), self.pod_of)
        match report:
            case reports.PodBound():
                self._attempted("scheduled", report.profile)
                self.pod_attempts.observe(report.attempts)
                attempts = str(report.attempts) if report.attempts < 15 else "15+"
                self.sli.labels(attempts).observe(max(self._clock() - report.since, 0.0))
                self.after_flush.inc(report.flushed)
            case reports.AttemptFailed():
                self._attempted("error" if report.error else "unschedulable", report.profile)
            case reports.PreemptionStarted():
                self.preemptions.inc()
                self.victims.observe(report.victims)
            case reports.PermitWaited():
                self.permit_seconds.labels("Success" if report.allowed else "Unschedulable").observe(report.seconds)

    def _attempted(self, result: str, profile: str) -> None:
        self.attempts.labels(result, profile).inc()
        self.attempt_seconds.labels(result, profile).observe(max(self._clock() - self._step_began, 0.0))

    def stepped(self, seconds: float) -> None:
        """Note the duration of a step, and how long its plugins took at each point."""
        self.algorithm_seconds.observe(seconds)
        for (point, status, profile), taken in self._points.items():
            self.point_seconds.labels(point, status, profile).observe(taken)
        self._points.clear()
        self._steps += 1
        self.sampling = self._steps % SAMPLE_EVERY == 0
        self._step_began = self._clock()

    # -- from the state of the engine, once a second

    def read_engine(self, engine: Scheduler) -> None:
        stages = Tally(unit.stage for unit in engine.queue.units.values() for _ in unit.pods)
        for stage, queue in QUEUES.items():
            self.pending.labels(queue).set(stages[stage])
        for (queue, event), times in engine.queue.incoming.items():
            self.incoming.labels(queue, event).inc(times - self._incoming_shown[queue, event])
            self._incoming_shown[queue, event] = times
        rejected = {(plugin, profile): number for profile, plugin, number in engine.queue.waiting()}
        for plugin, profile in self._unschedulable_shown - rejected.keys():
            self.unschedulable.labels(plugin, profile).set(0)
        for (plugin, profile), number in rejected.items():
            self.unschedulable.labels(plugin, profile).set(number)
        self._unschedulable_shown = set(rejected)
        for (plugin, point, profile), cell in self._calls.items():
            self.evaluations.labels(plugin, point, profile).inc(cell[0])
            cell[0] = 0
        self.cache.labels("nodes").set(len(engine.state.table.live_rows()))
        self.cache.labels("pods").set(len(engine.state.pods))
        self.cache.labels("assumed_pods").set(len(engine.assumed_pods))
        if self._groups is not None:
            self._groups.read_engine(engine)

    def read_plugins(
        self, engine: Scheduler, misbehaved: Callable[[reports.PluginMisbehaved], None] = lambda _: None
    ) -> None:
        self._plugin_gauges.update(engine, misbehaved)
        if self._groups is not None:
            self._groups.read_reservations(engine.state.store.every(ResourceReservation).values())

    def text(self, accept: str = "") -> tuple[bytes, str]:
        return exposition(self.registry, accept)

    # -- plugins

    def timed(self, profile: Profile) -> Profile:
        """The same profile; the calls of its plugins are counted and timed."""
        if self._groups is None and group_metrics.has_groups(profile):
            self._groups = GroupMetrics(self.registry)
        made: dict[str, Any] = {}
        points = {
            point: tuple(
                EnabledPlugin(
                    enabled.name, made.setdefault(enabled.name, TimedPlugin(enabled, profile, self)), enabled.weight
                )
                for enabled in plugins
            )
            for point, plugins in profile.points.items()
        }
        return Profile(profile.scheduler_name, points, profile.percentage_of_nodes_to_score)

    def calls(self, plugin: str, point: str, profile: str) -> list[int]:
        """A counter cell. It is added to the metric once a second: adding costs more than counting."""
        return self._calls.setdefault((plugin, point, profile), [0])

    def add_time(self, point: str, status: str, profile: str, seconds: float) -> None:
        key = (point, status, profile)
        self._points[key] = self._points.get(key, 0.0) + seconds


class TimedPlugin:
    """A plugin whose methods are timed; all other attributes are the plugin's own."""

    def __init__(self, enabled: EnabledPlugin[Any], profile: Profile, metrics: Metrics) -> None:
        self.__plugin = enabled.plugin
        for method, point in POINT_NAMES.items():
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
            started, status = clock(), "Error"
            try:
                answer = call(*arguments)
                if isinstance(answer, Iterator):
                    answer = list(answer)  # a generator works only when it is read
                status = "Success"
                return answer
            finally:
                seconds = clock() - started
                observed[status](seconds)
                metrics.add_time(point, status, profile, seconds)

        return timed


def _make(
    registry: CollectorRegistry, kind: Any, name: str, text: str, labels: list[str], buckets: Any = None
) -> Any:  # fmt: skip
    options = {} if buckets is None else {"buckets": buckets}
    return kind(f"scheduler_{name}", text, labels, registry=registry, **options)
