"""Makes metrics of one registry whose names begin alike."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class MetricFactory:
    def __init__(self, registry: CollectorRegistry, prefix: str) -> None:
        self._registry, self._prefix = registry, prefix

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(self._prefix + name, text, labels, registry=self._registry)

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(self._prefix + name, text, labels, registry=self._registry)

    def histogram(self, name: str, text: str, *labels: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(self._prefix + name, text, labels, buckets=buckets, registry=self._registry)


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Return bounds of buckets that grow by a factor."""
    return tuple(first * factor**step for step in range(count))
