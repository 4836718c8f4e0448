"""Metrics of `stowplan run` that kube-scheduler does not have; alerts are built on them (deploy/monitoring)."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from prometheus_client import CollectorRegistry

from stowplan.apps.metric_factory import MetricFactory, exponential
from stowplan.engine.reports import AttemptFailed
from stowplan.engine.scheduler import Scheduler
from stowplan.engine.unit import QueueStage
from stowplan.objects.errors import PluginError

AGED = (QueueStage.ACTIVE, QueueStage.BACKOFF, QueueStage.UNSCHEDULABLE, QueueStage.GATED)


class OwnMetrics:
    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float]) -> None:
        self._clock = clock
        new = MetricFactory(registry, "stowplan_")
        self.unconfirmed = new.counter(
            "unconfirmed_bindings_total", "Bindings that were answered with success, and not carried out."
        )
        self.binding_seconds = new.histogram(
            "binding_duration_seconds",
            "Seconds until the API server answered a binding.",
            "code",
            buckets=exponential(0.001, 2, 15),
        )
        self.binding_seconds.labels("201")  # there before the first binding, so that its rate is seen
        self.plugin_errors = new.counter(
            "plugin_errors_total", "Calls of plugins that raised, hung or gave a wrong answer.", "plugin", "point"
        )
        self.leading = MetricFactory(registry, "leader_election_").gauge(
            "master_status", "1 if this replica holds the lease and decides, 0 if not.", "name"
        )
        self._oldest = new.gauge(
            "queue_oldest_pod_seconds",
            "Age of the oldest pod of a queue: since it is ready to be attempted (active), since it is known (others).",
            "queue",
        )
        self._active: dict[Hashable, tuple[int, float]] = {}  # units: their attempts, and since when they are ready

    def attempt_failed(self, report: AttemptFailed) -> None:
        named = PluginError.named_in(report.message) if report.error else None
        if named is not None:
            self.plugin_errors.labels(*named).inc()

    def read_engine(self, engine: Scheduler, *, leading: bool) -> None:
        """Once a second. A unit that was attempted since the last time is as young as it looks now.

        Who does not lead attempts nothing, and another replica's pods are old for no fault of anybody: its ages are 0.
        """
        now, oldest = self._clock(), dict.fromkeys(AGED, 0.0)
        active: dict[Hashable, tuple[int, float]] = {}
        for unit in engine.queue.units.values() if leading else ():
            since = unit.since
            if unit.stage is QueueStage.ACTIVE:
                before = self._active.get(unit.key)
                since = now if before is None or before[0] != unit.attempts else before[1]
                active[unit.key] = (unit.attempts, since)
            if unit.stage in oldest:
                oldest[unit.stage] = max(oldest[unit.stage], now - since)
        self._active = active
        for stage, age in oldest.items():
            self._oldest.labels(stage.value).set(age)
