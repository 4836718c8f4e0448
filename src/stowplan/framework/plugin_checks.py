"""Checks of the contract of plugins, for any plugin, on small random clusters.

    1  complete     it has a method of an extension point, every `reserve` an `unreserve`, every hint its method
    2  well formed  answers have the right types, one entry per node; scores are int64 within 0 and 100
    3  stable       the same input gives the same output, and the input is not changed
    4  by node      an answer belongs to its node: it does not depend on the order of rows, and a filter's answer not on
                    the other nodes in the call; if declared so, it depends on the node's row alone
    5  its twin     (a version that looks at one node at a time) gives the same answers

`check_plugin(MyPlugin()) == []`: nothing is wrong. A problem names the plugin, the method, what was wrong, the pod, and
the seed that gives the same cluster again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import FEASIBLE, SKIP, Only, RejectPod
from stowplan.framework.extension_points import points_of
from stowplan.framework.filtering import LOCALITY
from stowplan.framework.per_node import filter_each, score_each
from stowplan.framework.plugin_calls import call_filter, call_score
from stowplan.framework.profile import EnabledPlugin, attach_plugin
from stowplan.framework.random_clusters import RandomCluster, draw, same_shape
from stowplan.framework.verdict_codes import VerdictCodes
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

Answers: TypeAlias = dict[str, Any]  # by the name of the node
Problem: TypeAlias = tuple[str, str]  # what is wrong, and an example

ALONE = "depends on other nodes, though the plugin declares that it judges by the row alone"
SHAPE = "depends on more than the pod's shape, though the plugin declares that it judges by the row alone"


def check_plugin(
    plugin: Any,
    *,
    twin: Any = None,
    seed: int = 0,
    clusters: int = 40,
    pods: Sequence[Pod] = (),
    objects: Sequence[Object] = (),
) -> list[str]:
    """Return what is wrong with a plugin (an instance, or a class that needs no arguments).

        assert check_plugin(MyPlugin(), pods=[a_pod(labels={"heavy": "true"})]) == []

    `pods` are used in addition to the random ones, and `objects` are in every cluster, for plugins that need them.
    """
    plugin = plugin() if isinstance(plugin, type) else plugin
    found = dict.fromkeys(_incomplete(plugin), "")
    for number in range(seed, seed + clusters):
        drawn = draw(number)
        for pod in (drawn.pod, *pods):
            situation = replace(drawn, others=tuple(objects), pod=pod)
            for what, example in Check(plugin, twin, situation).problems():
                found.setdefault(what, f": {example} (pod {pod.key}, cluster seed {number})")
    return [f"{type(plugin).__name__}: {what}{example}" for what, example in found.items()]


def _incomplete(plugin: Any) -> Iterator[str]:
    if not points_of(type(plugin)):
        yield "it has no method of any extension point; give it filter or score"
    if hasattr(plugin, "reserve") != hasattr(plugin, "unreserve"):
        yield "reserve and unreserve go together, and it has one of them only"
    if getattr(plugin, "local", "") not in LOCALITY:
        yield f"local is {plugin.local!r}, and may be one of {', '.join(filter(None, LOCALITY))}"
    for wake in plugin.wakes_on() if hasattr(plugin, "wakes_on") else ():
        if wake.hint and not callable(getattr(plugin, wake.hint, None)):
            yield f"wakes_on names the hint {wake.hint!r}, and there is no such method"


class _Broken(Exception):  # noqa: N818  used in this module only
    """An answer that ends the checks of one situation."""


class Check:
    """One plugin in one situation."""

    def __init__(self, plugin: Any, twin: Any, situation: RandomCluster) -> None:
        self._plugin, self._twin, self._situation = plugin, twin, situation
        self._name, self._pod = type(plugin).__name__, situation.pod

    def problems(self) -> Iterator[Problem]:
        state = self._state(self._situation)
        before = picture(state)
        try:
            yield from self._answers(Cluster(state))
        except _Broken as broken:
            yield broken.args
        changed = [what for what, was in before.items() if picture(state).get(what) != was]
        if changed:
            yield "it changed what it was shown", ", ".join(changed)

    def _answers(self, cluster: Cluster) -> Iterator[Problem]:
        filters, left = hasattr(self._plugin, "filter"), cluster.nodes
        if hasattr(self._plugin, "pre_filter"):
            allowed = self._pre_filtered(cluster)
            filters, left = filters and allowed is not None, left if allowed is None else allowed
        if filters and len(left):
            yield from self._filter_problems(left)
            verdicts = self._filtered(left)
            left = _only(left, [name for name, verdict in verdicts.items() if verdict is None])
        if hasattr(self._plugin, "score") and len(left):
            yield from self._score_problems(left)

    def _filter_problems(self, nodes: Nodes) -> Iterator[Problem]:
        expected, less = self._filtered(nodes), nodes.where(np.arange(len(nodes)) % 2 == 0)
        yield from _differ("filter gives two answers to one question", self._filtered(nodes), expected)
        yield from _differ("filter depends on which other nodes it is asked about", self._filtered(less), expected)
        by_row = getattr(self._plugin, "filters_by_row", False)
        by_row = by_row(self._pod) if callable(by_row) else by_row
        alone = by_row or getattr(self._plugin, "local", False)
        yield from self._row_problems("filter", expected, self._filtered, alone)
        if by_row:
            yield from _differ(f"filter {SHAPE}", self._filtered(nodes, pod=same_shape(self._pod)), expected)
        if hasattr(self._twin, "fits"):
            yield from _differ(
                "filter and its twin's fits disagree", self._filtered(nodes, _Twin(self._twin)), expected
            )

    def _score_problems(self, nodes: Nodes) -> Iterator[Problem]:
        expected = self._scored(nodes)
        yield from _differ("score gives two answers to one question", self._scored(nodes), expected)
        by_row = getattr(self._plugin, "scores_by_row", False)
        yield from self._row_problems("score", expected, self._scored, by_row)
        if by_row:
            yield from _differ(f"score {SHAPE}", self._scored(nodes, pod=same_shape(self._pod)), expected)
        if hasattr(self._twin, "rate") and None not in expected.values():
            yield from _differ("score and its twin's rate disagree", self._scored(nodes, _Twin(self._twin)), expected)

    def _row_problems(
        self, method: str, expected: Answers, answer_for: Callable[[Nodes], Answers], alone: bool
    ) -> Iterator[Problem]:
        """Yield a problem if the answer changes with the node's row, or (`alone`) in a cluster of that node only."""
        reversed_nodes = Cluster(self._state(self._situation.reversed())).nodes
        yield from _differ(
            f"{method} depends on the order of rows", answer_for(_only(reversed_nodes, expected)), expected
        )
        for name in expected if alone else ():
            single = Cluster(self._state(self._situation.alone(name))).nodes
            yield from _differ(f"{method} {ALONE}", answer_for(single), expected)

    def _state(self, situation: RandomCluster) -> ClusterState:
        state = situation.state()
        attach_plugin(self._plugin, state)
        return state

    # -- calling the plugin

    def _pre_filtered(self, cluster: Cluster) -> Nodes | None:
        """Return the nodes that the pre-filter leaves; None if the filter has nothing to do."""
        answer = self._guarded("pre_filter", lambda: self._plugin.pre_filter(self._pod, cluster))
        if answer is SKIP:
            return None
        match answer:
            case None:
                return cluster.nodes
            case RejectPod():
                return _only(cluster.nodes, ())
            case Only(names):
                return _only(cluster.nodes, names)
        raise _Broken("pre_filter gives a wrong answer", f"{answer!r}; None, SKIP, Only or RejectPod was due")

    def _filtered(self, nodes: Nodes, plugin: Any = None, *, pod: Pod | None = None) -> Answers:
        enabled, codes = EnabledPlugin(self._name, plugin or self._plugin), VerdictCodes()
        verdict_of, places = np.full(len(nodes), FEASIBLE, np.int32), np.arange(len(nodes))

        def run() -> None:
            codes.enter(enabled, call_filter(enabled, pod or self._pod, nodes), verdict_of, places)

        self._guarded("filter", run)
        verdicts = [None, *((verdict.code, verdict.reasons) for verdict in codes.verdicts)]
        return {name: verdicts[code + 1] for name, code in zip(nodes.names, verdict_of.tolist(), strict=True)}

    def _scored(self, nodes: Nodes, plugin: Any = None, *, pod: Pod | None = None) -> Answers:
        enabled = EnabledPlugin(self._name, plugin or self._plugin)
        scores = self._guarded("score", lambda: call_score(enabled, pod or self._pod, nodes))
        return dict(
            zip(nodes.names, scores.tolist() if isinstance(scores, np.ndarray) else [scores] * len(nodes), strict=True)
        )

    @staticmethod
    def _guarded(method: str, run: Callable[[], Any]) -> Any:
        try:
            return run()
        except PluginError as error:
            raise _Broken(f"{method} fails", error.problem) from error
        except Exception as error:
            raise _Broken(f"{method} fails", f"{type(error).__name__}: {error}") from error


class _Twin:
    """A version that looks at one node at a time, with the methods of a plugin."""

    def __init__(self, twin: Any) -> None:
        self._twin = twin

    def filter(self, pod: Pod, nodes: Nodes) -> Any:
        return filter_each(self._twin, pod, nodes)

    def score(self, pod: Pod, nodes: Nodes) -> Any:
        return score_each(self._twin, pod, nodes)


def _differ(what: str, found: Answers, expected: Answers) -> Iterator[Problem]:
    """Yield a problem for the first node with another answer than before."""
    for name, answer in found.items():
        if answer != expected[name]:
            yield what, f"node {name} gets {expected[name]}, and then {answer}"
            return


def _only(nodes: Nodes, names: Collection[str]) -> Nodes:
    return nodes.where(np.array([name in names for name in nodes.names], np.bool_))


def picture(state: ClusterState) -> dict[str, Any]:
    """Return what the columns hold, to compare it later."""
    table = state.table
    groups = {"allocatable": table.allocatable, "requested": table.requested, "presumed": table.presumed}
    columns: dict[str, Any] = {
        f"{group} {name}": column for group, each in groups.items() for name, column in each.items()
    }
    columns |= {f"label {key}": column.codes for key, column in table.labels.items()}
    columns |= {"taints": table.taint_code, "features": table.feature_code, "unschedulable": table.unschedulable}
    return {
        **{name: column.tobytes() for name, column in columns.items()},
        "pods": [{uid: each.pod for uid, each in pods.items()} for pods in state.pods_on],
        "uses": {use: tally.items() for use, tally in state.uses.tallies.items()},
        "objects": state.store.version,
        "the clock of changes": table.clock,
    }
