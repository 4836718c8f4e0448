"""Metrics of `stowplan place`: Open Cluster Management's under its names, and what it does not count under ours."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from stowplan.apps.exposition import exposition
from stowplan.framework.placement.decision import ClusterPolicy, PluginStatus, Prioritizer
from stowplan.objects.actions import Action
from stowplan.objects.changes import Result
from stowplan.objects.placements import MISCONFIGURED, SATISFIED, Placement, ScoreCoordinate
from stowplan.placement.scheduler import PlacementScheduler

BUCKETS = tuple(10.0 ** (step - 6) for step in range(10))
NAMED = {"name": "placement_scheduling"}  # Open Cluster Management's constant label


class PlacementMetrics:
    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.registry, self._clock = CollectorRegistry(), clock
        self._scheduling = self._histogram("scheduling_scheduling_duration_seconds", "Seconds a decision took.")
        self._plugins = self._histogram(
            "scheduling_plugin_duration_seconds", "Seconds a plugin took.", "plugin_type", "plugin_name"
        )
        self._binding = self._histogram(
            "scheduling_bind_duration_seconds", "Seconds a write of a PlacementDecision took until it was answered."
        )
        self._writes = Histogram(
            "stowplan_placement_write_duration_seconds",
            "Seconds a write took until it was answered.",
            ("does", "kind", "code"),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._decisions = Counter(
            "stowplan_placement_decisions", "How often placements were decided.", registry=self.registry
        )
        self._placements = Gauge(
            "stowplan_placements", "Placements, by what their conditions say.", ("result",), registry=self.registry
        )
        self._clusters = Gauge("stowplan_placement_clusters", "Clusters that can be chosen.", registry=self.registry)
        self._leading = Gauge("stowplan_placement_leading", "1 if this replica writes.", registry=self.registry)
        self._told = 0

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(name, text, (*NAMED, *labels), buckets=BUCKETS, registry=self.registry)

    # -- what is timed

    def timed(self, policy: ClusterPolicy) -> ClusterPolicy:
        """The same policy, whose plugins are watched at work."""

        def add_on(coordinate: ScoreCoordinate, weight: int) -> Prioritizer | PluginStatus:
            made = policy.add_on(coordinate, weight)
            return made if isinstance(made, PluginStatus) else self._watched(made)

        return replace(
            policy,
            filters=tuple(self._watched(each) for each in policy.filters),
            prioritizers={name: self._watched(each) for name, each in policy.prioritizers.items()},
            add_on=add_on,
        )

    def _watched(self, plugin: Any) -> Any:
        return Watched(plugin, self._clock, self._took)

    def _took(self, kind: str, name: str, seconds: float) -> None:
        self._plugins.labels(*NAMED.values(), kind, name).observe(seconds)

    async def performed(self, perform: Callable[[Action], Awaitable[Result]], action: Action) -> Result:
        begun = self._clock()
        result = await perform(action)
        seconds, kind = self._clock() - begun, getattr(action, "kind", "")
        self._writes.labels(type(action).__name__.lower(), kind, str(result.status)).observe(seconds)
        if kind == "PlacementDecision":
            self._binding.labels(*NAMED.values()).observe(seconds)
        return result

    def stepped(self, engine: PlacementScheduler, seconds: float) -> None:
        if engine.decisions > self._told:
            self._scheduling.labels(*NAMED.values()).observe(seconds)
            self._decisions.inc(engine.decisions - self._told)
            self._told = engine.decisions

    # -- what there is

    def look_at(self, engine: PlacementScheduler, *, leading: bool) -> None:
        found = Tally(map(_result, engine.placements.values()))
        for result in ("satisfied", "unsatisfied", "misconfigured", "undecided"):
            self._placements.labels(result).set(found[result])
        self._clusters.set(int(engine.fleet.available.sum()))
        self._leading.set(leading)

    def text(self, accept: str) -> tuple[bytes, str]:
        return exposition(self.registry, accept)


class Watched:
    """A plugin as it is, but that its filter and its score are timed."""

    def __init__(self, plugin: Any, clock: Callable[[], float], took: Callable[[str, str, float], None]) -> None:
        self._plugin, self._clock, self._took = plugin, clock, took

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._plugin, name)
        kind = {"filter": "filter", "score": "prioritizer"}.get(name)
        if kind is None:
            return found

        def timed(*arguments: Any) -> Any:
            begun = self._clock()
            answer = found(*arguments)
            named = self._plugin.name.partition("/")[0]  # not a time series for each add-on score
            self._took(kind, named, self._clock() - begun)
            return answer

        return timed


def _result(placement: Placement) -> str:
    wrong, fine = placement.condition(MISCONFIGURED), placement.condition(SATISFIED)
    if wrong is not None and wrong.status == "True":
        return "misconfigured"
    if fine is None:
        return "undecided"
    return "satisfied" if fine.status == "True" else "unsatisfied"
