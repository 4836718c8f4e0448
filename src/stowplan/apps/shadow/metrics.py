"""Metrics of `stowplan shadow`."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from stowplan.apps.exposition import exposition
from stowplan.apps.metric_factory import MetricFactory
from stowplan.apps.reflector_gauges import ReflectorGauges
from stowplan.shadow.verdict import KINDS


class ShadowMetrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.reflector_gauges = ReflectorGauges(self._registry)
        make = MetricFactory(self._registry, "stowplan_shadow_")
        self.decisions = make.counter(
            "decisions", "Decisions of the running scheduler, by what we say of them.", "kind"
        )
        for kind in KINDS:
            self.decisions.labels(kind)
        self.missed = make.gauge("missed_decisions", "Decisions of a time in which nothing was seen: not judged.")
        self.undecided = make.gauge("undecided_pods", "Unschedulable pods that have a node here, for a short time yet.")
        self.undue = make.gauge("undue_decisions", "Decisions that are judged in a moment, when what follows is known.")
        self.behind = make.gauge("behind_seconds", "For how long the next change should have been looked at.")

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their content type."""
        return exposition(self._registry, accept)
