"""A sweep from its first run to its last: what the journal has is not done again, the first error ends it.

The answers are in the order of the runs, so what is made of them depends neither on the number of processes, nor on
which run ended first, nor on interruptions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from stowplan.apps.sweep.journal import SweepJournal, journal
from stowplan.apps.sweep.sweep_inputs import SweepInputs
from stowplan.apps.sweep.sweep_run import RunAnswer, RunReply, SweepRun
from stowplan.objects.errors import ConfigError, StowplanError


class Runner(Protocol):
    """Where runs are done."""

    def replies(self, runs: Iterable[SweepRun], inputs: SweepInputs) -> Iterator[tuple[SweepRun, RunReply]]:
        """Yield each run with its reply, as they come."""


class StoppedSweepError(StowplanError):
    """Ctrl-C."""


def swept(runs: Sequence[SweepRun], inputs: SweepInputs, runner: Runner, file: Path | None = None) -> list[RunAnswer]:
    """Do all runs, and return their answers. `file`: the journal.

    Raises ConfigError for input that a run refuses, and StoppedSweepError if Ctrl-C stopped it.
    """
    opened: AbstractContextManager[SweepJournal | None] = nullcontext() if file is None else journal(file, inputs)
    with opened as written:
        found = {} if written is None else dict(written.answers)
        left = [each for each in runs if each.key not in found]
        if len(left) < len(runs):
            click.echo(f"{len(runs) - len(left)} of {len(runs)} runs are in {file}", err=True)
        try:
            with _progress() as progress:
                bar = progress.add_task("", total=len(runs), completed=len(runs) - len(left))
                for run, reply in runner.replies(left, inputs) if left else ():
                    found[run.key] = answer = _answer(run, reply)
                    if written is not None:
                        written.add(run.key, answer)
                    progress.update(bar, advance=1, description=f"{run.name} took {answer.seconds:.1f} s")
        except KeyboardInterrupt:
            done = sum(each.key in found for each in runs)
            where = f" are in {file}; the same command goes on" if file else " were done; --journal FILE keeps them"
            raise StoppedSweepError(f"stopped: {done} of {len(runs)} runs{where}") from None
    return [found[each.key] for each in runs]


def _answer(run: SweepRun, reply: RunReply) -> RunAnswer:
    if reply.answer is not None:
        return reply.answer
    if reply.problem:
        raise ConfigError(f"{run.name}: {reply.problem}")
    click.echo(reply.traceback.rstrip(), err=True)
    raise StowplanError(f"{run.name}: {reply.traceback.rstrip().splitlines()[-1]}")


def _progress() -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
