"""kube-scheduler's flags, for `stowplan run` and its second name `kube-scheduler`.

Units and manifests of kube-scheduler hold its flags. Each flag of kube-scheduler 1.36 is one of these:

    it has a meaning here       it is an option (`kube_scheduler_options`, and the others of `run`)
    one value says how it is    that value is accepted, any other is refused (`AS_IT_IS`)
    it has none                 it is refused, with the reason (`REFUSED`)

Flags that kube-scheduler itself has dropped since 1.19 are still in units, so they are treated in the same way
(`DROPPED_AS_IT_IS`, `DROPPED_REFUSED`).

Names may have underscores instead of dashes, and `--flag=false` works for each flag that is true or false, as in Go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from stowplan.apps.flags import Command, Duration, with_options
from stowplan.framework.feature_gates import BOOLEANS

TRUE, FALSE = "true", "false"

AS_IT_IS: dict[str, tuple[str, str]] = {
    "--authentication-skip-lookup": (TRUE, "clients show tokens; there is no further configuration to look up"),
    "--authentication-token-webhook-cache-ttl": ("10s", "answers about tokens are kept for 10 s"),
    "--authorization-webhook-cache-authorized-ttl": ("10s", "answers about rights are kept for 10 s"),
    "--authorization-webhook-cache-unauthorized-ttl": ("10s", "answers about rights are kept for 10 s"),
    "--contention-profiling": (FALSE, "Python has no profile of contended locks"),
    "--disable-http2-serving": (TRUE, "the pages are served over HTTP/1.1"),
    "--emulated-version": ("1.36", "decisions are those of kube-scheduler 1.36"),
    "--kube-api-content-type": ("application/json", "requests to the API server are JSON"),
    "--leader-elect-resource-lock": ("leases", "the lock is a Lease"),
    "--log-json-split-stream": (FALSE, "the log is one stream, on standard error"),
    "--log-text-split-stream": (FALSE, "the log is one stream, on standard error"),
    "--permit-address-sharing": (TRUE, "SO_REUSEADDR is always set"),
    "--permit-port-sharing": (FALSE, "one process listens on a port"),
}

_CERTIFICATES = "clients of the pages show tokens, not certificates"
_METRICS = "metrics cannot be changed one by one; drop them where they are scraped (metric_relabel_configs)"
REFUSED: dict[str, str] = {
    "--allow-metric-labels": _METRICS,
    "--allow-metric-labels-manifest": _METRICS,
    "--authentication-tolerate-lookup-failure": "clients show tokens; there is no further configuration to look up",
    "--cert-dir": "a certificate that the program makes is kept in memory; give --tls-cert-file and "
    "--tls-private-key-file for one of your own",
    "--client-ca-file": _CERTIFICATES,
    "--disabled-metrics": _METRICS,
    "--http2-max-streams-per-connection": "the pages are served over HTTP/1.1",
    "--log-flush-frequency": "each line of the log is written at once",
    "--log-json-info-buffer-size": "each line of the log is written at once",
    "--log-text-info-buffer-size": "each line of the log is written at once",
    "--master": "the address of the API server is in the kubeconfig (--kubeconfig)",
    "--min-compatibility-version": "decisions are those of kube-scheduler 1.36",
    "--requestheader-allowed-names": _CERTIFICATES,
    "--requestheader-client-ca-file": _CERTIFICATES,
    "--requestheader-extra-headers-prefix": _CERTIFICATES,
    "--requestheader-group-headers": _CERTIFICATES,
    "--requestheader-uid-headers": _CERTIFICATES,
    "--requestheader-username-headers": _CERTIFICATES,
    "--show-hidden-metrics-for-version": "no metric is hidden",
    "--tls-curve-preferences": "OpenSSL chooses the curve",
    "--tls-sni-cert-key": "the port has one certificate (--tls-cert-file)",
    "--vmodule": "the verbosity is one for all parts (-v)",
    "--write-config-to": "`stowplan config show` prints the configuration in force",
}

# Flags that kube-scheduler had before.
DROPPED_AS_IT_IS: dict[str, tuple[str, str]] = {
    "--add-dir-header": (FALSE, "lines of the log have no folders"),
    "--alsologtostderr": (TRUE, "the log goes to standard error"),
    "--experimental-logging-sanitization": (FALSE, "secrets are never logged"),
    "--logtostderr": (TRUE, "the log goes to standard error"),
    "--one-output": (FALSE, "the log goes to standard error"),
    "--port": ("0", "there is no port without TLS; the pages are at --secure-port"),
    "--skip-headers": (FALSE, "each line of the log has its header"),
    "--skip-log-headers": (FALSE, "each line of the log has its header"),
}
_FILES = "the log goes to standard error"
_POLICY = "policies are no longer read, by kube-scheduler since 1.23; write a KubeSchedulerConfiguration (--config)"
_IN_CONFIG = "it is a field of the configuration (--config)"
DROPPED_REFUSED: dict[str, str] = {
    "--address": "there is no port without TLS; the address of --secure-port is --bind-address",
    "--algorithm-provider": _POLICY,
    "--hard-pod-affinity-symmetric-weight": "it is an argument of InterPodAffinity (hardPodAffinityWeight)",
    "--lock-object-name": "it is --leader-elect-resource-name now",
    "--lock-object-namespace": "it is --leader-elect-resource-namespace now",
    "--log-backtrace-at": "the log has no stack traces",
    "--log-dir": _FILES,
    "--log-file": _FILES,
    "--log-file-max-size": _FILES,
    "--policy-config-file": _POLICY,
    "--policy-configmap": _POLICY,
    "--policy-configmap-namespace": _POLICY,
    "--scheduler-name": f"{_IN_CONFIG}: profiles[].schedulerName",
    "--stderrthreshold": _FILES,
    "--use-legacy-policy-config": _POLICY,
}


class GoBoolean(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.5 only
    """True or false, as Go's flags spell it."""

    name = "boolean"

    def convert(self, value: bool | str, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        if isinstance(value, bool):
            return value
        if value not in BOOLEANS:
            self.fail(f"{value!r} is neither true nor false", param, ctx)
        return BOOLEANS[value]


class CommaSeparated(click.ParamType):  # type: ignore[type-arg]
    """A list with commas between."""

    name = "list"

    def convert(self, value: str | Sequence[str], _: click.Parameter | None, __: click.Context | None) -> Any:
        return tuple(value.split(",")) if isinstance(value, str) else tuple(value)


def boolean_option(flag: str, name: str, told: str) -> Callable[[Command], Command]:
    """Return an option that may stand without a value, which is true then."""
    return click.option(
        flag, name, type=GoBoolean(), default=None, is_flag=False, flag_value=True, metavar="[BOOL]", help=told
    )


def kube_scheduler_options() -> Callable[[Command], Command]:
    """Return the options that only kube-scheduler has besides `stowplan run`."""
    times = (
        ("lease-duration", "How long others wait for a leader that is silent"),
        ("renew-deadline", "How long the leader tries to renew the lease"),
        ("retry-period", "The time between two attempts to renew or acquire the lease"),
    )
    return with_options(
        *(
            click.option(
                f"--leader-elect-{flag}", flag.replace("-", "_"), type=Duration(), default=None,
                help=f"{told}; overrides leaderElection in the configuration.",
            )
            for flag, told in times
        ),
        click.option("--kube-api-qps", type=click.FLOAT, default=None, help="Requests per second to the API server."),
        click.option(
            "--kube-api-burst", type=click.IntRange(min=1), default=None,
            help="How many requests may go beyond --kube-api-qps at once.",
        ),
        boolean_option("--profiling", "profiling", "Serve /debug/pprof/profile; overrides enableProfiling."),
        click.option(
            "--tls-min-version", default="", help="The lowest version of TLS.  [default: VersionTLS12]"
        ),
        click.option(
            "--tls-cipher-suites", type=CommaSeparated(), default="", help="The cipher suites of TLS 1.2, with commas."
        ),
        click.option(
            "--authorization-always-allow-paths", "always_allow_paths", type=CommaSeparated(), default=None,
            help="Pages that anybody may read, with commas.  [default: /healthz*,/readyz*,/livez*]",
        ),
    )  # fmt: skip


class KubeSchedulerCommand(click.Command):
    """A command that knows all flags of kube-scheduler, also those that it refuses."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, list(_without_as_it_is(args)))
        except click.NoSuchOption as error:
            refused = REFUSED | DROPPED_REFUSED
            if error.option_name not in refused:
                raise
            which = "a flag of kube-scheduler" if error.option_name in REFUSED else "an old flag of kube-scheduler"
            why = f"{error.option_name} is {which} that Stowplan does not have: {refused[error.option_name]}."
            raise click.UsageError(why, ctx=ctx) from None


def _without_as_it_is(args: Sequence[str]) -> Iterator[str]:
    """Yield the arguments, with dashes in names, without flags whose value is how it is. Raises for another value."""
    given = iter(args)
    for argument in given:
        if argument == "--":
            yield argument
            yield from given
            return
        name, equals, value = argument.partition("=")
        if not argument.startswith("--"):
            yield argument
            continue
        name = name.replace("_", "-")
        if name not in AS_IT_IS and name not in DROPPED_AS_IT_IS:
            yield name + equals + value
            continue
        expected, reason = AS_IT_IS.get(name) or DROPPED_AS_IT_IS[name]
        if not equals:
            value = TRUE if expected in (TRUE, FALSE) else next(given, "")
        if _plain(value) != expected:
            problem = f"found {value!r}, expected {expected!r}: {reason}"
            raise click.UsageError(f"Invalid value for {name!r}: {problem}.")


def _plain(value: str) -> str:
    """Return a value without the spellings that Go allows for it."""
    if value in BOOLEANS and value not in "10":
        return TRUE if BOOLEANS[value] else FALSE
    return value.removeprefix("kube=")
