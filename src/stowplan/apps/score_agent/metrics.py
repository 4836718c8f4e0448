"""Metrics of `stowplan score-agent`."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry

from stowplan.apps.exposition import exposition
from stowplan.apps.metric_factory import MetricFactory, exponential
from stowplan.apps.reflector_gauges import ReflectorGauges

SECONDS = exponential(0.005, 2, 14)


class ScoreAgentMetrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reflector_gauges = ReflectorGauges(self.registry)
        make = MetricFactory(self.registry, "stowplan_scores_")
        self.rounds = make.counter("rounds", "Rounds: done, or failed for some cluster.", "result")
        self.seconds = make.histogram("round_duration_seconds", "Seconds that a round took.", buckets=SECONDS)
        self.objects = make.counter(
            "objects", "AddOnPlacementScores of all rounds: written, refreshed, unchanged, failed.", "outcome"
        )
        self.last_success = make.gauge(
            "last_success_timestamp_seconds", "When a round last had no failure, in seconds since the epoch."
        )
        self.unknown = make.gauge("unknown_clusters", "Clusters that have values, and that the hub does not have.")
        self.renewals = make.counter("token_renewals", "Renewals of the token for the hub: done, failed.", "result")
        self.token_expiry = make.gauge(
            "token_expiry_timestamp_seconds", "When the token for the hub expires; 0 if it is not known."
        )
        self._clusters = make.gauge("clusters", "Clusters that had scores in the last round.")
        self._shown: set[tuple[str, str]] = set()
        self._score = make.gauge("score", "The scores of the last round.", "cluster", "score")

    def show(self, scores: Mapping[str, Mapping[str, int]]) -> None:
        """Show the scores of a round, and no others. None vanishes in between: a scraper may come at any time."""
        self._clusters.set(len(scores))
        shown = {(cluster, name) for cluster, found in scores.items() for name in found}
        for gone in self._shown - shown:
            self._score.remove(*gone)
        self._shown = shown
        for cluster, name in shown:
            self._score.labels(cluster, name).set(scores[cluster][name])

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their content type."""
        return exposition(self.registry, accept)
