"""Is what plugins count what the API server says? For those who want to see it, a recount now and then.

Decisions go by columns that are kept in step change by change, so nothing depends on this. A plugin that can tell says
how often it is to be asked (`Recount`); what differs goes into a metric, and into the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import Counter, Gauge

from stowplan.apps.engine_loop import EngineLoop
from stowplan.apps.run.options import RunningScheduler
from stowplan.columns.nodes.views import Cluster
from stowplan.engine.binding.assumed_pod import AssumedPod
from stowplan.engine.pods import assumed
from stowplan.engine.reports import PluginMisbehaved
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.interfaces import Drift, RecountPlugin
from stowplan.framework.plugin_calls import call_list
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

SHOWN = 5  # differences that a log line names


def as_decided(pods: Iterable[Object], placings: Mapping[str, AssumedPod]) -> Iterator[Pod]:
    """The API's pods. Those on their way to a node are shown there: that is how they are counted."""
    for pod in pods:
        if isinstance(pod, Pod):
            placing = placings.get(pod.uid)
            yield pod if placing is None or pod.node_name else assumed(placing.pod, placing.node_name)


class Recounter:
    """When each plugin of each profile is due, and what came of it."""

    def __init__(self, running: RunningScheduler) -> None:
        self._running = running
        self._due: dict[tuple[str, str], float] = {}
        self._shown: set[tuple[str, str]] = set()
        labels, registry = ["plugin", "profile"], running.metrics.registry
        self._made = Counter(
            "stowplan_recounts_total",
            "Comparisons of a plugin's counts with the API's objects.",
            labels,
            registry=registry,
        )
        self._drift = Gauge(
            "stowplan_drift", "Counts that the last comparison did not confirm.", labels, registry=registry
        )

    def look(self, now: float) -> None:
        """Ask those for whom it is time, the first time once their period is over."""
        live = self._running.live
        if live is None or not self._running.synced:
            return
        asked = {
            (profile.scheduler_name, enabled.name): (profile, enabled)
            for profile in live.engine.profiles.values()
            for enabled in profile.recount_plugins
            if enabled.plugin.recount_every
        }
        self._due = {key: self._due.get(key, now + each.plugin.recount_every) for key, (_, each) in asked.items()}
        for profile_name, plugin in self._shown - asked.keys():
            self._drift.remove(plugin, profile_name)  # nobody compares it any more
        self._shown &= asked.keys()
        for key, (profile, enabled) in asked.items():
            if self._due[key] <= now:
                self._due[key] = now + enabled.plugin.recount_every
                self._look_at(live, profile, enabled)

    def _look_at(self, live: EngineLoop[Scheduler], profile: Profile, enabled: EnabledPlugin[RecountPlugin]) -> None:
        try:
            found = self._recounted(live, enabled)
        except PluginError as error:  # it goes without its recount
            self._running.misbehaved(PluginMisbehaved(error.plugin, error.point, error.problem))
        else:
            self._tell(profile, enabled, found)

    def _recounted(self, live: EngineLoop[Scheduler], enabled: EnabledPlugin[RecountPlugin]) -> list[Drift]:
        live.take_in()  # the reflector may know what the engine has not looked at yet
        pods = as_decided(self._running.reflectors["Pod"].known.objects.values(), live.engine.assumed_pods)
        return call_list(enabled, enabled.plugin.recount, Drift, pods, Cluster(live.engine.state))

    def _tell(self, profile: Profile, enabled: EnabledPlugin[RecountPlugin], found: list[Drift]) -> None:
        self._made.labels(enabled.name, profile.scheduler_name).inc()
        self._drift.labels(enabled.name, profile.scheduler_name).set(len(found))
        self._shown.add((profile.scheduler_name, enabled.name))
        if found:
            said = ", ".join(f"{each.what}: {each.counted}, not {each.recounted}" for each in found[:SHOWN])
            self._running.log.warning(
                "Counts differ from the API's objects",
                plugin=enabled.name, profile=profile.scheduler_name, differences=len(found), first=said,
            )  # fmt: skip
