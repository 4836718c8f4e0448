"""What the methods of a plugin cost, in yardsticks, wherever it is asked: in a cluster (`measured_cluster`), or in a
fleet of clusters (`measured_fleet`).

Each method is measured for the pod (or placement) that it takes longest for, in turns with a whole decision of the
default plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Protocol, TypeAlias

from stowplan.apps.plugin_kit.interleaving import Measurement, interleave
from stowplan.apps.plugin_kit.named_plugin import NamedPlugin
from stowplan.apps.plugin_kit.yardstick import Yardstick
from stowplan.framework.checks.lines import LinesRun
from stowplan.framework.per_node import filter_each, score_each
from stowplan.objects.errors import ConfigError

SLOW = 100  # yardsticks
BATCH_SECONDS = 0.003  # a batch of a quick method takes about this long
ARRAYS = "arrays"
Batch: TypeAlias = Callable[[], tuple[float, int]]


@dataclass(frozen=True)
class Cost:
    """What one form of a method costs. `own`: it is the form that the scheduler calls."""

    method: str
    form: str
    asked: str  # the key of the pod or placement
    yardsticks: float
    microseconds: float
    own: bool
    why: str = ""  # what makes it slow, if it is

    @property
    def slow(self) -> bool:
        return self.own and self.yardsticks > SLOW


@dataclass(frozen=True)
class Work:
    """A method in one of its forms; it is called with a pod and nodes, or with a placement and clusters."""

    method: str
    form: str
    call: Callable[[Any, Any], object]
    own: bool = True


class Surroundings(Protocol):
    """Where a plugin is measured, and the pods or placements that it is asked about."""

    asked: Sequence[Any]
    yardstick: Yardstick

    def view(self, method: str, asked: Any) -> Any:
        """Return what the method gets in a new decision: nodes, or clusters."""

    def decisions(self) -> Batch:
        """Return a batch of whole decisions of the default plugins."""


def works(named: NamedPlugin) -> Iterator[Work]:
    """Yield the methods that look at each node or cluster, in each of their forms."""
    plugin, twin = named.plugin, named.plugin if named.twin is None else named.twin
    if callable(getattr(plugin, "pre_filter", None)):
        yield Work("pre_filter", "", lambda pod, nodes: plugin.pre_filter(pod, nodes.cluster))
    adapted: tuple[tuple[str, str, Any], ...] = (("filter", "fits", filter_each), ("score", "rate", score_each))
    for method, one_by_one, by_each in adapted:
        own = getattr(type(plugin), method, None)
        if own is not None and own is not by_each:
            yield Work(method, ARRAYS, _exhausted(getattr(plugin, method)))
        if hasattr(twin, one_by_one):
            yield Work(method, f"per {named.kind.one}", _exhausted(partial(by_each, twin)), own=own is by_each)
    if callable(getattr(plugin, "changes_at", None)):
        yield Work("changes_at", "", lambda placement, clusters: plugin.changes_at(placement, clusters))


def _exhausted(call: Callable[[Any, Any], Any]) -> Callable[[Any, Any], object]:
    """Return a call that also runs to its end what the method yields."""

    def called(asked: Any, these: Any) -> object:
        answer = call(asked, these)
        return list(answer) if isinstance(answer, Iterator) else answer

    return called


def measured(
    named: NamedPlugin,
    methods: Sequence[Work],
    where: Surroundings,
    rounds: int,
    on_round: Callable[[], object] = lambda: None,
) -> tuple[list[Cost], float]:
    """Return what each method costs, and what a whole decision of the default plugins costs, in yardsticks."""
    longest = [(work, max(where.asked, key=lambda asked, work=work: _seconds(work, where, asked))) for work in methods]  # type: ignore[misc]
    batches = [_batch(work, where, asked) for work, asked in longest]
    measurements = [Measurement(batch, where.yardstick) for batch in (*batches, where.decisions())]
    interleave(measurements, rounds, on_round)
    costs = [
        Cost(
            work.method, work.form, asked.key, measurement.yardsticks, measurement.microseconds, work.own,
            _why(named, work, where, asked) if measurement.yardsticks > SLOW else "",
        )
        for (work, asked), measurement in zip(longest, measurements, strict=False)
    ]  # fmt: skip
    return costs, measurements[-1].yardsticks


def _seconds(work: Work, where: Surroundings, asked: Any) -> float:
    these = where.view(work.method, asked)
    start = perf_counter()
    try:
        work.call(asked, these)
    except Exception as error:
        about = f"{type(asked).__name__.lower()} {asked.key}"
        problem = f"{work.method} fails for {about}: {type(error).__name__}: {error}"
        raise ConfigError(problem, remedy="`stowplan plugin check` says more") from error
    return perf_counter() - start


def _batch(work: Work, where: Surroundings, asked: Any) -> Batch:
    once = min(_seconds(work, where, asked) for _ in range(2))
    times = max(1, int(BATCH_SECONDS / max(once, 1e-7)))
    times = min(times, 200)
    return lambda: (sum(_seconds(work, where, asked) for _ in range(times)), times)


def _why(named: NamedPlugin, work: Work, where: Surroundings, asked: Any) -> str:
    """Return what makes a method slow: a line that runs for each node or cluster."""
    lines, these = LinesRun(named.plugin), where.view(work.method, asked)
    with lines.counting():
        work.call(asked, these)
    busiest = [(*lines.busiest(method), method) for method in lines.methods]
    line, count, method = max(busiest, key=lambda each: each[1], default=(0, 0, ""))
    one_by_one = f"it looks at one {named.kind.one} at a time"
    if count >= len(these) // 2:
        return f"line {line} (in {method}) runs {count:,} times: {one_by_one}"
    return one_by_one if work.form not in (ARRAYS, "") else ""
