"""Checks of the contract of plugins, for any plugin, on small random clusters.

    1  complete     it has a method of an extension point, every `reserve` an `unreserve`, every hint its method
    2  well formed  answers have the right types, one entry per node; scores are int64 within 0 and 100
    3  stable       the same input gives the same output, and the input is not changed
    4  by node      an answer belongs to its node: it does not depend on the order of rows, and a filter's answer not on
                    the other nodes in the call; if declared so, it depends on the node's row alone
    5  its twin     (a version that looks at one node at a time) gives the same answers
    6  has a say    each method gave an answer that makes a difference: what never acted was not tried

`check_plugin(MyPlugin()) == []`: nothing is wrong. A problem names the plugin, the method, what was wrong, the pod, and
the seed that gives the same cluster again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stowplan.framework.checks.answers import Asked, Problem
from stowplan.framework.checks.lines import LinesRun
from stowplan.framework.checks.other_methods import NOT_CALLED, problems_of_methods
from stowplan.framework.checks.says import NEVER, Says
from stowplan.framework.checks.words import Words, with_objects, words_of
from stowplan.framework.declared_kinds import check_objects
from stowplan.framework.extension_points import CLUSTERS, kind_of, points_of
from stowplan.framework.filtering import LOCALITY
from stowplan.framework.interfaces import Wake
from stowplan.framework.placement.plugin_checks import check_cluster_plugin
from stowplan.framework.random_clusters import RandomCluster, draw
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement
from stowplan.objects.pods import Pod


def check_plugin(
    plugin: Any,
    *,
    twin: Any = None,
    seed: int = 0,
    clusters: int = 40,
    pods: Sequence[Pod] = (),
    objects: Sequence[Object] = (),
    idle: Mapping[str, str] | None = None,
    placements: Sequence[Placement] = (),
) -> list[str]:
    """Return what is wrong with a plugin (an instance, or a class that needs no arguments).

        assert check_plugin(MyPlugin(), pods=[a_pod(labels={"heavy": "true"})]) == []

    `pods` are used in addition to the random ones, and `objects` are in every cluster, for plugins that need them. A
    method that never acts on any of these pods is a problem, too: `idle={"permit": "why"}` accepts that. A plugin for
    clusters is asked about random fleets, and about `placements`.
    """
    check_objects(objects, (plugin,))
    cls = plugin if isinstance(plugin, type) else type(plugin)
    if kind_of(cls) is CLUSTERS:
        return check_cluster_plugin(
            plugin, twin=twin, seed=seed, fleets=clusters, placements=placements, objects=objects, idle=idle or ()
        )
    return examine(
        plugin, twin=twin, seed=seed, clusters=clusters, pods=pods, objects=objects, idle=idle or {}
    ).problems


@dataclass(frozen=True)
class Examination:
    """What the checks found.

    problems     what is wrong, one sentence each, those about idle methods included
    acted        how often each method was called, and how often its answer made a difference
    never_ran    lines of methods that never ran, by method
    not_called   methods that only a whole scheduler calls
    pods         how many pods were drawn or given
    """

    problems: list[str]
    acted: dict[str, tuple[int, int]]
    never_ran: dict[str, list[int]]
    not_called: list[str]
    pods: int


def examine(
    plugin: Any,
    *,
    twin: Any = None,
    seed: int = 0,
    clusters: int = 40,
    pods: Sequence[Pod] = (),
    objects: Sequence[Object] = (),
    idle: Mapping[str, str] = {},
    on_cluster: Callable[[], object] = lambda: None,
) -> Examination:
    """Check a plugin, and tell what was tried. `on_cluster` is called after each cluster."""
    plugin = plugin() if isinstance(plugin, type) else plugin
    says, lines = Says(), LinesRun(plugin)
    wakes, wrong_wakes = _wakes(plugin)
    found = dict.fromkeys((*_incomplete(plugin, idle), *wrong_wakes), "")
    for number, drawn in _clusters(with_objects(words_of(plugin, twin), objects), seed, clusters):
        for pod in (drawn.pod, *pods):
            says.pods += 1
            waiting = (*pods, *drawn.waiting)
            situation = replace(drawn, others=(*drawn.others, *objects), pod=pod, waiting=waiting)
            for what, example in _problems(Asked(plugin, situation, says, lines), twin, wakes):
                found.setdefault(what, f": {example} (pod {pod.key}, cluster seed {number})")
        on_cluster()
    hints = {wake.hint: wake.resource for wake in wakes if wake.hint and callable(getattr(plugin, wake.hint, None))}
    if points_of(type(plugin)):
        found |= {sentence: "" for _, sentence in says.idle(plugin, hints, lines, idle)}
    name = type(plugin).__name__
    called = {
        method: (says.calls[method], says.differences[method]) for method in (*NEVER, *hints) if says.calls[method]
    }
    return Examination(
        problems=[f"{name}: {what}{example}" for what, example in found.items()],
        acted={method: (says.calls[method], says.differences[method]) for method in called},
        never_ran={method: never for method in lines.methods if lines.ran(method) and (never := lines.never(method))},
        not_called=[method for method in NOT_CALLED if callable(getattr(plugin, method, None))],
        pods=says.pods,
    )


def _clusters(words: Words, seed: int, clusters: int) -> Iterator[tuple[int, RandomCluster]]:
    """Yield each cluster twice, the second time with the words of the plugin and the objects."""
    for number in range(seed, seed + clusters):
        yield number, draw(number)
        if words:
            yield number, draw(number, words)


def _problems(asked: Asked, twin: Any, wakes: Sequence[Wake]) -> Iterator[Problem]:
    yield from asked.problems_of_answers(twin)
    yield from problems_of_methods(asked, wakes)


def _wakes(plugin: Any) -> tuple[list[Wake], list[str]]:
    """Return the wakes of a plugin that are sound, and what is wrong with the others."""
    try:
        given = list(plugin.wakes_on()) if callable(getattr(plugin, "wakes_on", None)) else []
    except Exception as error:
        return [], [f"wakes_on fails: {type(error).__name__}: {error}"]
    wrong = [f"wakes_on gives {each!r}, and only Wake is right" for each in given if not isinstance(each, Wake)]
    wakes = [each for each in given if isinstance(each, Wake)]
    lost = [each.hint for each in wakes if each.hint and not callable(getattr(plugin, each.hint, None))]
    return wakes, wrong + [f"wakes_on names the hint {hint!r}, and there is no such method" for hint in lost]


def _incomplete(plugin: Any, idle: Mapping[str, str]) -> Iterator[str]:
    if not points_of(type(plugin)):
        yield "it has no method of any extension point; give it filter or score"
    if hasattr(plugin, "reserve") != hasattr(plugin, "unreserve"):
        yield "reserve and unreserve go together, and it has one of them only"
    if getattr(plugin, "local", "") not in LOCALITY:
        yield f"local is {plugin.local!r}, and may be one of {', '.join(filter(None, LOCALITY))}"
    for method in idle:
        if not callable(getattr(plugin, method, None)):
            yield f"idle names {method!r}, and there is no such method"
