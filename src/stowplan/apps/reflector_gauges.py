"""Gauges of what a program follows, the same in all programs: objects that cannot be read, and silent watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry

from stowplan.apps.metric_factory import MetricFactory
from stowplan.kube.reflector import Reflector


class ReflectorGauges:
    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        new = MetricFactory(registry, "stowplan_")
        self._unreadable = new.gauge(
            "unreadable_objects",
            "Objects whose latest version cannot be read; the log says what counts instead.",
            "kind",
        )
        self._silence = new.gauge(
            "watch_silence_seconds",
            "Seconds since the API server last said anything about a kind; it does so each minute.",
            "kind",
        )

    def read(self, reflectors: Mapping[str, Reflector]) -> None:
        now = self._clock()
        for kind, reflector in reflectors.items():
            self._unreadable.labels(kind).set(len(reflector.cache.unreadable))
            self._silence.labels(kind).set(max(now - reflector.heard, 0.0))
