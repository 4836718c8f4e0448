"""The reference of the metrics: a table for each program, from the objects that serve them.

prometheus_client keeps the labels of a metric in a private attribute. Its version is pinned, and a test compares the
tables with what the programs serve.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry

from stowplan.apps.place.follow.metrics import FollowMetrics
from stowplan.apps.place.metrics import PlacementMetrics
from stowplan.apps.reflector_gauges import ReflectorGauges
from stowplan.apps.run.decision_file import DecisionFile
from stowplan.apps.run.foreign_bindings import ForeignBindings
from stowplan.apps.run.group_metrics import GroupMetrics
from stowplan.apps.run.metrics import Metrics
from stowplan.apps.run.recount import Recounter
from stowplan.apps.score_agent.metrics import ScoreAgentMetrics
from stowplan.apps.shadow.metrics import ShadowMetrics

_unused: Any = None  # what an object needs to work, and not to have metrics


class Metric(NamedTuple):
    """A metric as a scraper sees it. A counter's name ends with _total."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str

    def row(self) -> str:
        labels = ", ".join(f"`{label}`" for label in self.labels)
        return f"| `{self.name}` | {self.kind} | {labels} | {self.text} |"


def reference() -> str:
    """Return the tables of all programs as Markdown."""
    return "\n\n".join(_section(*program) for program in programs())


def programs() -> Iterator[tuple[str, str, CollectorRegistry]]:
    """Yield each program with a sentence about its metrics, and its registry."""
    scheduler = Metrics().registry
    ReflectorGauges(scheduler)
    DecisionFile(Path(os.devnull), 1, 0, scheduler, _unused)
    ForeignBindings(scheduler, _unused, time.monotonic)
    Recounter(scheduler, _unused, _unused)
    yield "stowplan run", "Names that begin with `scheduler_` are kube-scheduler's.", scheduler
    groups = CollectorRegistry()
    GroupMetrics(groups)
    about = "Served if a profile has `Coscheduling` or `ResourceReservation`."
    yield "stowplan run, with pod groups", about, groups
    placements = PlacementMetrics().registry
    ReflectorGauges(placements)
    about = "Names that begin with `scheduling_` are those of Open Cluster Management's controller."
    yield "stowplan place", about, placements
    yield "stowplan place follow", "", FollowMetrics()._registry
    yield "stowplan score-agent", "", ScoreAgentMetrics().registry
    yield "stowplan shadow", "", ShadowMetrics()._registry


def metrics_of(registry: CollectorRegistry) -> list[Metric]:
    """Return the metrics of a registry, by name."""
    found = []
    for collector in registry._collector_to_names:
        for family in collector.collect():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = tuple(getattr(collector, "_labelnames", ()))
            found.append(Metric(name, family.type, labels, family.documentation))
    return sorted(found)


def _section(title: str, about: str, registry: CollectorRegistry) -> str:
    rows = [each.row() for each in metrics_of(registry)]
    return "\n".join([f"## {title}", "", about, "", "| metric | type | labels | |", "|---|---|---|---|", *rows])
