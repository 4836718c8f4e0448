"""Compares configurations by their runs: the same streams, with the same seeds, and what differs.

    runs ──► by figure, configuration and stream: the mean and the spread over seeds
         └─► beside the first configuration: seed by seed the difference, its mean, and how sure that is

Two runs with one seed have the same arrivals, so their difference says more than two means do. From the differences
follow an interval that holds the true one with 95 % (Student's t), and a verdict:

    same        there is no difference in any seed
    real        such differences come about by chance in at most 5 % of all comparisons with as many figures (Holm)
    unclear     it may be chance: more seeds may tell
    one run     with one seed nobody can say
    none        a run has no such figure, for example the wait of no pod

Where a seed changes nothing at all, neither chance nor an interval has a part: each difference is real.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev

import msgspec

from stowplan.objects.errors import ConfigError
from stowplan.simulation import figure_names, student_t
from stowplan.simulation.figure_names import Figures, FigureUnit

OUTSIDE = 0.05  # of the interval, and the chance of one wrong "real" in a comparison
DIGITS = 9
SAME, REAL, UNCLEAR, ONE_RUN, NONE = "same", "real", "unclear", "one run", "none"


class RunFigures(msgspec.Struct, frozen=True):
    """A run that has ended, and its figures by name."""

    configuration: str
    stream: str
    seed: int
    figures: Figures


class SeedSpread(msgspec.Struct, frozen=True):
    """A figure over seeds. `deviation`: the standard deviation; None with one run. `runs`: those that have it."""

    mean: float | None
    deviation: float | None
    least: float | None
    most: float | None
    runs: int


class FigureChange(msgspec.Struct, frozen=True):
    """What a configuration changes in a figure, beside the first one. `low` and `high`: the interval, of 95 %.

    `chance`: how likely a difference like this is if there is none; after Holm's correction it decides the verdict.
    """

    verdict: str
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None

    @property
    def half(self) -> float | None:
        """Half of the interval, as in 5 ± 1."""
        return None if self.high is None or self.low is None else (self.high - self.low) / 2


class ComparedFigure(msgspec.Struct, frozen=True):
    """A figure of a stream: by configuration its spread and, but for the first one, its change."""

    figure: str
    unit: FigureUnit
    stream: str
    spreads: dict[str, SeedSpread]
    changes: dict[str, FigureChange]


class ConfigurationComparison(msgspec.Struct, frozen=True):
    """All figures. `seedless`: the streams in which no figure of any configuration depends on the seed."""

    configurations: tuple[str, ...]
    streams: tuple[str, ...]
    seeds: tuple[int, ...]
    figures: tuple[ComparedFigure, ...]
    seedless: tuple[str, ...] = ()

    def figure(self, name: str, stream: str, path: str = "") -> ComparedFigure:
        """Return one figure. Raises ConfigError if no run of the comparison has it. `path`: who asks for it."""
        for each in self.figures:
            if (each.figure, each.stream) == (name, stream):
                return each
        raise figure_names.unknown(name, list(dict.fromkeys(each.figure for each in self.figures)), path)


def compared(runs: Iterable[RunFigures], names: Sequence[str] | None = None) -> ConfigurationComparison:
    """Compare runs, in the order in which configurations and streams come first. `names`: only these figures.

    Raises ConfigError if a configuration has a run that another one lacks.
    """
    found = {(each.configuration, each.stream, each.seed): each.figures for each in runs}
    configurations = tuple(dict.fromkeys(name for name, _, _ in found))
    streams = tuple(dict.fromkeys(name for _, name, _ in found))
    seeds = tuple(dict.fromkeys(seed for _, _, seed in found))
    for key in ((a, b, c) for a in configurations for b in streams for c in seeds):
        if key not in found:
            raise ConfigError(f"there is no run of {key[0]} with seed {key[2]}" + (f", {key[1]}" if key[1] else ""))
    if names is None:
        names = list(dict.fromkeys(name for figures in found.values() for name in figures))
    seedless = tuple(each for each in streams if len(seeds) > 1 and _is_seedless(found, configurations, each, seeds))
    figures = [
        _compared(name, stream, {each: [_value(found[each, stream, seed], name) for seed in seeds]
                                 for each in configurations}, stream in seedless)
        for stream in streams for name in names
    ]  # fmt: skip
    return ConfigurationComparison(configurations, streams, seeds, tuple(_after_holm(figures)), seedless)


def _value(figures: Figures, name: str) -> float | None:
    return figures.get(name, figure_names.missing(name))


def _is_seedless(
    found: Mapping[tuple[str, str, int], Figures], configurations: Iterable[str], stream: str, seeds: Sequence[int]
) -> bool:
    return all(found[each, stream, seed] == found[each, stream, seeds[0]] for each in configurations for seed in seeds)


def _compared(name: str, stream: str, values: Mapping[str, list[float | None]], seedless: bool) -> ComparedFigure:
    first, *others = values
    changes = {each: change(values[first], values[each], seedless) for each in others}
    spreads = {each: spread(found) for each, found in values.items()}
    return ComparedFigure(name, figure_names.unit(name), stream, spreads, changes)


def spread(values: Iterable[float | None]) -> SeedSpread:
    """Return the mean of values, and how far they are apart."""
    known = [each for each in values if each is not None]
    if not known:
        return SeedSpread(None, None, None, None, 0)
    deviation = round(stdev(known), DIGITS) if len(known) > 1 else None
    return SeedSpread(round(fmean(known), DIGITS), deviation, min(known), max(known), len(known))


def change(before: Sequence[float | None], after: Sequence[float | None], seedless: bool = False) -> FigureChange:
    """Return the change from one configuration to another, from values seed by seed, before Holm's correction."""
    if None in before or None in after:
        return FigureChange(NONE)
    pairs = zip(before, after, strict=True)
    found = [round(b - a, DIGITS) for a, b in pairs if a is not None and b is not None]
    mean = round(fmean(found), DIGITS)
    if not any(found):
        return FigureChange(SAME, 0.0, 0.0, 0.0)
    if len(found) == 1:
        return FigureChange(ONE_RUN, mean)
    if seedless:
        return FigureChange(REAL, mean, mean, mean, 0.0)
    error = stdev(found) / math.sqrt(len(found))
    if not error:  # t would be without end: count only that all signs are the same, as those of coins may be
        return FigureChange(UNCLEAR, mean, mean, mean, 2.0 ** (1 - len(found)))
    half = student_t.quantile(OUTSIDE, len(found) - 1) * error
    chance = student_t.two_sided(mean / error, len(found) - 1)
    return FigureChange(UNCLEAR, mean, round(mean - half, DIGITS), round(mean + half, DIGITS), chance)


def _after_holm(figures: Sequence[ComparedFigure]) -> Iterable[ComparedFigure]:
    """Say which changes are real: of n chances the smallest is multiplied by n, the next by n - 1, and so on."""
    tests = [
        (each.chance, at, name)
        for at, found in enumerate(figures) for name, each in found.changes.items()
        if each.verdict == UNCLEAR and each.chance is not None
    ]  # fmt: skip
    real = set[tuple[int, str]]()
    for rank, (chance, at, name) in enumerate(sorted(tests)):
        if chance * (len(tests) - rank) > OUTSIDE:
            break
        real.add((at, name))
    for at, found in enumerate(figures):
        changes = {
            name: msgspec.structs.replace(each, verdict=REAL) if (at, name) in real else each
            for name, each in found.changes.items()
        }
        yield msgspec.structs.replace(found, changes=changes)
