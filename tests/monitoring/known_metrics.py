"""The names of all series that programs of ours have, read off their registries."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry

from stowplan.apps.place.metrics import PlacementMetrics
from stowplan.apps.reflector_gauges import ReflectorGauges
from stowplan.apps.run.foreign_bindings import ForeignBindings
from stowplan.apps.run.group_metrics import GroupMetrics
from stowplan.apps.run.metrics import Metrics
from stowplan.apps.run.recount import Recounter
from stowplan.apps.score_agent.metrics import ScoreAgentMetrics

ENDINGS = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


def names() -> set[str]:
    return {"up", *(name for registry in _registries() for name in _names(registry))}


def _names(registry: CollectorRegistry) -> Iterator[str]:
    for family in registry.collect():
        for ending in ENDINGS[family.type]:
            yield family.name + ending


def _registries() -> Iterator[CollectorRegistry]:
    run, place, agent = Metrics(), PlacementMetrics(), ScoreAgentMetrics()
    GroupMetrics(run.registry)
    Recounter(run.registry, None, None)  # type: ignore[arg-type]
    ForeignBindings(run.registry, None, lambda: 0.0)  # type: ignore[arg-type]
    ReflectorGauges(run.registry)
    yield from (run.registry, place.registry, agent.registry)
