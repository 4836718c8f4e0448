"""What is expected of figures, and whether it holds: the gate of `stowplan simulate --fail-if` and `--expect`.

    wait.p99 > 60s                          a mean over seeds
    packed: allocation.cpu < 70%            of this configuration only
    wait.p99.change > 10%                   the change from the first configuration; % is relative to that one's mean
    wait.p99.realChange > 0                 the same, and 0 where the change is not `real` (see `comparison`)

Without a configuration it is about each but the first, if there are several: the first one is what there is today. A
figure without a value, such as the wait of no pod, meets no expectation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence

import msgspec

from stowplan.objects.errors import ConfigError
from stowplan.simulation import comparison, figure_names
from stowplan.simulation.comparison import REAL, ConfigurationComparison, RunFigures
from stowplan.simulation.figure_names import FigureUnit
from stowplan.simulation.figure_texts import shown_value

CHANGE, REAL_CHANGE = ".change", ".realChange"
HOLDS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
OPPOSITE = {"<=": ">", ">=": "<", "<": ">=", ">": "<=", "==": "!=", "!=": "=="}


class Limit(msgspec.Struct, frozen=True):
    """A value that a figure is compared with, as it was written; `relative`: to the mean of the first configuration."""

    sign: str
    value: float
    text: str
    relative: bool = False


class Expectation(msgspec.Struct, frozen=True):
    """What has to hold: a figure and its limits. `asked`: wait.p99, `.change` or `.realChange` of it."""

    figure: str
    limits: tuple[Limit, ...]
    asked: str = ""
    configuration: str = ""
    stream: str | None = None
    place: str = ""

    @property
    def name(self) -> str:
        """What has to hold, in words that `--fail-if` has, too."""
        return " and ".join(f"{self.figure}{self.asked} {each.sign} {each.text}" for each in self.limits)


class JudgedExpectation(msgspec.Struct, frozen=True):
    """Whether an expectation holds for a configuration and a stream. `found`: the value; None: there is none."""

    expectation: str
    configuration: str
    stream: str
    holds: bool
    found: float | None
    message: str


def check(expected: Iterable[Expectation], configurations: Sequence[str], streams: Sequence[str], seeds: int) -> None:
    """Raise ConfigError for expectations that no run can answer, before there are any runs."""
    for each in expected:
        if each.configuration and each.configuration not in configurations:
            remedy = f"there are {', '.join(configurations)}"
            raise ConfigError(f"there is no configuration {each.configuration}", path=each.place, remedy=remedy)
        if each.stream is not None and each.stream not in streams:
            remedy = f"there are {', '.join(streams)}" if any(streams) else "name streams with --stream NAME=FILE"
            raise ConfigError(f"there is no stream {each.stream}", path=each.place, remedy=remedy)
        if each.asked and len(configurations) < 2:
            raise ConfigError(f"{each.figure}{each.asked} has nothing to compare with", path=each.place,
                              remedy="give --config twice or more")  # fmt: skip
        if each.asked and each.configuration == configurations[0]:
            remedy = f"name one of {', '.join(configurations[1:])}"
            raise ConfigError(f"{each.configuration} is what others are compared with", path=each.place, remedy=remedy)
        if each.asked == REAL_CHANGE and seeds < 2:
            remedy = "give --seeds 5 or more; or ask for .change"
            raise ConfigError("with one seed nobody can say what is real", path=each.place, remedy=remedy)


def judged(expected: Sequence[Expectation], runs: Sequence[RunFigures]) -> list[JudgedExpectation]:
    """Judge each expectation for each configuration and stream that it is about.

    What is real is decided among the figures of which `.realChange` is asked, and no others.
    """
    told = [name for run in runs for name in run.figures]
    without = [each.figure for each in expected if figure_names.missing(each.figure) is not None]
    means = comparison.compared(runs, list(dict.fromkeys((*told, *without))))
    for each in expected:
        means.figure(each.figure, means.streams[0], each.place)  # one that no run has is no figure
    asked_for = sorted({each.figure for each in expected if each.asked == REAL_CHANGE})
    of_changes = comparison.compared(runs, asked_for)
    return [
        _judged(each, name, stream, of_changes if each.asked == REAL_CHANGE else means)
        for each in expected
        for name in _about(each, means)
        for stream in (means.streams if each.stream is None else (each.stream,))
    ]


def _about(expected: Expectation, found: ConfigurationComparison) -> tuple[str, ...]:
    if expected.configuration:
        return (expected.configuration,)
    return found.configurations[1:] or found.configurations


def _judged(expected: Expectation, name: str, stream: str, among: ConfigurationComparison) -> JudgedExpectation:
    found = among.figure(expected.figure, stream)
    spread, before = found.spreads[name], found.spreads[among.configurations[0]].mean
    value: float | None = spread.mean if spread.runs == len(among.seeds) else None
    if expected.asked:
        change = found.changes[name]
        value = 0.0 if expected.asked == REAL_CHANGE and change.verdict not in (REAL, "none") else change.mean
    if value is None:
        return JudgedExpectation(expected.name, name, stream, False, None, f"a run of {name} has no {expected.figure}")
    broken = [each for each in expected.limits if not HOLDS[each.sign](_measured(value, before, each), each.value)]
    told = _told(value, before, found.unit, expected)
    return JudgedExpectation(
        expected.name, name, stream, not broken, value, f"{expected.figure}{expected.asked} is {told}"
    )


def _measured(value: float, before: float | None, limit: Limit) -> float:
    """The value as the limit counts it."""
    if not limit.relative:
        return value
    return relative(value, before)


def relative(change: float, before: float | None) -> float:
    """Return a change as a part of what was there before: infinite, if that was nothing."""
    if not change:
        return 0.0
    return change / abs(before) if before else math.copysign(math.inf, change)


def _told(value: float, before: float | None, unit: FigureUnit, expected: Expectation) -> str:
    text = shown_value(value, unit, change=bool(expected.asked))
    part = relative(value, before)
    return f"{text} ({part:+.1%})" if expected.asked and math.isfinite(part) else text
