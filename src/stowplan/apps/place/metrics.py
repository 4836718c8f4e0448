"""Metrics of `stowplan place`: those of Open Cluster Management under its names, and some of our own."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from stowplan.apps.exposition import exposition
from stowplan.framework.placement.interfaces import Misconfigured, Prioritizer
from stowplan.framework.placement.policy import ClusterPolicy
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.actions import Action
from stowplan.objects.changes import Result
from stowplan.objects.placements import MISCONFIGURED, SATISFIED, Placement, ScoreCoordinate
from stowplan.placement.scheduler import PlacementScheduler

BUCKETS = tuple(10.0 ** (step - 6) for step in range(10))
CONSTANT_LABELS = {"name": "placement_scheduling"}  # as Open Cluster Management has it

P = TypeVar("P")


class PlacementMetrics:
    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.registry, self._clock = CollectorRegistry(), clock
        self._scheduling = self._histogram("scheduling_scheduling_duration_seconds", "Seconds that a decision took.")
        self._plugins = self._histogram(
            "scheduling_plugin_duration_seconds", "Seconds that a plugin took.", "plugin_type", "plugin_name"
        )
        self._binding = self._histogram(
            "scheduling_bind_duration_seconds", "Seconds until the write of a PlacementDecision was answered."
        )
        self._writes = Histogram(
            "stowplan_placement_write_duration_seconds",
            "Seconds until a write was answered.",
            ("does", "kind", "code"),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._decisions = Counter("stowplan_placement_decisions", "Decisions about placements.", registry=self.registry)
        self._placements = Gauge(
            "stowplan_placements", "Placements, by their conditions.", ("result",), registry=self.registry
        )
        self._clusters = Gauge("stowplan_placement_clusters", "Clusters that are available.", registry=self.registry)
        self._expired = Gauge(
            "stowplan_placement_expired_scores",
            "AddOnPlacementScores that are no longer valid, so that they do not count.",
            registry=self.registry,
        )
        self._leading = Gauge("stowplan_placement_leading", "1 if this replica writes.", registry=self.registry)
        self._counted = 0

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(name, text, (*CONSTANT_LABELS, *labels), buckets=BUCKETS, registry=self.registry)

    # -- what is timed

    def timed(self, policy: ClusterPolicy) -> ClusterPolicy:
        """Return the same policy; the calls of its plugins are timed."""

        def add_on(coordinate: ScoreCoordinate, weight: int) -> EnabledPlugin[Prioritizer] | Misconfigured:
            made = policy.add_on(coordinate, weight)
            return made if isinstance(made, Misconfigured) else self._timed(made)

        return replace(
            policy,
            filters=tuple(self._timed(each) for each in policy.filters),
            prioritizers={name: self._timed(each) for name, each in policy.prioritizers.items()},
            add_on=add_on,
        )

    def _timed(self, enabled: EnabledPlugin[P]) -> EnabledPlugin[P]:
        timed = TimedClusterPlugin(enabled.name, enabled.plugin, self._clock, self._observe)
        return replace(enabled, plugin=cast(P, timed))

    def _observe(self, kind: str, name: str, seconds: float) -> None:
        self._plugins.labels(*CONSTANT_LABELS.values(), kind, name).observe(seconds)

    async def timed_write(self, perform: Callable[[Action], Awaitable[Result]], action: Action) -> Result:
        started = self._clock()
        result = await perform(action)
        seconds, kind = self._clock() - started, getattr(action, "kind", "")
        self._writes.labels(type(action).__name__.lower(), kind, str(result.status)).observe(seconds)
        if kind == "PlacementDecision":
            self._binding.labels(*CONSTANT_LABELS.values()).observe(seconds)
        return result

    def stepped(self, engine: PlacementScheduler, seconds: float) -> None:
        if engine.decisions > self._counted:
            self._scheduling.labels(*CONSTANT_LABELS.values()).observe(seconds)
            self._decisions.inc(engine.decisions - self._counted)
            self._counted = engine.decisions

    # -- from the state of the engine, once a second

    def read_engine(self, engine: PlacementScheduler, now: float, *, leading: bool) -> None:
        found = Tally(map(_result, engine.placements.values()))
        for result in ("satisfied", "unsatisfied", "misconfigured", "undecided"):
            self._placements.labels(result).set(found[result])
        self._clusters.set(int(engine.fleet.available.sum()))
        self._leading.set(leading)
        self._expired.set(engine.fleet.expired_scores(now))

    def text(self, accept: str) -> tuple[bytes, str]:
        return exposition(self.registry, accept)


class TimedClusterPlugin:
    """A plugin whose filter and score are timed; all other attributes are the plugin's own."""

    def __init__(
        self,
        name: str,
        plugin: object,
        clock: Callable[[], float],
        observe: Callable[[str, str, float], None],
    ) -> None:
        self._name = name.partition("/")[0] if name.startswith("AddOn/") else name  # one time series for all scores
        self._plugin, self._clock, self._observe = plugin, clock, observe

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._plugin, name)
        if name == "filter":
            return lambda *asked: self._timed("filter", lambda: tuple(found(*asked) or ()))  # a generator runs in here
        return (lambda *asked: self._timed("prioritizer", lambda: found(*asked))) if name == "score" else found

    def _timed(self, kind: str, ask: Callable[[], P]) -> P:
        started = self._clock()
        answer = ask()
        self._observe(kind, self._name, self._clock() - started)
        return answer


def _result(placement: Placement) -> str:
    misconfigured, satisfied = placement.condition(MISCONFIGURED), placement.condition(SATISFIED)
    if misconfigured is not None and misconfigured.status == "True":
        return "misconfigured"
    if satisfied is None:
        return "undecided"
    return "satisfied" if satisfied.status == "True" else "unsatisfied"
