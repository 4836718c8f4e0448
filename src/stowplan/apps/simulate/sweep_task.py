"""One run of a sweep, in a worker process: the same as `stowplan simulate` with one configuration and one seed."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from typing import Any

import msgspec

from stowplan.apps.simulate import command
from stowplan.apps.simulate.command import SimulateOptions
from stowplan.apps.sweep.sweep_inputs import relative
from stowplan.simulation.figures import figures

FUNCTION = f"{__name__}:run"


def arguments(options: SimulateOptions, *, elsewhere: bool = False) -> dict[str, Any]:
    """Return the arguments of a run as JSON has them. `elsewhere`: with paths that mean the same on another machine."""
    return {"options": msgspec.to_builtins(options, enc_hook=relative if elsewhere else str)}


def run(options: dict[str, Any]) -> dict[str, Any]:
    """Run it. Return its figures, and what it said on standard error."""
    with redirect_stderr(io.StringIO()) as said:
        found = command.prepared(msgspec.convert(options, SimulateOptions, dec_hook=lambda kind, text: kind(text)))
        found.run()
        told = figures(found)
        command.tell_skipped(found.problems)
    return {"figures": told, "notes": said.getvalue().splitlines()}
