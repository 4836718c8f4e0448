"""`stowplan plugin bench FILE:Class`: what a plugin costs in a large cluster.

Costs are given in yardsticks (`yardstick.py`): about the least that a decision must do, so the numbers mean something
on any machine. Each method is measured for the pod that it takes longest for, in turns with a whole decision of the
default profile. The form that looks at one node at a time (`fits`, `rate`) is measured beside the form with arrays, if
the plugin or its twin has it.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from stowplan.apps import json_output, profile_loader
from stowplan.apps.plugin_kit import named_plugin
from stowplan.apps.plugin_kit.interleaving import Measurement, interleave
from stowplan.apps.plugin_kit.yardstick import Yardstick
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.checks.lines import LinesRun
from stowplan.framework.checks.words import words_of
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.per_node import filter_each, score_each
from stowplan.framework.profile import attach_plugin
from stowplan.framework.random_clusters import draw
from stowplan.objects import kinds
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

SLOW = 100  # yardsticks
DRAWN_PODS, DECISIONS = 12, 10
BATCH_SECONDS = 0.003  # a batch of a quick method takes about this long
PAGE = "docs/plugins.md#what-is-slow"
ARRAYS, PER_NODE = "arrays", "per node"


@dataclass(frozen=True)
class BenchOptions:
    """The command line."""

    name: str
    args: tuple[str, ...] = ()
    pods: tuple[Path, ...] = ()
    objects: tuple[Path, ...] = ()
    twin: str = ""
    nodes: int = 5000
    rounds: int = 11
    plugin_path: tuple[Path, ...] = ()
    output: str = "table"


@dataclass(frozen=True)
class Cost:
    """What one form of a method costs. `own`: it is the form that the scheduler calls."""

    method: str
    form: str
    pod: str
    yardsticks: float
    microseconds: float
    own: bool
    why: str = ""  # what makes it slow, if it is

    @property
    def slow(self) -> bool:
        return self.own and self.yardsticks > SLOW


@dataclass(frozen=True)
class Work:
    """A method in one of its forms. `own`: it is the form that the scheduler calls."""

    method: str
    form: str
    call: Callable[[Pod, Cluster], object]
    own: bool = True


def run(options: BenchOptions) -> int:
    """Measure the plugin. Return 1 if a method that the scheduler calls is slow, else 0."""
    plugin = named_plugin.load(options.name, options.args, options.plugin_path)
    twin = named_plugin.load_twin(options.twin, options.args, options.plugin_path) if options.twin else plugin
    works = list(_works(plugin, twin))
    if not works:
        raise ConfigError(f"{options.name} has neither filter nor score", remedy="nothing else is called for each node")
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        bar = progress.add_task(f"making {options.nodes:,} nodes", total=options.rounds + 2)
        state, drawn = _cluster(plugin, twin, options.nodes, named_plugin.objects(options.objects, plugin))
        pods = named_plugin.pods(options.pods) or drawn
        progress.update(bar, description="measuring", advance=1)
        costs, basic = measured(plugin, works, state, pods, options.rounds, lambda: progress.advance(bar))
    slow = [each for each in costs if each.slow]
    if options.output == "table":
        _show(Console(highlight=False, markup=False, emoji=False, soft_wrap=True), options, costs, basic)
    else:
        json_output.echo(_as_json(options, costs, basic), options.output)
    return 1 if slow else 0


def _works(plugin: Any, twin: Any) -> Iterator[Work]:
    if callable(getattr(plugin, "pre_filter", None)):
        yield Work("pre_filter", "", lambda pod, cluster: plugin.pre_filter(pod, cluster))
    adapted: tuple[tuple[str, str, Any], ...] = (("filter", "fits", filter_each), ("score", "rate", score_each))
    for method, per_node, by_node in adapted:
        own = getattr(type(plugin), method, None)
        if own is not None and own is not by_node:
            yield Work(method, ARRAYS, _calling(plugin, method))
        if hasattr(twin, per_node):
            yield Work(method, PER_NODE, _by_node(by_node, twin), own=own is by_node)


def _calling(plugin: Any, method: str) -> Callable[[Pod, Cluster], object]:
    call = getattr(plugin, method)
    if method == "filter":
        return lambda pod, cluster: list(call(pod, cluster.nodes))
    return lambda pod, cluster: call(pod, cluster.nodes)


def _by_node(by_node: Any, twin: Any) -> Callable[[Pod, Cluster], object]:
    if by_node is filter_each:
        return lambda pod, cluster: list(filter_each(twin, pod, cluster.nodes))
    return lambda pod, cluster: score_each(twin, pod, cluster.nodes)


def _cluster(plugin: Any, twin: Any, nodes: int, objects: Sequence[Object]) -> tuple[ClusterState, list[Pod]]:
    """Return a cluster of this size, with one pod for each node, and pods to measure with."""
    words = words_of(plugin, twin)
    drawn = draw(0, words, nodes=nodes, placed=nodes)
    state = ClusterState()
    attach_plugin(plugin, state)
    for each in (*drawn.others, *objects, *drawn.nodes, *drawn.placed):
        state.apply(Put(each))
    more = (draw(seed, kind, nodes=1, placed=0).pod for seed in range(DRAWN_PODS // 2) for kind in (words, None))
    return state, [drawn.pod, *more]


def measured(
    plugin: Any,
    works: Sequence[Work],
    state: ClusterState,
    pods: Sequence[Pod],
    rounds: int,
    on_round: Callable[[], object] = lambda: None,
) -> tuple[list[Cost], float]:
    """Return what each work costs, and what a whole decision of the default profile costs, in yardsticks."""
    yardstick = Yardstick(state)
    asked = [(work, max(pods, key=lambda pod, work=work: _seconds(plugin, work, state, pod))) for work in works]  # type: ignore[misc]
    batches = [_batch(plugin, work, state, pod) for work, pod in asked]
    measurements = [Measurement(batch, yardstick) for batch in (*batches, _decisions(len(state.table.names)))]
    interleave(measurements, rounds, on_round)
    costs = [
        Cost(
            work.method, work.form, pod.key, measurement.yardsticks, measurement.microseconds, work.own,
            _why(plugin, work, state, pod) if measurement.yardsticks > SLOW else "",
        )
        for (work, pod), measurement in zip(asked, measurements, strict=False)
    ]  # fmt: skip
    return costs, measurements[-1].yardsticks


def _decisions(nodes: int) -> Callable[[], tuple[float, int]]:
    """Return a batch of decisions of the default profile; each pod is put on its node."""
    profile = next(iter(profile_loader.defaults()[1].values()))
    state = ClusterState()
    for number in range(nodes):
        labels = {"kubernetes.io/hostname": f"n{number}", "topology.kubernetes.io/zone": f"zone-{number % 3}"}
        offered = {"cpu": "4", "memory": "32Gi", "pods": "110"}
        node = {"metadata": {"name": f"n{number}", "labels": labels}, "status": {"allocatable": offered}}
        state.apply(Put(kinds.convert(Node, node)))
    numbers = itertools.count()

    def batch() -> tuple[float, int]:
        pods = [_plain_pod(f"p{next(numbers)}") for _ in range(DECISIONS)]
        start = perf_counter()
        for pod in pods:
            decision = schedule_one(pod, state, profile)
            if decision.node is not None:  # with as many pods as a small cluster can take
                state.add_pod(pod, decision.node)
        return perf_counter() - start, DECISIONS

    return batch


def _plain_pod(name: str) -> Pod:
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}}]}
    return kinds.convert(Pod, {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec})


def _prepared(plugin: Any, work: Work, state: ClusterState, pod: Pod) -> Cluster:
    """Return the view of a new decision; filters may rely on what their pre-filter left in it."""
    cluster = Cluster(state)
    if work.method in ("filter", "score") and callable(getattr(plugin, "pre_filter", None)):
        plugin.pre_filter(pod, cluster)
    return cluster


def _seconds(plugin: Any, work: Work, state: ClusterState, pod: Pod) -> float:
    cluster = _prepared(plugin, work, state, pod)
    start = perf_counter()
    try:
        work.call(pod, cluster)
    except Exception as error:
        problem = f"{work.method} fails for pod {pod.key}: {type(error).__name__}: {error}"
        raise ConfigError(problem, remedy="`stowplan plugin check` says more") from error
    return perf_counter() - start


def _batch(plugin: Any, work: Work, state: ClusterState, pod: Pod) -> Callable[[], tuple[float, int]]:
    once = min(_seconds(plugin, work, state, pod) for _ in range(2))
    times = max(1, int(BATCH_SECONDS / max(once, 1e-7)))
    times = min(times, 200)
    return lambda: (sum(_seconds(plugin, work, state, pod) for _ in range(times)), times)


def _why(plugin: Any, work: Work, state: ClusterState, pod: Pod) -> str:
    """Return what makes a method slow: a line that runs for each node."""
    lines, cluster = LinesRun(plugin), _prepared(plugin, work, state, pod)
    with lines.counting():
        work.call(pod, cluster)
    busiest = [(*lines.busiest(method), method) for method in lines.methods]
    line, count, method = max(busiest, key=lambda each: each[1], default=(0, 0, ""))
    if count >= len(cluster.nodes) // 2:
        return f"line {line} (in {method}) runs {count:,} times: it looks at one node at a time"
    return "it looks at one node at a time" if work.form == PER_NODE else ""


# -- output


def sentence(cost: Cost, nodes: int) -> str:
    """Return what is said of a slow method."""
    took = f"{cost.method} costs {cost.yardsticks:,.0f} yardsticks a pod ({cost.microseconds / 1000:,.1f} ms"
    why = f"; {cost.why}" if cost.why else ""
    return f"{took} at {nodes:,} nodes; more than {SLOW} is slow){why}; see {PAGE}"


def _show(console: Console, options: BenchOptions, costs: Sequence[Cost], basic: float) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    table.add_column("form", no_wrap=True)
    for heading in ("yardsticks", "µs", "× decision"):
        table.add_column(heading, justify="right")
    table.add_column("slowest pod")
    for cost in costs:
        figures = (f"{cost.yardsticks:,.2f}", f"{cost.microseconds:,.0f}", f"{cost.yardsticks / basic:,.2f}")
        table.add_row(cost.method, cost.form, *figures, cost.pod)
    table.add_row("a default decision", "", f"{basic:,.2f}", "", "1.00", "")
    console.print(table)
    for cost in costs:
        if cost.slow:
            console.print(f"{options.name}: {sentence(cost, options.nodes)}")
    if not any(cost.slow for cost in costs):
        console.print(f"{options.name}: no method costs more than {SLOW} yardsticks a pod at {options.nodes:,} nodes")


def _as_json(options: BenchOptions, costs: Sequence[Cost], basic: float) -> dict[str, Any]:
    return {
        "apiVersion": json_output.VERSION,
        "kind": "PluginBench",
        "plugin": options.name,
        "nodes": options.nodes,
        "decisionYardsticks": round(basic, 2),
        "costs": [
            {
                "method": cost.method,
                "form": cost.form,
                "yardsticks": round(cost.yardsticks, 2),
                "microseconds": round(cost.microseconds, 1),
                "pod": cost.pod,
                "calledByScheduler": cost.own,
                "slow": cost.slow,
            }
            for cost in costs
        ],
        "problems": [sentence(cost, options.nodes) for cost in costs if cost.slow],
    }
