"""The flags of `stowplan run` that write files: the recording, and the decision log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from stowplan.apps.flags import Command, amount, with_options


class ByteAmount(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.5 only
    """A number of bytes, as a quantity of Kubernetes."""

    name = "amount"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ARG002
        return value if isinstance(value, int) else amount(param.opts[0] if param else "", value)


def recording_options() -> Callable[[Command], Command]:
    file = click.Path(path_type=Path)
    return with_options(
        click.option("--record", type=file, help="Record what comes in, for `stowplan replay`."),
        click.option(
            "--record-size",
            type=ByteAmount(),
            default="1Gi",
            show_default=True,
            help="The recording ends at this size.",
        ),
        click.option("--decision-log", type=file, help="Write a line of JSON for each decision, for audits."),
        click.option(
            "--decision-log-size",
            type=ByteAmount(),
            default="100Mi",
            show_default=True,
            help="At this size the log becomes FILE.1, and a new one begins.",
        ),
        click.option(
            "--decision-log-sample",
            type=click.FloatRange(0, 1),
            default=1.0,
            show_default=True,
            help="The share of the pods that the log is about.",
        ),
    )
