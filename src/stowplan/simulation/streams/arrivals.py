"""The arrivals of one entry of a scenario: when they come (a process), and what each of them is (distributions)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stowplan.framework.config.document import ConfigValue
from stowplan.objects import quantity
from stowplan.objects.errors import ConfigError
from stowplan.simulation import durations
from stowplan.simulation.stream_events import Arrival
from stowplan.simulation.streams.distributions import distribution
from stowplan.simulation.templates import Templates

MOST = 10_000_000  # arrivals of one entry
PROCESSES = "{poisson: mean time between two}, {fixed: time between two} or {burst: how many}"
LENGTH = "a length of time such as 90s or 2h"


class ArrivalSpec(ConfigValue, frozen=True):
    """An entry of `arrivals`. Values that are drawn have the forms in `distributions`."""

    process: dict[str, Any]
    template: str = ""
    duration: Any = None
    count: Any = 1
    requests: dict[str, Any] = {}  # noqa: RUF012  # msgspec copies it
    namespace: str = "default"
    owner: str = ""


def arrivals(
    spec: ArrivalSpec, start: float, length: float | None, templates: Templates, generator: np.random.Generator,
    path: str, file: str, prefix: str,
) -> Iterator[Arrival]:  # fmt: skip
    """Draw the arrivals of an entry, in the order of time. Raises ConfigError with the path of what is wrong."""
    lasts = (
        None if spec.duration is None else distribution(spec.duration, durations.seconds, f"{path}.duration", LENGTH)
    )
    counts = distribution(spec.count, _number, f"{path}.count", "a number")
    amounts = {
        name: distribution(value, _amount, f"{path}.requests.{name}", "an amount such as 500m, 4 or 16Gi")
        for name, value in spec.requests.items()
    }
    stem = spec.template or "pod"
    for number, at in enumerate(moments(spec.process, start, length, generator, f"{path}.process")):
        duration = None if lasts is None else round(lasts(generator), 3)
        count = max(round(counts(generator)), 1)
        requests = {name: _written(name, draw(generator)) for name, draw in amounts.items()}
        made = templates.made(
            spec.template, f"{stem}-{prefix}-{number}", namespace=spec.namespace, count=count, owner=spec.owner,
            requests=requests,
        )  # fmt: skip
        for document in made:
            yield Arrival(at=at, duration=duration, document=document, file=file, place=path)


def moments(
    process: dict[str, Any], start: float, length: float | None, generator: np.random.Generator, path: str
) -> Iterator[float]:
    """Yield the times of arrival."""
    if len(process) != 1:
        raise ConfigError(f"found {', '.join(process) or 'nothing'}, expected one of {PROCESSES}", path=path)
    ((kind, given),) = process.items()
    if kind == "burst":
        if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST:
            raise ConfigError(f"found {given!r}, expected a whole number from 1", path=f"{path}.burst")
        yield from (start for _ in range(given))
        return
    if kind not in ("poisson", "fixed"):
        raise ConfigError(f"found {kind}, expected one of {PROCESSES}", path=path)
    between = durations.seconds(given)
    if between is None or between <= 0:
        raise ConfigError(f"found {given!r}, expected a positive length of time", path=f"{path}.{kind}")
    if length is None:
        raise ConfigError(f"a phase with a {kind} process needs `for`: how long it lasts", path=path)
    if length / between > MOST:
        raise ConfigError(f"that makes more than {MOST:,} arrivals", path=f"{path}.{kind}")
    passed = float(generator.exponential(between)) if kind == "poisson" else 0.0
    while passed < length:
        yield round(start + passed, 6)
        passed += float(generator.exponential(between)) if kind == "poisson" else between


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except ValueError:
        return None


def _amount(value: object) -> float | None:
    try:
        return quantity.nanos(quantity.quantity(str(value))) / quantity.NANO
    except ValueError:
        return None


def _written(resource: str, amount: float) -> str:
    """An amount as a quantity: thousandths of a CPU, else whole numbers; at least the smallest one."""
    return f"{max(round(amount * 1000), 1)}m" if resource == "cpu" else str(max(round(amount), 1))
