"""Checks of the contract of plugins, for any plugin, on small random clusters.

    1  complete     it has a method of an extension point, every `reserve` an `unreserve`, every hint its method;
                    the events in `wakes_on` can happen
    2  well formed  answers have the right types, one entry per node; scores are int64 within 0 and 100
    3  stable       the same input gives the same output, and the input is not changed
    4  by node      an answer belongs to its node: it does not depend on the order of rows, and a filter's answer not on
                    the other nodes in the call; if declared so, it depends on the node's row alone
    5  its twin     (a version that looks at one node at a time) gives the same answers
    6  its causes   every node that the filter rejects has one, and every pod that is rejected as a whole
    7  has a say    each method gave an answer that makes a difference: what never acted was not tried

A cluster policy is checked on small random fleets (`placement.plugin_checks`).

`check_plugin(MyPlugin()) == []`: nothing is wrong. A problem names the plugin, the method, what was wrong, the pod, and
the seed that gives the same cluster again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from stowplan.framework import wakes
from stowplan.framework.checks.answers import Asked
from stowplan.framework.checks.called_plugin import Problem
from stowplan.framework.checks.examination import Examination, Examiner
from stowplan.framework.checks.other_methods import NOT_CALLED, problems_of_methods
from stowplan.framework.checks.words import Words, with_objects, words_of
from stowplan.framework.declared_kinds import check_objects, resources_of
from stowplan.framework.extension_points import CLUSTERS, KINDS, NODES, TELL, PluginKind, kind_of
from stowplan.framework.filtering import LOCALITY
from stowplan.framework.interfaces import Wake
from stowplan.framework.placement.plugin_checks import examine_cluster_policy
from stowplan.framework.random_clusters import RandomCluster, draw
from stowplan.objects import kinds
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
    placements: Sequence[Placement] = (),
    objects: Sequence[Object] = (),
    idle: Mapping[str, str] | None = None,
    kind: Literal["node", "cluster"] | None = None,
) -> list[str]:
    """Return what is wrong with a plugin or a cluster policy (an instance, or a class that needs no arguments).

        assert check_plugin(MyPlugin(), pods=[a_pod(labels={"heavy": "true"})]) == []
        assert check_plugin(MyPolicy(), placements=[a_placement(labels={"heavy": "true"})]) == []

    `pods` (for a cluster policy `placements`) are used in addition to the random ones, and `objects` are in every
    cluster (fleet), for plugins that need them. A method that never acts on any of these is a problem, too:
    `idle={"permit": "why"}` accepts that. `kind` is needed if neither parameters nor methods tell what it chooses.
    """
    check_objects(objects, (plugin,))
    return examine(
        plugin,
        kind=None if kind is None else KINDS[kind],
        twin=twin,
        seed=seed,
        clusters=clusters,
        pods=pods,
        placements=placements,
        objects=objects,
        idle=idle or {},
    ).problems


def examine(
    plugin: Any,
    *,
    kind: PluginKind | None = None,
    twin: Any = None,
    seed: int = 0,
    clusters: int = 40,
    pods: Sequence[Pod] = (),
    placements: Sequence[Placement] = (),
    objects: Sequence[Object] = (),
    idle: Mapping[str, str] = {},
    on_cluster: Callable[[], object] = lambda: None,
) -> Examination:
    """Check a plugin, and tell what was tried. `on_cluster` is called after each cluster, or fleet."""
    plugin = plugin() if isinstance(plugin, type) else plugin
    told = kind or kind_of(type(plugin))
    examiner = Examiner(plugin, told or NODES, idle)
    if told is None and NODES.points_of(type(plugin)):
        examiner.note((f"neither parameters nor methods tell what it chooses; {TELL}, or give kind=",))
        return examiner.examination()
    useless, seeds = pods if told is CLUSTERS else placements, range(seed, seed + clusters)
    if useless:
        examiner.note((f"it is for {examiner.kind.about}, and is not asked about {type(useless[0]).__name__}s",))
    if told is CLUSTERS:
        return examine_cluster_policy(examiner, twin, seeds, placements, objects, on_cluster)
    return _examine_node_plugin(examiner, twin, seeds, pods, objects, on_cluster)


def _examine_node_plugin(
    examiner: Examiner,
    twin: Any,
    seeds: Iterable[int],
    pods: Sequence[Pod],
    objects: Sequence[Object],
    on_cluster: Callable[[], object],
) -> Examination:
    plugin = examiner.plugin
    named, wrong_wakes = _wakes(plugin)
    examiner.note((*_incomplete(plugin), *wrong_wakes))
    for number, drawn in _clusters(with_objects(words_of(plugin, twin), objects), seeds):
        for pod in (drawn.pod, *pods):
            others, waiting = (*drawn.others, *objects), (*pods, *drawn.waiting)
            situation = replace(drawn.asked_about(pod), others=others, waiting=waiting)
            asked = Asked(plugin, situation, examiner.says, examiner.lines)
            examiner.asked(pod.key, f"cluster seed {number}", _problems(asked, twin, named))
        on_cluster()
    hints = {wake.hint: wake.resource for wake in named if wake.hint}
    return examiner.examination(hints, NOT_CALLED)


def _clusters(words: Words, seeds: Iterable[int]) -> Iterator[tuple[int, RandomCluster]]:
    """Yield each cluster twice, the second time with the words of the plugin and the objects."""
    for number in seeds:
        yield number, draw(number)
        if words:
            yield number, draw(number, words)


def _problems(asked: Asked, twin: Any, named: Sequence[Wake]) -> Iterator[Problem]:
    yield from asked.problems_of_answers(twin)
    yield from problems_of_methods(asked, named)


def _wakes(plugin: Any) -> tuple[list[Wake], list[str]]:
    """Return the wakes of a plugin, and what is wrong with them."""
    own_events = hasattr(plugin, "cluster_events")
    brought = [each.name for each in resources_of(plugin)]
    wrong = [str(each) for each in wakes.problems(plugin, (*kinds.KINDS, *brought), own_events=own_events)]
    if wrong:
        return [], wrong
    return wakes.wakes_of(plugin), [] if own_events else [str(each) for each in wakes.unread(plugin)]


def _incomplete(plugin: Any) -> Iterator[str]:
    if hasattr(plugin, "reserve") != hasattr(plugin, "unreserve"):
        yield "reserve and unreserve go together, and it has one of them only"
    if getattr(plugin, "local", "") not in LOCALITY:
        yield f"local is {plugin.local!r}, and may be one of {', '.join(filter(None, LOCALITY))}"
