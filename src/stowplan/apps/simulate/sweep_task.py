"""One run of a sweep, in a worker process: the same as `stowplan simulate` with one configuration and one seed."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from typing import Any

import msgspec

from stowplan.apps.simulate import command
from stowplan.apps.simulate.command import SimulateOptions
from stowplan.apps.simulate.report_file import FollowedRun
from stowplan.apps.sweep.sweep_inputs import relative
from stowplan.simulation.figures import figures

FUNCTION = f"{__name__}:run"


def arguments(options: SimulateOptions, *, reported: str = "", elsewhere: bool = False) -> dict[str, Any]:
    """Return the arguments of a run as JSON has them. `reported`: its name in a report that has this run.
    `elsewhere`: with paths that mean the same on another machine.
    """
    found = {"options": msgspec.to_builtins(options, enc_hook=relative if elsewhere else str)}
    return {**found, "reported": reported} if reported else found


def run(options: dict[str, Any], reported: str = "") -> dict[str, Any]:
    """Run it. Return its figures, what it said on standard error, and what a report shows of it."""
    chosen = msgspec.convert(options, SimulateOptions, dec_hook=lambda kind, text: kind(text))
    followed = FollowedRun(chosen, reported)
    with redirect_stderr(io.StringIO()) as said:
        found = command.prepared(chosen)
        if reported:
            found.run(followed.moment)
        else:
            found.run()
        told = figures(found)
        command.tell_skipped(found.problems)
    answer = {"figures": told, "notes": said.getvalue().splitlines()}
    if reported:
        answer["report"] = msgspec.to_builtins(followed.finished(found, told))
    return answer
