"""The flags of `stowplan score-agent usage|prometheus|http|static`, and their validation."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from stowplan.apps.flags import Duration, serving_options, with_options
from stowplan.objects.errors import ConfigError

if TYPE_CHECKING:  # the modules are imported when a command runs
    from stowplan.apps.score_agent.sources import Source
    from stowplan.scores.normalization import Bounds, Normaliser
    from stowplan.scores.publication import Validity
    from stowplan.scores.usage import Measure

EXIT_CODES = (
    "Exit codes: 0 stopped by a signal, or with --once all scores are up to date; 1 with --once some are not; "
    "2 the input cannot be used, or a cluster cannot be reached."
)


PORT = 8445


class BoundsType(click.ParamType):  # type: ignore[type-arg]
    """WORST:BEST, two quantities."""

    name = "worst:best"

    def convert(self, value: Bounds | str, param: click.Parameter | None, ctx: click.Context | None) -> Bounds:
        from stowplan.objects.quantity import NANO, nanos
        from stowplan.scores.normalization import Bounds

        if not isinstance(value, str):
            return value
        try:
            worst, best = (nanos(text) / NANO for text in value.split(":"))
        except ValueError:
            self.fail(f"{value!r} is not WORST:BEST, such as 1G:100G, or 500:5 where less is better", param, ctx)
        return Bounds(worst, best)


HUB = (
    click.option(
        "--hub-kubeconfig", default="", help="The kubeconfig of the hub; without it the cluster that kubectl would use."
    ),
    click.option("--hub-context", default="", help="The context of the kubeconfig."),
    click.option("--resource-name", default="default", show_default=True, help="The name of the AddOnPlacementScores."),
    click.option("--interval", type=Duration(), default="60s", show_default=True, help="The time between two rounds."),
    click.option(
        "--valid-for",
        type=Duration(never=True),
        help='How long scores are valid, or "never" if they do not expire.  [default: 10 intervals]',
    ),
    click.option(
        "--refresh-before",
        type=Duration(),
        help="Write unchanged scores again when they expire within this time.  [default: 3 intervals]",
    ),
    click.option("--on-demand", is_flag=True, help="Write only scores that a Placement asks for."),
    click.option("--once", is_flag=True, help="One round only."),
    click.option("--dry-run", is_flag=True, help="One round only; print the scores instead of writing them."),
    click.option(
        "--hub-token-lifetime",
        type=Duration(),
        default="0s",
        show_default="the token is not renewed",
        help="Renew the token for the hub (the tokenFile of its kubeconfig) when half of its life is over. A new one "
        "is valid for this time, at least 10m.",
    ),
    serving_options(PORT, verbosity="Verbosity of the log; 2 shows each round."),
)
SMOOTHING = (
    click.option(
        "--smooth", "half_life", type=Duration(), default="0s", show_default=True,
        help="Smooth values with an exponential average of this half-life.",
    ),
    click.option(
        "--deadband", type=click.IntRange(0, 200), default=0, show_default=True,
        help="Keep a score that changed by at most this many points.",
    ),
)  # fmt: skip
SCALE = (
    click.option("--bounds", type=BoundsType(), help="The values that score -100 and 100, such as 1G:100G."),
    click.option("--over-fleet", is_flag=True, help="The lowest value of the fleet scores -100, the highest 100."),
    click.option("--less-is-better", is_flag=True, help="With --over-fleet: the lowest value scores 100."),
)
SITE = (
    click.option("--token-file", default="", help="A file with a bearer token; it is read again each minute."),
    click.option("--ca-file", default="", help="The certificate authority of the server."),
    click.option(
        "--insecure-skip-tls-verify", "insecure", is_flag=True, help="Do not verify the server's certificate."
    ),
    click.option("--timeout", type=Duration(), default="10s", show_default=True),
)


@click.command(epilog=EXIT_CODES)
@click.option("--cluster-name", required=True, help="The name of this cluster, and of its namespace, on the hub.")
@click.option(
    "--kubeconfig", default="", help="The kubeconfig of this cluster; without it the cluster that kubectl would use."
)
@click.option("--context", default="", help="The context of the kubeconfig.")
@click.option(
    "--cpu-bounds",
    type=BoundsType(),
    default="0:100",
    show_default=True,
    help="The free cores that score -100 and 100.",
)
@click.option(
    "--memory-bounds",
    type=BoundsType(),
    default="1G:100G",
    show_default=True,
    help="The free memory that scores -100 and 100.",
)
@click.option(
    "--free", multiple=True, metavar="NAME=RESOURCE:WORST:BEST",
    help="A further score of a free resource, such as gpu=nvidia.com/gpu:0:20; can be repeated.",
)  # fmt: skip
@click.option(
    "--actual",
    is_flag=True,
    help="Also scores by real usage, from metrics-server: cpuratio-actual, memratio-actual, cpu-actual, mem-actual.",
)
@click.option(
    "--hub-token-secret",
    default="",
    metavar="NAMESPACE/NAME",
    help="With --hub-token-lifetime: keep the new token in this Secret of this cluster, instead of in the file.",
)
@with_options(*SMOOTHING, *HUB)
def usage(
    cluster_name: str, kubeconfig: str, context: str, cpu_bounds: Bounds, memory_bounds: Bounds, free: tuple[str, ...],
    actual: bool, **options: Any,
) -> None:  # fmt: skip
    """Scores cpuratio, memratio, cpu and mem: the free resources of the cluster that the agent runs in."""
    from stowplan.apps.score_agent.sources import OwnCluster
    from stowplan.scores.usage import actual_measures, default_measures

    _check_secret(options["hub_token_secret"], options["hub_token_lifetime"])
    by_usage = actual_measures(cpu_bounds, memory_bounds) if actual else ()
    measures = (*default_measures(cpu_bounds, memory_bounds), *by_usage, *(_measure(text) for text in free))
    twice = {each.name for each in measures if [other.name for other in measures].count(each.name) > 1}
    if twice:
        raise ConfigError(f"found two scores called {', '.join(sorted(twice))}", path="--free")
    keep = 10 * options["interval"] if options["valid_for"] is None else options["valid_for"]
    source = OwnCluster(cluster_name, measures, kubeconfig, context, keep=keep)
    _run(source, options, {each.name: each.bounds for each in measures})


@click.command(epilog=EXIT_CODES)
@click.option("--url", required=True, help="The server, such as http://thanos-query:9090.")
@click.option("--query", required=True, help="PromQL that returns one sample for each cluster.")
@click.option("--cluster-label", default="cluster", show_default=True, help="The label that names the cluster.")
@click.option("--score-name", required=True, help="The name of the score.")
@with_options(*SCALE, *SITE, *SMOOTHING, *HUB)
def prometheus(
    url: str, query: str, cluster_label: str, score_name: str, token_file: str, ca_file: str, insecure: bool,
    timeout: float, **options: Any,
) -> None:  # fmt: skip
    """Scores from a PromQL query; compared over the fleet unless --bounds are given."""
    from stowplan.apps.score_agent.sources import Query
    from stowplan.scores.http_source import HttpSource

    if not options["bounds"]:
        options["over_fleet"] = True
    site = HttpSource(url, token_file=token_file, ca_file=ca_file, insecure=insecure, timeout=timeout)
    _run(Query(site, query, cluster_label, score_name), options)


@click.command(epilog=EXIT_CODES)
@click.option("--url", required=True, help="The scorer, such as http://scorer.example/score.")
@with_options(*SCALE, *SITE, *SMOOTHING, *HUB)
def http(url: str, token_file: str, ca_file: str, insecure: bool, timeout: float, **options: Any) -> None:
    """Scores from an HTTP server of your own, which gets the clusters and returns -100..100, or any --bounds."""
    from stowplan.apps.score_agent.sources import Scorer
    from stowplan.scores.http_source import HttpSource

    site = HttpSource(url, token_file=token_file, ca_file=ca_file, insecure=insecure, timeout=timeout)
    _run(Scorer(site), options)


@click.command(epilog=EXIT_CODES)
@click.option("--score-name", required=True, help="The name of the score.")
@click.option(
    "--value",
    "values",
    multiple=True,
    required=True,
    metavar="CLUSTER=SCORE",
    help="The score of a cluster; once for each cluster.",
)
@with_options(*HUB)
def static(score_name: str, values: tuple[str, ...], **options: Any) -> None:
    """Fixed scores, such as primary=100 and backup=0. They do not expire unless --valid-for is given."""
    from stowplan.apps.score_agent.sources import Static

    if options["valid_for"] is None:
        options["valid_for"] = float("inf")
    _run(Static(score_name, dict(_values(values))), options)


PRODUCERS = {command.name or "": command for command in (usage, prometheus, http, static)}


def _values(given: Iterable[str]) -> Iterable[tuple[str, int]]:
    seen: set[str] = set()
    for text in given:
        cluster, _, number = text.partition("=")
        path = f"--value {text}"
        if not cluster or not number.removeprefix("-").isdecimal():
            raise ConfigError(f"found {text!r}, expected CLUSTER=SCORE, such as primary=100", path="--value")
        if not -100 <= int(number) <= 100:
            raise ConfigError(f"found {number}, expected a score of -100..100", path=path)
        if cluster in seen:
            raise ConfigError(f"found two scores of {cluster}, expected one", path=path)
        seen.add(cluster)
        yield cluster, int(number)


def _measure(text: str) -> Measure:
    from stowplan.scores.usage import Measure

    name, _, rest = text.partition("=")
    resource, _, bounds = rest.partition(":")
    if not (name and resource and bounds):
        remedy = "expected NAME=RESOURCE:WORST:BEST, such as gpu=nvidia.com/gpu:0:20"
        raise ConfigError(f"found {text!r}", path="--free", remedy=remedy)
    return Measure(name, resource, BoundsType().convert(bounds, None, None))


def _run(source: Source, options: dict[str, Any], normalisers: Mapping[str, Normaliser] | None = None) -> None:
    from stowplan.apps.score_agent import service
    from stowplan.scores.normalization import AsIs, OverFleet

    bounds: Bounds | None = options.pop("bounds", None)
    over_fleet, less_is_better = options.pop("over_fleet", False), options.pop("less_is_better", False)
    if bounds is not None and over_fleet:
        raise ConfigError("found both --bounds and --over-fleet", remedy="leave one of them out")
    if less_is_better and not over_fleet:
        raise ConfigError(
            "found --less-is-better without --over-fleet", remedy="with --bounds put the larger number first"
        )
    _check_lifetime(options["hub_token_lifetime"])
    scale = bounds or (OverFleet(less_is_better) if over_fleet else AsIs())
    validity = _validity(options["interval"], options.pop("valid_for"), options.pop("refresh_before"))
    sys.exit(service.run(service.ScoreAgentOptions(normalisers or {}, scale, validity=validity, **options), source))


def _check_secret(secret: str, lifetime: float) -> None:
    namespace, _, name = secret.partition("/")
    if secret and (not namespace or not name or "/" in name):
        raise ConfigError(f"found {secret!r}, expected NAMESPACE/NAME", path="--hub-token-secret")
    if secret and not lifetime:
        problem = "found a Secret, but the token is not renewed"
        raise ConfigError(problem, path="--hub-token-secret", remedy="set --hub-token-lifetime, to 24h say")


def _check_lifetime(lifetime: float) -> None:
    from stowplan.kube.service_account_tokens import SHORTEST_LIFE

    if 0 < lifetime < SHORTEST_LIFE:
        problem = f"found {lifetime:g} s, expected at least {SHORTEST_LIFE:g} s: API servers refuse less"
        raise ConfigError(problem, path="--hub-token-lifetime")


def _validity(interval: float, valid_for: float | None, refresh_before: float | None) -> Validity:
    from stowplan.scores.publication import Validity

    if interval <= 0:
        raise ConfigError(f"found {interval:g} s, expected more than 0 s", path="--interval")
    margin = 3 * interval if refresh_before is None else refresh_before
    if margin < interval:
        problem = f"found {margin:g} s, less than one --interval ({interval:g} s)"
        raise ConfigError(problem, path="--refresh-before", remedy="scores would expire before they are written again")
    seconds = 10 * interval if valid_for is None else valid_for
    try:
        return Validity(None if seconds == float("inf") else seconds, margin)
    except ConfigError as error:
        raise ConfigError(error.problem, path="--valid-for", remedy=error.remedy) from None
