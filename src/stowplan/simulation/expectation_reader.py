"""Reads what is expected of figures: a condition of `--fail-if`, and the file of `--expect`.

    apiVersion: simulation.stowplan.io/v1alpha1
    kind: Expectations
    expect:
    - {figure: wait.p99, atMost: 60s}
    - {figure: allocation.cpu, atLeast: 70%, configuration: packed, stream: monday}

A condition says what must not be (`wait.p99 > 60s`), a bound of the file what must (`atMost: 60s`).
"""

from __future__ import annotations

import re

from stowplan.framework.config.document import ConfigValue, decode, parse, shown
from stowplan.objects.errors import ConfigError
from stowplan.simulation import durations, figure_names
from stowplan.simulation.capacity_use import HOUR
from stowplan.simulation.clusters import GROUP
from stowplan.simulation.expectations import CHANGE, OPPOSITE, REAL_CHANGE, Expectation, Limit
from stowplan.simulation.figure_names import FigureUnit

KIND = "Expectations"
MINIMAL = f"the shortest one is: {{apiVersion: {GROUP}, kind: {KIND}, expect: [{{figure: wait.p99, atMost: 60s}}]}}"
BOUNDS = {"at_most": "<=", "at_least": ">=", "below": "<", "above": ">"}
SHAPE = re.compile(r"(?:(?P<configuration>[^:<>=!]*[^:<>=!\s])\s*:\s)?\s*(?P<figure>[^<>=!\s]+)\s*"
                   r"(?P<sign><=|>=|==|!=|<|>)\s*(?P<value>[^<>=!]+)")  # fmt: skip
EXAMPLE = "write a figure, one of < <= > >= == != and a value: wait.p99 > 60s"
NUMBER = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>%|pp)?")


class ExpectedFigure(ConfigValue, frozen=True):
    """An entry of the file."""

    figure: str
    at_most: str | int | float | None = None
    at_least: str | int | float | None = None
    below: str | int | float | None = None
    above: str | int | float | None = None
    configuration: str = ""
    stream: str | None = None


class ExpectationsFile(ConfigValue, frozen=True):
    """The document above."""

    api_version: str
    kind: str
    expect: tuple[ExpectedFigure, ...]


def refused(text: str) -> Expectation:
    """Return what has to hold if this must not: `wait.p99 > 60s` is refused, so `wait.p99 <= 60s` is expected."""
    parts = SHAPE.fullmatch(text.strip())
    if parts is None:
        raise ConfigError(f"found {shown(text)}, expected a condition", path="--fail-if", remedy=EXAMPLE)
    try:
        figure, asked = _figure(parts["figure"])
        limit = _limit(OPPOSITE[parts["sign"]], parts["value"].strip(), figure, asked)
    except ConfigError as error:
        raise ConfigError(error.problem, path=f"--fail-if {shown(text)}", remedy=error.remedy) from None
    return Expectation(figure, (limit,), asked, parts["configuration"] or "", None, "--fail-if")


def from_yaml(text: bytes, file: str) -> list[Expectation]:
    """Read a file of expectations. Raises ConfigError, which names the file and the place in it."""
    try:
        document = parse(text, kind=KIND, minimal=MINIMAL)
        found = decode(document, ExpectationsFile)
        if (found.api_version, found.kind) != (GROUP, KIND):
            raise ConfigError(f"is {found.kind} of {found.api_version}", remedy=f"expected {KIND} of {GROUP}")
        if not found.expect:
            raise ConfigError("expects nothing", path="expect", remedy=MINIMAL)
        return [_entry(each, f"expect[{at}]", file) for at, each in enumerate(found.expect)]
    except ConfigError as error:
        raise error.located(file) from None


def _entry(entry: ExpectedFigure, path: str, file: str) -> Expectation:
    given = {sign: getattr(entry, name) for name, sign in BOUNDS.items() if getattr(entry, name) is not None}
    if not given:
        raise ConfigError("has no bound", path=path, remedy="write atMost, atLeast, below or above")
    try:
        figure, asked = _figure(entry.figure)
        limits = tuple(_limit(sign, str(value), figure, asked) for sign, value in given.items())
    except ConfigError as error:
        raise ConfigError(error.problem, path=path, remedy=error.remedy) from None
    return Expectation(figure, limits, asked, entry.configuration, entry.stream, f"{file}: {path}")


def _figure(text: str) -> tuple[str, str]:
    """A name and what is asked of it, from `wait.p99.change`."""
    for asked in (REAL_CHANGE, CHANGE):
        if text.endswith(asked):
            return figure_names.checked(text.removesuffix(asked)), asked
    return figure_names.checked(text), ""


def _limit(sign: str, text: str, figure: str, asked: str) -> Limit:
    unit = figure_names.unit(figure)
    parts = NUMBER.fullmatch(text)
    if parts is not None and parts["unit"] is None:
        return Limit(sign, float(parts["number"]), text)
    if parts is not None and parts["unit"] == "%" and asked:
        return Limit(sign, float(parts["number"]) / 100, text, relative=True)
    if parts is not None and unit is FigureUnit.PART and (parts["unit"] == "%" or asked):
        return Limit(sign, float(parts["number"]) / 100, text)
    seconds = durations.seconds(text) if unit in (FigureUnit.SECONDS, FigureUnit.HOURS) and parts is None else None
    if seconds is None:
        raise ConfigError(f"found {shown(text)}, and {figure} is {KINDS[unit]}", remedy=_right(unit, asked))
    return Limit(sign, seconds if unit is FigureUnit.SECONDS else seconds / HOUR, text)


KINDS = {
    FigureUnit.SECONDS: "a time", FigureUnit.HOURS: "a number of hours", FigureUnit.PART: "a part of a whole",
    FigureUnit.NUMBER: "a number",
}  # fmt: skip


def _right(unit: FigureUnit, asked: str) -> str:
    times, change = "60s, 5m or 2h", ", or 10% of the first configuration's mean" if asked else ""
    of_parts = "0.05, or 5pp for percentage points" if asked else "70% or 0.7"
    right = {FigureUnit.SECONDS: times, FigureUnit.HOURS: times, FigureUnit.PART: of_parts, FigureUnit.NUMBER: "3"}
    return f"write {right[unit]}{change}"
