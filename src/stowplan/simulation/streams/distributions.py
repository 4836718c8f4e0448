"""Numbers that a scenario draws: durations, counts, amounts of resources.

    10m                                     always the same
    {uniform: [1m, 10m]}                    any value between the two alike
    {exponential: 5m}                       with this mean
    {lognormal: {median: 5m, sigma: 1.2}}   a few are very long
    {choice: {500m: 3, 2: 1}}               one of these values, by weight

The caller says how a text is read (as a length of time, a number, an amount), and how the number is written again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stowplan.objects.errors import ConfigError

Draw = Callable[[np.random.Generator], float]
Read = Callable[[object], float | None]

FORMS = (
    "a value, or one of {uniform: [a, b]}, {exponential: mean}, {lognormal: {median, sigma}}, {choice: {value: weight}}"
)


def distribution(value: Any, read: Read, path: str, what: str) -> Draw:
    """Return how a value is drawn. `what`: what a single value is, for errors: "a length of time"."""
    if not isinstance(value, Mapping):
        constant = _read(value, read, path, what)
        return lambda _: constant
    if len(value) != 1:
        raise ConfigError(f"found {len(value)} keys, expected {FORMS}", path=path)
    ((form, given),) = value.items()
    makers = {"uniform": _uniform, "exponential": _exponential, "lognormal": _lognormal, "choice": _choice}
    if form not in makers:
        raise ConfigError(f"found {form}, expected {FORMS}", path=path)
    return makers[form](given, read, f"{path}.{form}", what)


def _read(value: Any, read: Read, path: str, what: str) -> float:
    found = read(value)
    if found is None:
        raise ConfigError(f"found {value!r}, expected {what}", path=path)
    if found < 0:
        raise ConfigError(f"found {value!r}: it is negative", path=path, remedy="expected 0 or more")
    return found


def _uniform(given: Any, read: Read, path: str, what: str) -> Draw:
    if not isinstance(given, list) or len(given) != 2:
        raise ConfigError(f"found {given!r}, expected [a, b]", path=path)
    low, high = (_read(each, read, f"{path}[{number}]", what) for number, each in enumerate(given))
    if low > high:
        raise ConfigError(f"found {given[0]} before {given[1]}, expected the smaller one first", path=path)
    return lambda generator: float(generator.uniform(low, high))


def _exponential(given: Any, read: Read, path: str, what: str) -> Draw:
    mean = _read(given, read, path, what)
    return lambda generator: float(generator.exponential(mean))


def _lognormal(given: Any, read: Read, path: str, what: str) -> Draw:
    if not isinstance(given, Mapping) or given.keys() != {"median", "sigma"}:
        raise ConfigError(f"found {given!r}, expected median and sigma", path=path)
    median = _read(given["median"], read, f"{path}.median", what)
    sigma = given["sigma"]
    if isinstance(sigma, bool) or not isinstance(sigma, int | float) or not 0 <= sigma <= 10:
        raise ConfigError(f"found {sigma!r}, expected a number from 0 to 10", path=f"{path}.sigma")
    if not median:
        return lambda _: 0.0
    return lambda generator: float(generator.lognormal(math.log(median), sigma))


def _choice(given: Any, read: Read, path: str, what: str) -> Draw:
    if not isinstance(given, Mapping) or not given:
        raise ConfigError(f"found {given!r}, expected values with their weights", path=path)
    values = [_read(each, read, path, what) for each in given]
    weights = list(given.values())
    if any(isinstance(each, bool) or not isinstance(each, int | float) or each < 0 for each in weights):
        raise ConfigError(f"found the weights {weights}, expected numbers of 0 or more", path=path)
    if not sum(weights):
        raise ConfigError("all weights are 0", path=path)
    chances = np.array(weights, float) / sum(weights)
    return lambda generator: values[int(generator.choice(len(values), p=chances))]
