"""The axes of a plot: round numbers to write beside them, and the unit of time that suits the length of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

Written = Callable[[float], str]
Point = tuple[float, float]


class TimeUnit(NamedTuple):
    name: str
    seconds: float


TIME_UNITS = (TimeUnit("days", 86_400.0), TimeUnit("hours", 3_600.0), TimeUnit("minutes", 60.0))
SECONDS = TimeUnit("seconds", 1.0)
_MARKED_WAITS = (
    (1.0, "≤1s"), (10.0, "10s"), (60.0, "1m"), (600.0, "10m"), (3_600.0, "1h"), (86_400.0, "1d"),
    (864_000.0, "10d"), (8_640_000.0, "100d"),
)  # fmt: skip


class PlotAxis(NamedTuple):
    """`title`: what it counts, with the unit. `marks`: values with the text that is beside them."""

    title: str
    low: float
    high: float
    marks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def part(self, value: float) -> float:
        """Return where a value is, from 0 (the low end) to 1."""
        if self.logarithmic:
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def time_unit(length: float) -> TimeUnit:
    """Return the unit of which a run has at least two."""
    return next((unit for unit in TIME_UNITS if length >= 2 * unit.seconds), SECONDS)


def time_axis(length: float) -> PlotAxis:
    """Return the axis of virtual time, for points in seconds."""
    unit = time_unit(length)
    marks = [(each * unit.seconds, number(each)) for each in round_numbers(length / unit.seconds, 7)]
    return PlotAxis(f"virtual time ({unit.name})", 0.0, max(length, 1e-9), marks)


def amount_axis(title: str, values: Iterable[float], *, most: float | None = None) -> PlotAxis:
    """Return an axis from 0 to a round number that is not below any value. `most`: the end, if that is known.

    Where all values are whole numbers, such as pods, the marks are, too.
    """
    found = list(values)
    highest = max(found, default=0.0) if most is None else most
    step = step_of(highest, 5)
    if all(float(each).is_integer() for each in found):
        step = max(step, 1.0)
    high = step * max(math.ceil(round(highest / step, 6)), 1) if most is None else most
    return PlotAxis(title, 0.0, high, [(each, number(each)) for each in multiples(step, high)])


def wait_axis(longest: float) -> PlotAxis:
    """Return a logarithmic axis from a second to at least the longest wait."""
    marks = [each for each in _MARKED_WAITS if each[0] < max(longest, 2.0)]
    marks.append(next((each for each in _MARKED_WAITS if each[0] >= max(longest, 60.0)), _MARKED_WAITS[-1]))
    return PlotAxis("time from arrival to node", 1.0, max(marks[-1][0], longest), marks, logarithmic=True)


def step_of(highest: float, about: int) -> float:
    """Return a round step (1, 2 or 5 times a power of ten) of which about so many reach the highest value."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest / about))
    return next((power * each for each in (1, 2, 5) if power * each * about >= highest * 0.999), power * 10)


def round_numbers(highest: float, about: int) -> list[float]:
    """Return the multiples of such a step, from 0."""
    return multiples(step_of(highest, about), highest)


def multiples(step: float, highest: float) -> list[float]:
    """Return the multiples of a step, from 0."""
    return [round(each * step, 9) for each in range(math.floor(highest / step + 1e-6) + 1)]


def number(value: float) -> str:
    """Return a number for a mark: 0.5, 20, 1,500, 20k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):,.10g}{letter}"
    return f"{value:,.10g}"


def thinned(points: Sequence[Point], most: int = 200) -> list[Point]:
    """Return about 2 times `most` points: of each part of the way the lowest and the highest. No peak is lost."""
    if len(points) <= 2 * most:
        return list(points)
    found, size = [points[0]], len(points) / most
    for part in range(most):
        among = points[round(part * size) : round((part + 1) * size)]
        low, high = min(among, key=lambda each: each[1]), max(among, key=lambda each: each[1])
        found += sorted({low, high})
    return [*found, points[-1]]
