"""Comparison of what plugins count with the objects of the API server, at intervals.

Decisions do not depend on it: they use columns that are updated with each change. A plugin that can recount declares
how often (`recount_every`). Differences go into a metric and into the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge

from stowplan.apps.engine_loop import EngineLoop
from stowplan.apps.logging import Log
from stowplan.apps.plugin_problems import PluginProblemLog
from stowplan.columns.nodes.views import Cluster
from stowplan.engine.binding.assumed_pod import AssumedPod
from stowplan.engine.pods import assumed
from stowplan.engine.reports import PluginMisbehaved
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.interfaces import Drift, RecountPlugin
from stowplan.framework.plugin_calls import call_list, seconds_of
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

MAX_LOGGED = 5  # differences that a log line names


def with_assumed(pods: Iterable[Object], assumed_pods: Mapping[str, AssumedPod]) -> Iterator[Pod]:
    """Yield the API server's pods; assumed pods are on the nodes where the engine counts them."""
    for pod in pods:
        if isinstance(pod, Pod):
            placing = assumed_pods.get(pod.uid)
            yield pod if placing is None or pod.node_name else assumed(placing.pod, placing.node_name)


class Recounter:
    """Recounts for each plugin of each profile when it is due."""

    def __init__(self, registry: CollectorRegistry, log: Log, problems: PluginProblemLog) -> None:
        self._log, self._problems = log, problems
        self._due: dict[tuple[str, str], float] = {}
        self._shown: set[tuple[str, str]] = set()
        labels = ["plugin", "profile"]
        self._recounts = Counter(
            "stowplan_recounts_total",
            "Comparisons of a plugin's counts with the API's objects.",
            labels,
            registry=registry,
        )
        self._drift = Gauge(
            "stowplan_drift", "Counts that the last comparison did not confirm.", labels, registry=registry
        )

    def recount_due(self, engine_loop: EngineLoop[Scheduler], pods: Mapping[str, Object], now: float) -> None:
        """Recount for the plugins that are due. The first recount is one period after the plugin is enabled."""
        plugins = {
            (profile.scheduler_name, enabled.name): (profile, enabled, every)
            for profile in engine_loop.engine.profiles.values()
            for enabled in profile.recount_plugins
            if (every := self._every(enabled))
        }
        self._due = {key: self._due.get(key, now + every) for key, (*_, every) in plugins.items()}
        for profile_name, plugin in self._shown - plugins.keys():
            self._drift.remove(plugin, profile_name)
        self._shown &= plugins.keys()
        for key, (profile, enabled, every) in plugins.items():
            if self._due[key] <= now:
                self._due[key] = now + every
                self._recount(engine_loop, pods, profile, enabled)

    def _every(self, enabled: EnabledPlugin[RecountPlugin]) -> float:
        try:
            return seconds_of(enabled, "recount_every", 0.0) or 0.0
        except PluginError as error:
            self._problems.report(PluginMisbehaved(error.plugin, error.point, error.problem))
            return 0.0

    def _recount(
        self,
        engine_loop: EngineLoop[Scheduler],
        pods: Mapping[str, Object],
        profile: Profile,
        enabled: EnabledPlugin[RecountPlugin],
    ) -> None:
        engine_loop.handle_inbox()  # the reflector may know of changes that the engine has not handled yet
        engine = engine_loop.engine
        counted = with_assumed(pods.values(), engine.assumed_pods)
        try:
            found = call_list(enabled, enabled.plugin.recount, Drift, counted, Cluster(engine.state))
        except PluginError as error:
            self._problems.report(PluginMisbehaved(error.plugin, error.point, error.problem))
        else:
            self._show(profile, enabled, found)

    def _show(self, profile: Profile, enabled: EnabledPlugin[RecountPlugin], found: list[Drift]) -> None:
        self._recounts.labels(enabled.name, profile.scheduler_name).inc()
        self._drift.labels(enabled.name, profile.scheduler_name).set(len(found))
        self._shown.add((profile.scheduler_name, enabled.name))
        if found:
            first = ", ".join(f"{each.what}: {each.counted}, not {each.recounted}" for each in found[:MAX_LOGGED])
            self._log.warning(
                "Counts differ from the API's objects",
                plugin=enabled.name, profile=profile.scheduler_name, differences=len(found), first=first,
            )  # fmt: skip
