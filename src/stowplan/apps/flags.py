"""Options that several commands share, and their types."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from stowplan.framework import feature_gates
from stowplan.objects.errors import ConfigError

if TYPE_CHECKING:
    from stowplan.apps.leader_election import ElectionSettings

Command = TypeVar("Command", bound=Callable[..., Any])

OUTPUT = click.option(
    "-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True
)
FROM = click.option(
    "--from",
    "files",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Files or folders with objects (`kubectl get … -o yaml`, or manifests); can be repeated.",
)

PLUGIN_PATH = click.option(
    "--plugin-path",
    "plugin_path",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with code: plugins named file.py:Class are loaded from there; can be repeated.",
)


def _parse_gates(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> feature_gates.FeatureGates:
    try:
        return feature_gates.parse(texts)
    except ConfigError as error:
        raise click.BadParameter(str(error), ctx=ctx, param=param) from None


FEATURE_GATES = click.option(
    "--feature-gates",
    multiple=True,
    metavar="NAME=BOOL,…",
    callback=_parse_gates,
    help=f"Features of Kubernetes to switch on or off: {feature_gates.described()}.",
)


class WholeHelp(click.Group):
    """A group of commands whose help has the whole first sentence of each; click would cut it at the line's end."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, each.get_short_help_str(limit=1000)) for name, each in found if each and not each.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


class LogLevel(click.types.IntParamType):
    """A whole number. `-v=4`, as Go's programs accept it, arrives here as "=4"."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        digits: Any = value.removeprefix("=") if isinstance(value, str) else value
        return int(super().convert(digits, param, ctx))


def amount(flag: str, text: str) -> int:
    """Return the value of a flag that is a quantity, such as 1Gi, in whole units; an error for what is none."""
    from stowplan.objects import quantity

    try:
        found = quantity.nanos(text) // 10**9
    except ValueError:
        found = 0
    if found <= 0:
        raise click.BadParameter(f"{text!r} is not an amount such as 500Mi or 1Gi", param_hint=flag)
    return found


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.5 only
    """Seconds, in Go's notation; "never" is infinity."""

    name = "duration"

    def __init__(self, *, never: bool = False) -> None:
        self._never = never

    def convert(self, value: float | str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from stowplan.framework.config.document import duration

        if not isinstance(value, str):
            return value
        if self._never and value == "never":
            return float("inf")
        seconds = duration(value)
        if seconds is None or seconds < 0:
            self.fail(f"{value!r} is not a duration such as 90s or 5m{', or never' if self._never else ''}", param, ctx)
        return float(seconds)


class Length(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.5 only
    """Seconds of virtual time: 90, 90s, 2h, 7d."""

    name = "time"

    def convert(self, value: float | str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from stowplan.simulation import durations

        found = durations.seconds(value)
        if found is None or found < 0:
            self.fail(f"{value!r} is no length of time such as 90s, 2h or 7d", param, ctx)
        return found


def serving_options(port: int, *, verbosity: str = "Verbosity of the log.") -> Callable[[Command], Command]:
    """Return the options of Kubernetes' components for a program's pages and its log."""
    options = (
        click.option(
            "--authentication-kubeconfig", default="", help="The kubeconfig for TokenReviews, if it is another one."
        ),
        click.option(
            "--authorization-kubeconfig",
            default="",
            help="The kubeconfig for SubjectAccessReviews, if it is another one.",
        ),
        click.option("--bind-address", default="0.0.0.0", show_default=True, help="Address of the secure port."),
        click.option(
            "--secure-port", type=click.IntRange(0, 65535), default=port, show_default=True, help="0: no secure port."
        ),
        click.option(
            "--plain-port",
            type=click.IntRange(0, 65535),
            default=0,
            help="The same pages over HTTP, on the loopback only.",
        ),
        click.option(
            "--tls-cert-file", default="", help="The certificate of the secure port. Without it the program makes one."
        ),
        click.option("--tls-private-key-file", default="", help="The key of the certificate."),
        click.option("-v", "--v", "v", type=LogLevel(), default=0, show_default=True, help=verbosity),
        click.option("--logging-format", type=click.Choice(["text", "json"]), default="text", show_default=True),
    )

    return with_options(*options)


LEASE_TIMES = (
    ("lease-duration", "lease_duration", "15s"),
    ("renew-deadline", "renew_deadline", "10s"),
    ("retry-period", "retry_period", "2s"),
)


def election_options(name: str, namespace: str, what: str) -> Callable[[Command], Command]:
    """Return the options of Kubernetes' components for leader election; the lease's name and namespace are defaults.

    `what`: what the program does while it holds the lease. A name or namespace in <> is described, not used.
    """
    return with_options(
        click.option(
            "--leader-elect",
            type=click.BOOL,
            default=True,
            is_flag=False,
            flag_value=True,
            show_default=True,
            help=f"{what} only while this replica holds the lease.",
        ),
        _named_option("--leader-elect-resource-name", "lease_name", name),
        _named_option("--leader-elect-resource-namespace", "lease_namespace", namespace),
        *(
            click.option(f"--leader-elect-{flag}", name, type=Duration(), default=time, show_default=True)
            for flag, name, time in LEASE_TIMES
        ),
    )


def _named_option(flag: str, name: str, default: str) -> Callable[[Command], Command]:
    if default.startswith("<"):
        return click.option(flag, name, default="", help=f"[default: {default[1:-1]}]")
    return click.option(flag, name, default=default, show_default=True)


def election_settings(options: dict[str, Any]) -> ElectionSettings:
    """Take the values of `election_options` out of the options, and return the settings of the lease."""
    from stowplan.apps.leader_election import ElectionSettings

    times = {name: options.pop(name) for _, name, _ in LEASE_TIMES}
    if not times["lease_duration"] > times["renew_deadline"] > times["retry_period"] > 0:
        found = ", ".join(f"{name} {value:g}s" for name, value in times.items())
        raise click.UsageError(f"found {found}; expected lease_duration > renew_deadline > retry_period > 0")
    name, namespace = options.pop("lease_name"), options.pop("lease_namespace")
    return ElectionSettings(name=name, namespace=namespace, **times)


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds several options to a command, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
