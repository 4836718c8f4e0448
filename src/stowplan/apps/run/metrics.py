"""kube-scheduler's metrics under its names and labels, from the engine's reports and from its state."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable

from prometheus_client import CollectorRegistry

from stowplan.apps.exposition import exposition
from stowplan.apps.metric_factory import MetricFactory, exponential
from stowplan.apps.run import group_metrics
from stowplan.apps.run.group_metrics import GroupMetrics
from stowplan.apps.run.own_metrics import OwnMetrics
from stowplan.apps.run.plugin_gauges import PluginGauges
from stowplan.apps.run.plugin_timing import PluginTimes
from stowplan.engine import reports
from stowplan.engine.scheduler import Scheduler
from stowplan.engine.unit import QueueStage
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import ResourceReservation

SECONDS = exponential(0.001, 2, 15)
QUEUES = {
    QueueStage.ACTIVE: "active",
    QueueStage.BACKOFF: "backoff",
    QueueStage.UNSCHEDULABLE: "unschedulable",
    QueueStage.GATED: "gated",
}


class Metrics:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.registry = CollectorRegistry()
        self.pod_of: Callable[[str], Pod | None] = lambda _: None  # by key; set by the service
        self._clock = clock
        self._step_began = 0.0
        new = MetricFactory(self.registry, "scheduler_")
        self._attempts = new.counter("schedule_attempts_total", "Attempts to schedule pods.", "result", "profile")
        self._attempt_seconds = new.histogram(
            "scheduling_attempt_duration_seconds",
            "Seconds that an attempt took.",
            *("result", "profile"),
            buckets=SECONDS,
        )
        self._algorithm_seconds = new.histogram(
            "scheduling_algorithm_duration_seconds", "Seconds that a decision took.", buckets=SECONDS
        )
        self._pending = new.gauge("pending_pods", "Pending pods, by queue.", "queue")
        self._incoming = new.counter("queue_incoming_pods_total", "Pods that entered a queue.", "queue", "event")
        self._preemptions = new.counter("preemption_attempts_total", "Attempts to preempt pods.")
        self._victims = new.histogram(
            "preemption_victims", "Victims that were chosen at once.", buckets=exponential(1, 2, 7)
        )
        self._pod_attempts = new.histogram(
            "pod_scheduling_attempts", "Attempts until a pod was bound.", buckets=exponential(1, 2, 5)
        )
        self._sli = new.histogram(
            "pod_scheduling_sli_duration_seconds",
            "Seconds from the first sight of a pod until it was bound.",
            "attempts",
            buckets=exponential(0.01, 2, 20),
        )
        self._unschedulable = new.gauge("unschedulable_pods", "Pods that a plugin rejected.", "plugin", "profile")
        self._permit_seconds = new.histogram(
            "permit_wait_duration_seconds", "Seconds that pods waited for a permit.", "result", buckets=SECONDS
        )
        self._after_flush = new.counter(
            "pod_scheduled_after_flush_total", "Pods that were bound after a flush of the unschedulable queue."
        )
        self._own = OwnMetrics(self.registry, clock)
        self._cache = new.gauge("cache_size", "Objects in the scheduler's cache.", "type")
        self._plugin_times = PluginTimes(new)
        self._plugin_gauges = PluginGauges(self.registry)
        self._groups: GroupMetrics | None = None
        self._incoming_shown: Tally[tuple[str, str]] = Tally()
        self._unschedulable_shown: set[tuple[str, str]] = set()

    def timed(self, profile: Profile) -> Profile:
        """Return the same profile; the calls of its plugins are counted and timed."""
        if self._groups is None and group_metrics.has_groups(profile):
            self._groups = GroupMetrics(self.registry)
        return self._plugin_times.timed(profile)

    # -- from reports of the engine

    def report(self, report: reports.Report) -> None:
        if self._groups is not None:
            self._groups.report(report, max(self._clock() - self._step_began, 0.0), self.pod_of)
        match report:
            case reports.PodBound():
                self._attempted("scheduled", report.profile)
                self._pod_attempts.observe(report.attempts)
                attempts = str(report.attempts) if report.attempts < 15 else "15+"
                self._sli.labels(attempts).observe(max(self._clock() - report.since, 0.0))
                self._after_flush.inc(report.flushed)
            case reports.BindingUnconfirmed():
                self._own.unconfirmed.inc()
            case reports.AttemptFailed():
                self._own.attempt_failed(report)
                self._attempted("error" if report.error else "unschedulable", report.profile)
            case reports.PreemptionStarted():
                self._preemptions.inc()
                self._victims.observe(report.victims)
            case reports.PluginMisbehaved():
                self._own.plugin_errors.labels(report.plugin, report.point).inc()
            case reports.PermitWaited():
                self._permit_seconds.labels("Success" if report.allowed else "Unschedulable").observe(report.seconds)

    def binding_answered(self, status: int, seconds: float) -> None:
        self._own.binding_seconds.labels(str(status)).observe(seconds)

    def show_leading(self, lease: str, *, leading: bool) -> None:
        self._own.leading.labels(lease).set(leading)

    def _attempted(self, result: str, profile: str) -> None:
        self._attempts.labels(result, profile).inc()
        self._attempt_seconds.labels(result, profile).observe(max(self._clock() - self._step_began, 0.0))

    def stepped(self, seconds: float) -> None:
        """Note the duration of a step, and how long its plugins took at each point."""
        self._algorithm_seconds.observe(seconds)
        self._plugin_times.end_step()
        self._step_began = self._clock()

    # -- from the state of the engine, once a second

    def read_engine(self, engine: Scheduler, *, leading: bool = True) -> None:
        stages = Tally(unit.stage for unit in engine.queue.units.values() for _ in unit.pods)
        for stage, queue in QUEUES.items():
            self._pending.labels(queue).set(stages[stage])
        for (queue, event), times in engine.queue.incoming.items():
            self._incoming.labels(queue, event).inc(times - self._incoming_shown[queue, event])
            self._incoming_shown[queue, event] = times
        rejected = {(plugin, profile): number for profile, plugin, number in engine.queue.waiting()}
        for plugin, profile in self._unschedulable_shown - rejected.keys():
            self._unschedulable.labels(plugin, profile).set(0)
        for (plugin, profile), number in rejected.items():
            self._unschedulable.labels(plugin, profile).set(number)
        self._unschedulable_shown = set(rejected)
        self._plugin_times.count_calls()
        self._own.read_engine(engine, leading=leading)
        self._cache.labels("nodes").set(len(engine.state.table.live_rows()))
        self._cache.labels("pods").set(len(engine.state.pods))
        self._cache.labels("assumed_pods").set(len(engine.assumed_pods))
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
