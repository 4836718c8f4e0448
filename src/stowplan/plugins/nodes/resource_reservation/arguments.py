"""The arguments of ResourceReservation, checked and converted."""

from __future__ import annotations

from typing import Any

from stowplan.framework.config.document import shown
from stowplan.objects.errors import ConfigError
from stowplan.plugins.nodes.resource_reservation.packing import STRATEGIES, Strategy

PALANTIRS = {
    "distribute-evenly": ("evenly", False),
    "tightly-pack": ("tightly", False),
    "minimal-fragmentation": ("minimalFragmentation", False),
    "single-az-tightly-pack": ("tightly", True),
    "single-az-minimal-fragmentation": ("minimalFragmentation", True),
}


def strategy(given: Any) -> tuple[Strategy, bool]:
    """Return how executors are packed, and True if the name means a single zone."""
    name, in_zone = PALANTIRS.get(given, (given, False)) if isinstance(given, str) else ("", False)
    if name not in STRATEGIES:
        known = ", ".join((*STRATEGIES, *PALANTIRS))
        raise ConfigError(f"packing: found {shown(given)}, expected one of {known}")
    return STRATEGIES[name], in_zone


def label(given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise ConfigError(f"zoneLabel: found {shown(given)}, expected the key of a label of nodes")
    return given


def resources(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise ConfigError(f"gpuResources: found {shown(given)}, expected a list of resources")
    return tuple(given)


def seconds(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise ConfigError(f"enforceAfterPodAgeSeconds: found {shown(given)}, expected a number of seconds, 0 or more")
    return given
