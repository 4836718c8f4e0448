"""The gate of `--fail-if` and `--expect`: reads what is expected, and shows what holds."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stowplan.apps.simulate import input_files, junit
from stowplan.apps.simulate.variants import Variants
from stowplan.objects.errors import ConfigError
from stowplan.simulation import expectation_reader, expectations
from stowplan.simulation.comparison import RunFigures
from stowplan.simulation.expectations import Expectation, JudgedExpectation

COLUMNS = 80


@dataclass(frozen=True)
class FigureGate:
    """What is expected; nothing, if there is no gate."""

    expected: tuple[Expectation, ...] = ()
    junit: Path | None = None

    def judged(self, runs: Sequence[RunFigures], seconds: float) -> list[JudgedExpectation]:
        """Judge, and write the JUnit file."""
        found = expectations.judged(self.expected, runs)
        if self.junit is not None:
            junit.write(self.junit, found, seconds)
        return found


def gate(fail_if: Sequence[str], files: Sequence[Path], junit_file: Path | None, about: Variants) -> FigureGate:
    """Read what is expected. Raises ConfigError for what makes no sense, and for what no run can answer."""
    expected = [expectation_reader.refused(text) for text in fail_if]
    for file in files:
        expected += expectation_reader.from_yaml(input_files.read(file), str(file))
    expectations.check(expected, list(about.configurations), list(about.streams), len(about.seeds))
    if junit_file is not None and not expected:
        raise ConfigError("there is nothing to write", path="--junit", remedy="give --fail-if or --expect, too")
    if junit_file is not None:
        junit.prepare(junit_file)
    return FigureGate(tuple(expected), junit_file)


def gate_text(found: Sequence[JudgedExpectation]) -> str:
    """Return what holds, and what does not."""
    return "\n".join(_lines(found))


def _lines(found: Sequence[JudgedExpectation]) -> Iterator[str]:
    broken = sum(not each.holds for each in found)
    yield f"Expectations: {broken} of {len(found)} failed" if broken else f"Expectations: all {len(found)} hold"
    for each in found:
        about = f"{each.configuration}, {each.stream}" if each.stream else each.configuration
        text = f"{'ok' if each.holds else 'FAILED':<6}  {about}: {each.expectation} ({each.message})"
        yield from textwrap.wrap(text, COLUMNS, initial_indent="  ", subsequent_indent=" " * 10, break_on_hyphens=False)
