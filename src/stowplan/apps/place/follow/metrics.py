"""Metrics of `stowplan place follow`."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from stowplan.apps.exposition import exposition
from stowplan.apps.metric_factory import MetricFactory
from stowplan.apps.reflector_gauges import ReflectorGauges


class FollowMetrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.reflector_gauges = ReflectorGauges(self._registry)
        make = MetricFactory(self._registry, "stowplan_follow_")
        self._clusters = make.gauge("clusters", "Clusters: chosen by the Placement, settled, failing.", "state")
        self._final = make.gauge("choice_final", "1 if clusters that are not chosen lose the workload.")
        self._leading = make.gauge("leading", "1 if this replica writes.")
        self.writes = make.counter("writes", "Objects created, patched and deleted.", "cluster", "does")

    def show(self, *, chosen: int, settled: int, failing: int, final: bool, leading: bool) -> None:
        for state, number in (("chosen", chosen), ("settled", settled), ("failing", failing)):
            self._clusters.labels(state).set(number)
        self._final.set(final)
        self._leading.set(leading)

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their content type."""
        return exposition(self._registry, accept)
