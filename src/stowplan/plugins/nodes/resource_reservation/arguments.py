"""The arguments of ResourceReservation, checked and converted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stowplan.framework.config.document import shown
from stowplan.objects import quantity
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


def executor_resources(given: Any) -> dict[str, str]:
    """Return what each executor requests whose driver does not say it."""
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"executorResources: found {shown(given)}, expected resources such as {{cpu: 1, memory: 2Gi}}"
        )
    found = {str(name): str(text) for name, text in given.items()}
    for name, text in found.items():
        try:
            negative = quantity.nanos(text) < 0
        except ValueError as error:
            raise ConfigError(f"executorResources.{name}: {error}") from None
        if negative:
            raise ConfigError(f"executorResources.{name}: found {text}, expected a quantity such as 500m or 1Gi")
    return found


def seconds(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise ConfigError(f"enforceAfterPodAgeSeconds: found {shown(given)}, expected a number of seconds, 0 or more")
    return given
