"""Gauges that plugins define themselves (`gauges`), among the scheduler's metrics.

The same gauge from several profiles is one gauge. Its first use defines its labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import prometheus_client
from prometheus_client import CollectorRegistry

from stowplan.columns.nodes.views import Cluster
from stowplan.engine.reports import PluginMisbehaved
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.interfaces import Gauge, GaugesPlugin
from stowplan.framework.plugin_calls import call_list
from stowplan.framework.plugin_faults import error_text
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.errors import PluginError

Shown: TypeAlias = tuple[str, tuple[str, ...]]  # the name of a gauge and the values of its labels


class Metric(NamedTuple):
    gauge: prometheus_client.Gauge
    labels: tuple[str, ...]


class PluginGauges:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._metrics: dict[str, Metric] = {}
        self._shown: set[Shown] = set()

    def update(self, engine: Scheduler, misbehaved: Callable[[PluginMisbehaved], None]) -> None:
        """Read the gauges of all plugins. `misbehaved` is called for a plugin that raises or changes its labels.

        Old gauges are removed last: a page that another thread reads meanwhile misses none.
        """
        cluster, shown = Cluster(engine.state), set[Shown]()
        for enabled in (enabled for profile in engine.profiles.values() for enabled in profile.gauge_plugins):
            shown.update(self._read(enabled, cluster, misbehaved))
        for name, labels in self._shown - shown:
            gauge = self._metrics[name].gauge
            gauge.remove(*labels) if labels else gauge.set(0)
        self._shown = shown

    def _read(
        self, enabled: EnabledPlugin[GaugesPlugin], cluster: Cluster, misbehaved: Callable[[PluginMisbehaved], None]
    ) -> Iterator[Shown]:
        try:
            for found in call_list(enabled, enabled.plugin.gauges, Gauge, cluster):
                yield self._show(found)
        except PluginError as error:
            misbehaved(PluginMisbehaved(error.plugin, error.point, error.problem))
        except ValueError as error:  # an invalid name, a value that is no number
            misbehaved(PluginMisbehaved(enabled.name, "gauges", str(error)))
        except Exception as error:  # whatever a plugin puts into a gauge
            misbehaved(PluginMisbehaved(enabled.name, "gauges", error_text(error)))

    def _show(self, found: Gauge) -> Shown:
        metric = self._metrics.get(found.name)
        if metric is None:
            names = tuple(found.labels)
            made = prometheus_client.Gauge(f"stowplan_{found.name}", found.help, names, registry=self._registry)
            metric = self._metrics[found.name] = Metric(made, names)
        if found.labels.keys() != set(metric.labels):
            before, now = (", ".join(sorted(names)) or "none" for names in (metric.labels, found.labels))
            raise ValueError(f"the labels of {found.name} were {before} before, and are {now} now")
        labels = tuple(found.labels[name] for name in metric.labels)
        (metric.gauge.labels(*labels) if labels else metric.gauge).set(found.value)
        return found.name, labels
