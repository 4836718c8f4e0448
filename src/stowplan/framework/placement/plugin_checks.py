"""Checks of the contract of cluster policies, for any policy, on small random fleets.

    1  complete     it has filter or score
    2  well formed  answers have the right types, one entry per cluster; scores are int64 within -100 and 100
    3  stable       the same input gives the same output, whatever was asked before, and the input is not changed
    4  by cluster   an answer belongs to its cluster: it does not depend on the order of rows, and a filter's answer not
                    on the other clusters in the call
    5  its twin     (a version that looks at one cluster at a time) gives the same answers
    6  has a say    each method gave an answer that makes a difference: what never acted was not tried

`check_plugin` (`framework.plugin_checks`) comes here with a cluster policy. A problem names the policy, the method,
what was wrong, the placement, and the seed that gives the same fleet again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from stowplan.columns.fleet.clusters import Fleet
from stowplan.columns.fleet.views import Clusters
from stowplan.framework.checks import called_plugin
from stowplan.framework.checks.called_plugin import Answers, BrokenAnswer, CalledPlugin, Problem, Twin, only
from stowplan.framework.checks.examination import Examination, Examiner
from stowplan.framework.checks.words import words_of
from stowplan.framework.extension_points import CLUSTERS
from stowplan.framework.placement.interfaces import Misconfigured
from stowplan.framework.placement.plugin_calls import call_changes_at, call_cluster_filter, call_cluster_score
from stowplan.framework.placement.random_fleets import RandomFleet, check_objects, draw
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement

differ = partial(called_plugin.differ, one=CLUSTERS.one)


def examine_cluster_policy(
    examiner: Examiner,
    twin: Any,
    seeds: Iterable[int],
    placements: Sequence[Placement],
    objects: Sequence[Object],
    on_fleet: Callable[[], object],
) -> Examination:
    """Check a cluster policy on the fleets of these seeds.

    `placements` are used in addition to the random ones, and `objects` are in every fleet. An object that a fleet has
    no place for is a TypeError.
    """
    check_objects(objects)
    fresh = _copied(examiner.plugin)
    for number, drawn in _fleets(examiner.plugin, twin, seeds):
        for placement in (drawn.placement, *placements):
            situation = replace(drawn.with_objects(objects), placement=placement)
            asked = FleetCheck(examiner, twin, fresh, situation)
            examiner.asked(placement.key, f"fleet seed {number}", asked.problems())
        on_fleet()
    return examiner.examination()


def _fleets(plugin: Any, twin: Any, seeds: Iterable[int]) -> Iterator[tuple[int, RandomFleet]]:
    """Yield each fleet twice, the second time with the words of the policy."""
    words = words_of(plugin, twin)
    for number in seeds:
        yield number, draw(number)
        if words:
            yield number, draw(number, words)


def _copied(plugin: Any) -> Callable[[], Any]:
    """Return a function that makes copies of the plugin as it is now; itself, if it cannot be copied."""
    try:
        kept = copy.deepcopy(plugin)
    except Exception:
        return lambda: plugin
    return lambda: copy.deepcopy(kept)


class FleetCheck(CalledPlugin):
    """A cluster policy in one situation."""

    def __init__(self, examiner: Examiner, twin: Any, fresh: Callable[[], Any], situation: RandomFleet) -> None:
        super().__init__(examiner.plugin, examiner.says, examiner.lines)
        self._twin, self._fresh, self._situation, self._placement = twin, fresh, situation, situation.placement

    def problems(self) -> Iterator[Problem]:
        clusters = self._situation.view()
        before = _picture(clusters.fleet.table)
        try:
            yield from self._answers(clusters)
        except BrokenAnswer as broken:
            yield broken.args
        after = _picture(clusters.fleet.table)
        changed = [what for what, was in before.items() if after.get(what) != was]
        if changed:
            yield "it changed what it was shown", ", ".join(changed)

    def _answers(self, clusters: Clusters) -> Iterator[Problem]:
        left = clusters
        if self.has("filter"):
            yield from self._filter_problems(clusters)
            verdicts = self._filtered(clusters)
            left = only(clusters, [name for name, reason in verdicts.items() if reason is None])
            if self.has("why"):
                yield from self._why_problems(
                    only(clusters, [name for name, it in verdicts.items() if type(it) is tuple])
                )
        if self.has("score") and len(left):
            yield from self._score_problems(left)
        if self.has("changes_at"):
            enabled: EnabledPlugin[Any] = EnabledPlugin(self.name, self.plugin)
            self.ask("changes_at", lambda: call_changes_at(enabled, self._placement, clusters))

    def _filter_problems(self, clusters: Clusters) -> Iterator[Problem]:
        expected, less = self._filtered(clusters), clusters.where(np.arange(len(clusters)) % 2 == 0)
        yield from differ("filter gives two answers to one question", self._filtered(clusters), expected)
        yield from differ(
            "filter remembers what it was asked before", self._filtered(clusters, self._fresh()), expected
        )
        yield from differ("filter depends on which other clusters it is asked about", self._filtered(less), expected)
        turned = only(self._situation.reversed().view(), expected)
        yield from differ("filter depends on the order of rows", self._filtered(turned), expected)
        if hasattr(self._twin, "fits"):
            yield from differ(
                "filter and its twin's fits disagree", self._filtered(clusters, Twin(self._twin)), expected
            )

    def _score_problems(self, clusters: Clusters) -> Iterator[Problem]:
        expected = self._scored(clusters)
        yield from differ("score gives two answers to one question", self._scored(clusters), expected)
        yield from differ("score remembers what it was asked before", self._scored(clusters, self._fresh()), expected)
        turned = only(self._situation.reversed().view(), expected)
        yield from differ("score depends on the order of rows", self._scored(turned), expected)
        if hasattr(self._twin, "rate") and None not in expected.values():
            yield from differ("score and its twin's rate disagree", self._scored(clusters, Twin(self._twin)), expected)

    def _why_problems(self, rejected: Clusters) -> Iterator[Problem]:
        for cluster in rejected:
            answer = self.ask("why", partial(self.plugin.why, self._placement, cluster))
            if not isinstance(answer, str | None):
                yield "why gives a wrong answer", f"{answer!r} for cluster {cluster.name}; a text was due"
                return

    # -- calling the plugin

    def _filtered(self, clusters: Clusters, plugin: Any = None) -> Answers:
        """Return the reason against each cluster, None for those that are kept; or what is wrong with the placement."""
        enabled: EnabledPlugin[Any] = EnabledPlugin(self.name, plugin or self.plugin)
        found = self.ask("filter", lambda: call_cluster_filter(enabled, self._placement, clusters))
        self.says.note("filter", plugin is None and (isinstance(found, Misconfigured) or found.kept is not None))
        if isinstance(found, Misconfigured):
            return dict.fromkeys(clusters.names, found)
        reasons = [tuple(each.reason for each in found.rejects if each.rows[at]) for at in range(len(clusters))]
        return {name: reason or None for name, reason in zip(clusters.names, reasons, strict=True)}

    def _scored(self, clusters: Clusters, plugin: Any = None) -> Answers:
        enabled: EnabledPlugin[Any] = EnabledPlugin(self.name, plugin or self.plugin)
        found = self.ask("score", lambda: call_cluster_score(enabled, self._placement, clusters))
        if isinstance(found, Misconfigured):
            self.says.note("score", plugin is None)
            return dict.fromkeys(clusters.names, found)
        present = [True] * len(clusters) if found.present is None else found.present.tolist()
        each = [score if there else None for score, there in zip(found.values.tolist(), present, strict=True)]
        self.says.note("score", plugin is None and len(set(each)) > 1)
        return dict(zip(clusters.names, each, strict=True))


def _picture(table: Fleet) -> Mapping[str, Any]:
    """Return what the columns hold, to compare it later."""
    columns = {"taints": table.taint_code, "decisions": table.decided, "available": table.available}
    return {
        **{name: column.tobytes() for name, column in columns.items()},
        "clusters": [each for each in table.clusters if each is not None],
        "versions": dict(table.versions),
        "scores": table.scores_version,
    }
