"""What several commands can be told, in the same words: kinds of values, and options that belong together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

OUTPUT = click.option(
    "-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True
)
FROM = click.option(
    "--from",
    "files",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A dump of a real cluster (`kubectl get … -o yaml`) or manifests, files or folders; as often as needed.",
)


class LogLevel(click.types.IntParamType):
    """A whole number; `-v=4`, as Go's programs are given it, reaches us as "=4"."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        digits: Any = value.removeprefix("=") if isinstance(value, str) else value
        return super().convert(digits, param, ctx)


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.5 only
    """Seconds, from Go's notation; "never" is infinitely many."""

    name = "duration"

    def __init__(self, *, never: bool = False) -> None:
        self._never = never

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from stowplan.framework.config.document import duration

        if not isinstance(value, str):
            return value
        if self._never and value == "never":
            return float("inf")
        seconds = duration(value)
        if seconds is None or seconds < 0:
            self.fail(f"{value!r} is not a duration such as 90s or 5m{', or never' if self._never else ''}", param, ctx)
        return float(seconds)


def served(port: int, *, how_much: str = "How much to say.") -> Callable[[Command], Command]:
    """Where a program's pages are, who may see them, and what it says; the options of kube's components."""
    options = (
        click.option("--authentication-kubeconfig", default="", help="Where tokens are reviewed, if elsewhere."),
        click.option("--authorization-kubeconfig", default="", help="Where access is reviewed, if elsewhere."),
        click.option("--bind-address", default="0.0.0.0", show_default=True, help="Address of the secure port."),
        click.option("--secure-port", type=click.IntRange(0, 65535), default=port, show_default=True, help="0: none."),
        click.option(
            "--plain-port", type=click.IntRange(0, 65535), default=0, help="The same over HTTP, on the loopback only."
        ),
        click.option(
            "--tls-cert-file", default="", help="The secure port's certificate; one is made if none is given."
        ),
        click.option("--tls-private-key-file", default="", help="Its key."),
        click.option("-v", "--v", "v", type=LogLevel(), default=0, show_default=True, help=how_much),
        click.option("--logging-format", type=click.Choice(["text", "json"]), default="text", show_default=True),
    )

    def told(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return told
