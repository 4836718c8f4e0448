"""`stowplan score-agent usage|prometheus|http|static`: what each producer can be told, and what is wrong with that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from stowplan.apps.flags import Duration, LogLevel
from stowplan.objects.errors import ConfigError

EXIT_CODES = (
    "Exit codes: 0 told to stop, or with --once each score is up to date; 1 with --once: some are not; "
    "2 the input cannot be used, or a cluster cannot be reached."
)
F = TypeVar("F", bound=Callable[..., Any])


class BoundsType(click.ParamType):  # type: ignore[type-arg]
    """WORST:BEST, two quantities."""

    name = "worst:best"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
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
    click.option("--hub-kubeconfig", default="", help="How to reach the hub; without it as kubectl finds a cluster."),
    click.option("--hub-context", default="", help="The context to use of it."),
    click.option("--resource-name", default="default", show_default=True, help="The AddOnPlacementScores' name."),
    click.option("--interval", type=Duration(), default="60s", show_default=True, help="How often to look."),
    click.option(
        "--valid-for",
        type=Duration(never=True),
        help='How long scores count, or "never" to let them count for ever.  [default: 10 intervals]',
    ),
    click.option(
        "--refresh-before",
        type=Duration(),
        help="Write scores that did not change when so little of that is left.  [default: 3 intervals]",
    ),
    click.option("--on-demand", is_flag=True, help="Only scores that a Placement asks for."),
    click.option("--once", is_flag=True, help="One round, and the end."),
    click.option("--dry-run", is_flag=True, help="One round; print what would be written, and write nothing."),
    click.option(
        "-v", "--v", "v", type=LogLevel(), default=0, show_default=True, help="How much to say: 2 each round."
    ),
    click.option("--logging-format", type=click.Choice(["text", "json"]), default="text", show_default=True),
)
CALM = (
    click.option(
        "--smooth", "half_life", type=Duration(), default="0s", show_default=True,
        help="Average what is measured; after so long half of an old value is forgotten.",
    ),
    click.option(
        "--deadband", type=click.IntRange(0, 200), default=0, show_default=True,
        help="Keep a score that changed by no more than so many points.",
    ),
)  # fmt: skip
SCALE = (
    click.option("--bounds", type=BoundsType(), help="What scores -100 and what scores 100, such as 1G:100G."),
    click.option("--over-fleet", is_flag=True, help="The cluster with least scores -100, the one with most 100."),
    click.option("--less-is-better", is_flag=True, help="With --over-fleet: the other way round."),
)
SITE = (
    click.option("--token-file", default="", help="A bearer token to show; the file is read again each minute."),
    click.option("--ca-file", default="", help="Who vouches for the server."),
    click.option("--insecure-skip-tls-verify", "insecure", is_flag=True, help="Trust whoever answers."),
    click.option("--timeout", type=Duration(), default="10s", show_default=True),
)


def told(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options at once, in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@click.command(epilog=EXIT_CODES)
@click.option("--cluster-name", required=True, help="The name of this cluster, and of its namespace, on the hub.")
@click.option("--kubeconfig", default="", help="How to reach this cluster; without it as kubectl finds a cluster.")
@click.option("--context", default="", help="The context to use of it.")
@click.option("--cpu-bounds", type=BoundsType(), default="0:100", show_default=True, help="Of free cores.")
@click.option("--memory-bounds", type=BoundsType(), default="1G:100G", show_default=True, help="Of free memory.")
@click.option(
    "--free", multiple=True, metavar="NAME=RESOURCE:WORST:BEST",
    help="One more score of what is left, such as gpu=nvidia.com/gpu:0:20; as often as needed.",
)  # fmt: skip
@told(*CALM, *HUB)
def usage(
    cluster_name: str, kubeconfig: str, context: str, cpu_bounds: Any, memory_bounds: Any, free: tuple[str, ...],
    **options: Any,
) -> None:  # fmt: skip
    """cpuratio, memratio, cpu and mem: what the cluster we run in has left."""
    from stowplan.apps.score_agent.sources import OwnCluster
    from stowplan.scores.usage import default_measures

    measures = (*default_measures(cpu_bounds, memory_bounds), *(_measure(text) for text in free))
    twice = {each.name for each in measures if [other.name for other in measures].count(each.name) > 1}
    if twice:
        raise ConfigError(f"there are two scores called {', '.join(sorted(twice))}", path="--free")
    source = OwnCluster(cluster_name, measures, kubeconfig, context)
    _run(source, options, {each.name: each.bounds for each in measures})


@click.command(epilog=EXIT_CODES)
@click.option("--url", required=True, help="Prometheus, Thanos or the like, such as http://thanos-query:9090.")
@click.option("--query", required=True, help="PromQL; it gives one sample for each cluster.")
@click.option("--cluster-label", default="cluster", show_default=True, help="The label that names the cluster.")
@click.option("--score-name", required=True, help="The score's name.")
@told(*SCALE, *SITE, *CALM, *HUB)
def prometheus(
    url: str, query: str, cluster_label: str, score_name: str, token_file: str, ca_file: str, insecure: bool,
    timeout: float, **options: Any,
) -> None:  # fmt: skip
    """One PromQL query on the hub; compared over the fleet unless there are --bounds."""
    from stowplan.apps.score_agent.sources import Query
    from stowplan.scores.http_source import HttpSource

    if not options["bounds"]:
        options["over_fleet"] = True
    site = HttpSource(url, token_file=token_file, ca_file=ca_file, insecure=insecure, timeout=timeout)
    _run(Query(site, query, cluster_label, score_name), options)


@click.command(epilog=EXIT_CODES)
@click.option("--url", required=True, help="The scorer, such as http://scorer.example/score.")
@told(*SCALE, *SITE, *CALM, *HUB)
def http(url: str, token_file: str, ca_file: str, insecure: bool, timeout: float, **options: Any) -> None:
    """A scorer of your own: it is sent the clusters and answers with scores of -100..100, or with --bounds anything."""
    from stowplan.apps.score_agent.sources import Scorer
    from stowplan.scores.http_source import HttpSource

    site = HttpSource(url, token_file=token_file, ca_file=ca_file, insecure=insecure, timeout=timeout)
    _run(Scorer(site), options)


@click.command(epilog=EXIT_CODES)
@click.option("--score-name", required=True, help="The score's name.")
@click.option("--value", "values", multiple=True, required=True, metavar="CLUSTER=SCORE", help="Once for each cluster.")
@told(*HUB)
def static(score_name: str, values: tuple[str, ...], **options: Any) -> None:
    """What was decided once, such as primary=100 and backup=0; it counts for ever unless --valid-for says otherwise."""
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
            raise ConfigError("expected CLUSTER=SCORE, such as primary=100", path=path)
        if not -100 <= int(number) <= 100:
            raise ConfigError(f"found {number}, expected a score of -100..100", path=path)
        if cluster in seen:
            raise ConfigError(f"{cluster} has a score already", path=path)
        seen.add(cluster)
        yield cluster, int(number)


def _measure(text: str) -> Any:
    from stowplan.scores.usage import Measure

    name, _, rest = text.partition("=")
    resource, _, bounds = rest.partition(":")
    if not (name and resource and bounds):
        remedy = "expected NAME=RESOURCE:WORST:BEST, such as gpu=nvidia.com/gpu:0:20"
        raise ConfigError("cannot be read", path=f"--free {text}", remedy=remedy)
    return Measure(name, resource, BoundsType().convert(bounds, None, None))


def _run(source: Any, options: dict[str, Any], normalisers: dict[str, Any] | None = None) -> None:
    from stowplan.apps.score_agent import service
    from stowplan.scores.normalization import AsIs, Bounds, OverFleet

    bounds: Bounds | None = options.pop("bounds", None)
    over_fleet, less_is_better = options.pop("over_fleet", False), options.pop("less_is_better", False)
    if bounds is not None and over_fleet:
        raise ConfigError("--bounds and --over-fleet do not go together", remedy="leave one of them out")
    if less_is_better and not over_fleet:
        raise ConfigError("--less-is-better is for --over-fleet", remedy="with --bounds put the larger number first")
    scale = bounds or (OverFleet(less_is_better) if over_fleet else AsIs())
    validity = _validity(options["interval"], options.pop("valid_for"), options.pop("refresh_before"))
    sys.exit(service.run(service.ScoreAgentOptions(normalisers or {}, scale, validity=validity, **options), source))


def _validity(interval: float, valid_for: float | None, refresh_before: float | None) -> Any:
    from stowplan.scores.publication import Validity

    if interval <= 0:
        raise ConfigError("found 0, expected some time between two rounds", path="--interval")
    margin = 3 * interval if refresh_before is None else refresh_before
    if margin < interval:
        problem = f"found {margin:g} s, less than one --interval ({interval:g} s)"
        raise ConfigError(problem, path="--refresh-before", remedy="scores would expire before they are written again")
    seconds = 10 * interval if valid_for is None else valid_for
    try:
        return Validity(None if seconds == float("inf") else seconds, margin)
    except ConfigError as error:
        raise ConfigError(error.problem, path="--valid-for", remedy=error.remedy) from None
