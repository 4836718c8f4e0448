"""Checks of the contract of cluster plugins, for any plugin, on small random fleets.

    1  complete     it has filter or score
    2  well formed  answers have the right types, one entry per cluster; scores are int64 within -100 and 100
    3  stable       the same input gives the same output, whatever was asked before, and the input is not changed
    4  by cluster   an answer belongs to its cluster: it does not depend on the order of rows, and a filter's answer not
                    on the other clusters in the call
    5  its twin     (a version that looks at one cluster at a time) gives the same answers
    6  has a say    each method gave an answer that makes a difference: what never acted was not tried

`check_cluster_plugin(MyPolicy()) == []`: nothing is wrong. A problem names the plugin, the method, what was wrong, the
placement, and the seed that gives the same fleet again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from stowplan.columns.fleet.clusters import Fleet
from stowplan.columns.fleet.views import Clusters
from stowplan.framework.extension_points import CLUSTERS
from stowplan.framework.per_node import filter_each, score_each
from stowplan.framework.placement.interfaces import Misconfigured
from stowplan.framework.placement.plugin_calls import call_changes_at, call_cluster_filter, call_cluster_score
from stowplan.framework.placement.random_fleets import RandomFleet, draw
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement

ClusterAnswers: TypeAlias = dict[str, Any]  # by the name of the cluster
FleetProblem: TypeAlias = tuple[str, str]  # what is wrong, and an example
Answer = TypeVar("Answer")
NEVER = {"filter": "never rejected a cluster", "score": "never preferred one cluster to another"}
GIVE = "give placements and objects that it acts on with placements= and objects="


def check_cluster_plugin(
    plugin: Any,
    *,
    twin: Any = None,
    seed: int = 0,
    fleets: int = 40,
    placements: Sequence[Placement] = (),
    objects: Sequence[Object] = (),
    idle: Collection[str] = (),
    texts: Sequence[str] = (),
    numbers: Sequence[int] = (),
) -> list[str]:
    """Return what is wrong with a cluster plugin (an instance, or a class that needs no arguments).

    `placements` are used in addition to the random ones, and `objects` are in every fleet. `idle` are methods that need
    not have a say on any of these. `texts` and `numbers` are words for the fleets.
    """
    plugin = plugin() if isinstance(plugin, type) else plugin
    found: dict[str, str] = {}
    if not CLUSTERS.points_of(type(plugin)):
        found["it has no method of any extension point; give it filter or score"] = ""
    acted, fresh = set[str](), _copied(plugin)
    for number in range(seed, seed + fleets):
        for drawn in (draw(number), draw(number, texts, numbers)):
            for placement in (drawn.placement, *placements):
                situation = replace(drawn, others=(*drawn.others, *objects), placement=placement)
                for what, example in FleetCheck(plugin, twin, fresh, situation, acted).problems():
                    found.setdefault(what, f": {example} (placement {placement.key}, fleet seed {number})")
    for method, never in NEVER.items():
        if hasattr(plugin, method) and method not in acted and method not in idle and not found:
            found[f"{method} {never}: none of the drawn placements made it; {GIVE}"] = ""
    return [f"{type(plugin).__name__}: {what}{example}" for what, example in found.items()]


def _copied(plugin: Any) -> Callable[[], Any]:
    """Return a function that makes copies of the plugin as it is now; itself, if it cannot be copied."""
    try:
        kept = copy.deepcopy(plugin)
    except Exception:
        return lambda: plugin
    return lambda: copy.deepcopy(kept)


class _BrokenClusterAnswer(Exception):  # noqa: N818  used in this module only
    """An answer that ends the checks of one situation."""


class FleetCheck:
    """One plugin in one situation. `acted` gets the methods that had a say."""

    def __init__(
        self, plugin: Any, twin: Any, fresh: Callable[[], Any], situation: RandomFleet, acted: set[str]
    ) -> None:
        self._plugin, self._twin, self._fresh, self._situation, self._acted = plugin, twin, fresh, situation, acted
        self._name, self._placement = type(plugin).__name__, situation.placement

    def problems(self) -> Iterator[FleetProblem]:
        clusters = self._situation.view()
        before = _picture(clusters.fleet.table)
        try:
            yield from self._answers(clusters)
        except _BrokenClusterAnswer as broken:
            yield broken.args
        after = _picture(clusters.fleet.table)
        changed = [what for what, was in before.items() if after.get(what) != was]
        if changed:
            yield "it changed what it was shown", ", ".join(changed)

    def _answers(self, clusters: Clusters) -> Iterator[FleetProblem]:
        left = clusters
        if hasattr(self._plugin, "filter"):
            yield from self._filter_problems(clusters)
            verdicts = self._filtered(clusters)
            left = _only(clusters, [name for name, reason in verdicts.items() if reason is None])
        if hasattr(self._plugin, "score") and len(left):
            yield from self._score_problems(left)
        if hasattr(self._plugin, "changes_at"):
            enabled: EnabledPlugin[Any] = EnabledPlugin(self._name, self._plugin)
            self._guarded("changes_at", lambda: call_changes_at(enabled, self._placement, clusters))

    def _filter_problems(self, clusters: Clusters) -> Iterator[FleetProblem]:
        expected, less = self._filtered(clusters), clusters.where(np.arange(len(clusters)) % 2 == 0)
        if any(reason is not None for reason in expected.values()):
            self._acted.add("filter")
        yield from _differ("filter gives two answers to one question", self._filtered(clusters), expected)
        yield from _differ(
            "filter remembers what it was asked before", self._filtered(clusters, self._fresh()), expected
        )
        yield from _differ("filter depends on which other clusters it is asked about", self._filtered(less), expected)
        turned = _only(self._situation.reversed().view(), expected)
        yield from _differ("filter depends on the order of rows", self._filtered(turned), expected)
        if hasattr(self._twin, "fits"):
            yield from _differ(
                "filter and its twin's fits disagree", self._filtered(clusters, TwinOfClusters(self._twin)), expected
            )

    def _score_problems(self, clusters: Clusters) -> Iterator[FleetProblem]:
        expected = self._scored(clusters)
        if len(set(expected.values())) > 1:
            self._acted.add("score")
        yield from _differ("score gives two answers to one question", self._scored(clusters), expected)
        yield from _differ("score remembers what it was asked before", self._scored(clusters, self._fresh()), expected)
        turned = _only(self._situation.reversed().view(), expected)
        yield from _differ("score depends on the order of rows", self._scored(turned), expected)
        if hasattr(self._twin, "rate") and None not in expected.values():
            yield from _differ(
                "score and its twin's rate disagree", self._scored(clusters, TwinOfClusters(self._twin)), expected
            )

    # -- calling the plugin

    def _filtered(self, clusters: Clusters, plugin: Any = None) -> ClusterAnswers:
        """Return the reason against each cluster, None for those that are kept; or what is wrong with the placement."""
        enabled: EnabledPlugin[Any] = EnabledPlugin(self._name, plugin or self._plugin)
        found = self._guarded("filter", lambda: call_cluster_filter(enabled, self._placement, clusters))
        if isinstance(found, Misconfigured):
            return dict.fromkeys(clusters.names, found)
        reasons = [tuple(each.reason for each in found.rejects if each.rows[at]) for at in range(len(clusters))]
        return {name: reason or None for name, reason in zip(clusters.names, reasons, strict=True)}

    def _scored(self, clusters: Clusters, plugin: Any = None) -> ClusterAnswers:
        enabled: EnabledPlugin[Any] = EnabledPlugin(self._name, plugin or self._plugin)
        found = self._guarded("score", lambda: call_cluster_score(enabled, self._placement, clusters))
        if isinstance(found, Misconfigured):
            return dict.fromkeys(clusters.names, found)
        present = [True] * len(clusters) if found.present is None else found.present.tolist()
        scores = zip(clusters.names, found.values.tolist(), present, strict=True)
        return {name: score if there else None for name, score, there in scores}

    @staticmethod
    def _guarded(method: str, run: Callable[[], Answer]) -> Answer:
        try:
            return run()
        except PluginError as error:
            raise _BrokenClusterAnswer(f"{method} fails", error.problem) from error


class TwinOfClusters:
    """A version that looks at one cluster at a time, with the methods of a plugin."""

    def __init__(self, twin: Any) -> None:
        self._twin = twin

    def filter(self, placement: Any, clusters: Any) -> Any:
        return filter_each(self._twin, placement, clusters)

    def score(self, placement: Any, clusters: Any) -> Any:
        return score_each(self._twin, placement, clusters)


def _differ(what: str, found: ClusterAnswers, expected: ClusterAnswers) -> Iterator[FleetProblem]:
    """Yield a problem for the first cluster with another answer than before."""
    for name, answer in found.items():
        if answer != expected[name]:
            yield what, f"cluster {name} gets {expected[name]}, and then {answer}"
            return


def _only(clusters: Clusters, names: Collection[str]) -> Clusters:
    return clusters.where(np.array([name in names for name in clusters.names], np.bool_))


def _picture(table: Fleet) -> Mapping[str, Any]:
    """Return what the columns hold, to compare it later."""
    columns = {"taints": table.taint_code, "decisions": table.decided, "available": table.available}
    return {
        **{name: column.tobytes() for name, column in columns.items()},
        "clusters": [each for each in table.clusters if each is not None],
        "versions": dict(table.versions),
        "scores": table.scores_version,
    }
