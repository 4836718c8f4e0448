"""What the methods of a plugin cost, in yardsticks, wherever it is asked: in a cluster (`measured_cluster`), or in a
fleet of clusters (`measured_fleet`).

Each method is measured for the pod (or placement) that it takes longest for, in turns with a whole decision of the
default plugins. A method that acted for none of them (a filter that rejected no node) was not measured, whatever its
figure says: most of its code did not run (`tried`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Protocol, TypeAlias

import numpy as np

from stowplan.apps.plugin_kit.interleaving import Measurement, interleave
from stowplan.apps.plugin_kit.named_plugin import NamedPlugin
from stowplan.apps.plugin_kit.yardstick import Yardstick
from stowplan.framework.checks.lines import LinesRun
from stowplan.framework.checks.says import Says
from stowplan.framework.per_node import filter_each, score_each
from stowplan.framework.placement.interfaces import Misconfigured
from stowplan.objects.errors import ConfigError

SLOW = 100  # yardsticks
BATCH_SECONDS = 0.003  # a batch of a quick method takes about this long
PATIENCE = 10.0  # seconds to look for a pod that makes a method act
AGAIN, FEW = 3, 10
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
    never: str = ""  # what the method never did, if it had no say

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


@dataclass(frozen=True)
class Tried:
    """A method, what it takes longest for (None: it was never called), and what it never did, if it had no say."""

    work: Work
    longest: Any
    never: str


class Surroundings(Protocol):
    """Where a plugin is measured, and the pods or placements that it is asked about."""

    asked: Sequence[Any]
    more: Sequence[Any]  # for methods that did not act for any of `asked`
    given: bool  # they are the user's, not drawn
    yardstick: Yardstick

    def view(self, method: str, asked: Any) -> Any:
        """Return what the method gets in a new decision: nodes, or clusters; None if it is not called."""

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
    idle: Mapping[str, str] = {},
) -> tuple[list[Cost], float]:
    """Return what each method costs, and what a whole decision of the default plugins costs, in yardsticks.

    `idle`: methods that need not act here, with the reason.
    """
    found = [tried(work, named, where, idle) for work in methods]
    timed = [each for each in found if each.longest is not None]
    measurements = [
        Measurement(batch, where.yardstick)
        for batch in (*(_batch(each.work, where, each.longest) for each in timed), where.decisions())
    ]
    interleave(measurements, rounds, on_round)
    by_work = {id(each.work): measurement for each, measurement in zip(timed, measurements, strict=False)}
    costs = [_cost(named, each, where, by_work.get(id(each.work))) for each in found]
    return costs, measurements[-1].yardsticks


def _cost(named: NamedPlugin, found: Tried, where: Surroundings, measurement: Measurement | None) -> Cost:
    work = found.work
    if measurement is None:
        return Cost(work.method, work.form, "", 0.0, 0.0, work.own, never=found.never)
    why = _why(named, work, where, found.longest) if measurement.yardsticks > SLOW else ""
    figures = measurement.yardsticks, measurement.microseconds
    return Cost(work.method, work.form, found.longest.key, *figures, work.own, why, found.never)


def tried(work: Work, named: NamedPlugin, where: Surroundings, idle: Mapping[str, str]) -> Tried:
    """Call a method for each pod (or placement), and for more of them until it acts."""
    says = Says(named.kind, drawn="given" if where.given else "drawn", checks=False)
    expects = work.own and work.method in says.never and work.method not in idle
    times: list[tuple[float, bool, Any]] = []
    for number, asked in enumerate((*where.asked, *where.more)):
        late = sum(seconds for seconds, _, _ in times) > PATIENCE
        if number >= len(where.asked) and (not expects or says.differences[work.method] or late):
            break
        says.asked += 1
        these = where.view(work.method, asked)
        if these is not None:
            seconds, answer = _timed(work, asked, these)
            acts = acted(work.method, answer)
            says.note(work.method, acts)
            times.append((seconds, acts, asked))
    never = ""
    if expects and not says.differences[work.method]:
        lines = _lines(work, named, where, says.asked)
        never = next(text for method, text in says.idle(named.plugin, {}, lines, idle) if method == work.method)
    return Tried(work, _longest(work, where, times), never)


def acted(method: str, answer: Any) -> bool:
    """True if an answer makes a difference, as in the checks of plugins (`framework.checks.says`)."""
    if method == "filter":
        rejects = answer if isinstance(answer, list | tuple) else ()
        return any(isinstance(each, Misconfigured) or bool(np.any(each.rows)) for each in rejects)
    if method == "score" and isinstance(answer, np.ndarray):
        given = answer.compressed() if isinstance(answer, np.ma.MaskedArray) else answer
        return 0 < len(given) < len(answer) or len(np.unique(given)) > 1
    return isinstance(answer, Misconfigured) if method == "score" else answer is not None


def _longest(work: Work, where: Surroundings, times: Sequence[tuple[float, bool, Any]]) -> Any:
    """Return what the method takes longest for; None if it was never called.

    The first call of all may pay for what later ones find in caches. So the longest are asked about again, one that
    made the method act among them.
    """
    by_time = sorted(times, key=lambda each: -each[0])
    again = [*by_time[:AGAIN], *[each for each in by_time if each[1]][:1]]
    return max((asked for _, _, asked in again), key=lambda asked: _seconds(work, where, asked), default=None)


def _lines(work: Work, named: NamedPlugin, where: Surroundings, count: int) -> LinesRun:
    """Return which lines ran for so many pods or placements, on a few nodes or clusters."""
    lines = LinesRun(named.plugin)
    for asked in (*where.asked, *where.more)[:count]:
        these = where.view(work.method, asked)
        if these is not None:
            few = these.where(np.arange(min(len(these), FEW)))
            with lines.counting():
                _timed(work, asked, few)
    return lines


def _seconds(work: Work, where: Surroundings, asked: Any) -> float:
    return _timed(work, asked, where.view(work.method, asked))[0]


def _timed(work: Work, asked: Any, these: Any) -> tuple[float, object]:
    start = perf_counter()
    try:
        answer = work.call(asked, these)
    except Exception as error:
        about = f"{type(asked).__name__.lower()} {asked.key}"
        problem = f"{work.method} fails for {about}: {type(error).__name__}: {error}"
        raise ConfigError(problem, remedy="`stowplan plugin check` says more") from error
    return perf_counter() - start, answer


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
