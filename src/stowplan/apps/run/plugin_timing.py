"""kube-scheduler's metrics of plugins: how often they are called, and how long they take.

Every call is counted. One step in ten is timed, as with kube-scheduler.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from stowplan.apps.metric_factory import MetricFactory, exponential
from stowplan.framework.extension_points import METHODS
from stowplan.framework.profile import EnabledPlugin, Profile

POINT_NAMES = {method: point[0].upper() + point[1:] for point, method in METHODS.items() if method}
POINT_NAMES |= {"fits": "Filter", "rate": "Score"}  # the same for one node
STATUSES = ("Success", "Error")
SAMPLE_EVERY = 10  # steps


class PluginTimes:
    def __init__(self, new: MetricFactory) -> None:
        self.sampling = True
        self._steps = 0
        self._seconds: dict[tuple[str, str, str], float] = {}  # of this step, by point, status and profile
        self._calls: dict[tuple[str, str, str], list[int]] = {}  # not in the metric yet, by plugin, point and profile
        self._point_seconds = new.histogram(
            "framework_extension_point_duration_seconds",
            "Seconds that all plugins of a point took for a pod.",
            *("extension_point", "status", "profile"),
            buckets=exponential(0.0001, 2, 12),
        )
        self._plugin_seconds = new.histogram(
            "plugin_execution_duration_seconds",
            "Seconds that one plugin took at a point.",
            *("plugin", "extension_point", "status"),
            buckets=exponential(1e-5, 1.5, 20),
        )
        self._evaluations = new.counter(
            "plugin_evaluation_total", "Calls of plugins.", "plugin", "extension_point", "profile"
        )

    def timed(self, profile: Profile) -> Profile:
        """Return the same profile; the calls of its plugins are counted and timed."""
        made: dict[str, TimedPlugin] = {}
        points = {
            point: tuple(
                EnabledPlugin(each.name, made.setdefault(each.name, TimedPlugin(each, profile, self)), each.weight)
                for each in enabled
            )
            for point, enabled in profile.points.items()
        }
        return Profile(profile.scheduler_name, points, profile.percentage_of_nodes_to_score)

    def calls(self, plugin: str, point: str, profile: str) -> list[int]:
        """Return a cell to count calls in. It is added to the metric once a second: adding costs more than counting."""
        return self._calls.setdefault((plugin, point, profile), [0])

    def observers(self, plugin: str, point: str) -> dict[str, Callable[[float], None]]:
        """Return functions that take the seconds of a call, by status."""
        return {status: self._plugin_seconds.labels(plugin, point, status).observe for status in STATUSES}

    def add(self, point: str, status: str, profile: str, seconds: float) -> None:
        key = (point, status, profile)
        self._seconds[key] = self._seconds.get(key, 0.0) + seconds

    def end_step(self) -> None:
        """Put the seconds of a step into the metric, and choose whether the next step is timed."""
        for (point, status, profile), seconds in self._seconds.items():
            self._point_seconds.labels(point, status, profile).observe(seconds)
        self._seconds.clear()
        self._steps += 1
        self.sampling = self._steps % SAMPLE_EVERY == 0

    def count_calls(self) -> None:
        """Put the calls since the last time into the metric."""
        for (plugin, point, profile), cell in self._calls.items():
            self._evaluations.labels(plugin, point, profile).inc(cell[0])
            cell[0] = 0


class TimedPlugin:
    """A plugin whose methods are timed; all other attributes are the plugin's own."""

    def __init__(self, enabled: EnabledPlugin[Any], profile: Profile, times: PluginTimes) -> None:
        self.__plugin = enabled.plugin
        for method, point in POINT_NAMES.items():
            call = getattr(enabled.plugin, method, None)
            if call is not None and method != "sort_key":
                setattr(self, method, _timed(call, enabled.name, point, profile.scheduler_name, times))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__plugin, name)


def _timed(
    call: Callable[..., object], plugin: str, point: str, profile: str, times: PluginTimes
) -> Callable[..., object]:
    cell, observers, clock = times.calls(plugin, point, profile), times.observers(plugin, point), time.perf_counter

    def timed(*arguments: object) -> object:
        cell[0] += 1
        if not times.sampling:
            return call(*arguments)
        started, status = clock(), "Error"
        try:
            answer = call(*arguments)
            if isinstance(answer, Iterator):
                answer = list(answer)  # a generator works only when it is read
            status = "Success"
            return answer
        finally:
            seconds = clock() - started
            observers[status](seconds)
            times.add(point, status, profile, seconds)

    return timed
