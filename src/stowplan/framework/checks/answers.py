"""The answers of one plugin's pre_filter, filter and score in one situation, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.framework import cause_calls
from stowplan.framework.checks.called_plugin import Answers, BrokenAnswer, CalledPlugin, Problem, Twin, differ, only
from stowplan.framework.checks.lines import LinesRun
from stowplan.framework.checks.says import Says
from stowplan.framework.decision import FEASIBLE, SKIP, Only, RejectPod
from stowplan.framework.plugin_calls import call_filter, call_score
from stowplan.framework.profile import EnabledPlugin, attach_plugin
from stowplan.framework.random_clusters import RandomCluster, same_shape, without_requests
from stowplan.framework.verdict_codes import VerdictCodes
from stowplan.objects.pods import Pod

ALONE = "depends on other nodes, though the plugin declares that it judges by the row alone"
PODS = "depends on the pods on nodes, though the plugin declares that it looks at node objects alone (scores_by_node)"
REQUESTS = "depends on what the pod requests, though the plugin declares that it ignores requests (ignores_requests)"
SHAPE = "depends on more than the pod's shape, though the plugin declares that it judges by the row alone"


class Asked(CalledPlugin):
    """A node plugin in one situation."""

    def __init__(self, plugin: Any, situation: RandomCluster, says: Says, lines: LinesRun) -> None:
        super().__init__(plugin, says, lines)
        self.situation, self.pod = situation, situation.pod

    def state(self, situation: RandomCluster | None = None) -> ClusterState:
        state = (situation or self.situation).state()
        attach_plugin(self.plugin, state)
        return state

    # -- filter and score, node by node

    def filtered(self, nodes: Nodes, plugin: Any = None, *, pod: Pod | None = None) -> Answers:
        enabled, codes = EnabledPlugin(self.name, plugin or self.plugin), VerdictCodes()
        verdict_of, places = np.full(len(nodes), FEASIBLE, np.int32), np.arange(len(nodes))

        def run() -> None:
            codes.enter(enabled, call_filter(enabled, pod or self.pod, nodes), verdict_of, places)

        self.ask("filter", run)
        self.says.note("filter", plugin is None and bool((verdict_of != FEASIBLE).any()))
        verdicts = [None, *((verdict.code, verdict.reasons) for verdict in codes.verdicts)]
        return {name: verdicts[code + 1] for name, code in zip(nodes.names, verdict_of.tolist(), strict=True)}

    def scored(self, nodes: Nodes, plugin: Any = None, *, pod: Pod | None = None) -> Answers:
        enabled = EnabledPlugin(self.name, plugin or self.plugin)
        scores = self.ask("score", lambda: call_score(enabled, pod or self.pod, nodes))
        each = scores.tolist() if isinstance(scores, np.ndarray) else [scores] * len(nodes)
        self.says.note("score", plugin is None and len(set(each)) > 1)
        return dict(zip(nodes.names, each, strict=True))

    def feasible(self, nodes: Nodes) -> Nodes:
        """Return the nodes that the plugin's own filters leave."""
        filters, left = self.has("filter"), nodes
        if self.has("pre_filter"):
            allowed = self.pre_filtered(nodes.cluster)
            filters, left = filters and allowed is not None, left if allowed is None else allowed
        if filters and len(left):
            verdicts = self.filtered(left)
            left = only(left, [name for name, verdict in verdicts.items() if verdict is None])
        return left

    def pre_filtered(self, cluster: Cluster) -> Nodes | None:
        """Return the nodes that the pre-filter leaves; None if the filter has nothing to do."""
        answer = self.ask("pre_filter", lambda: self.plugin.pre_filter(self.pod, cluster))
        self.says.note("pre_filter", answer is not None)
        if answer is SKIP:
            return None
        match answer:
            case None:
                return cluster.nodes
            case RejectPod():
                self.check_pod_causes("pre_filter", cluster)
                return only(cluster.nodes, ())
            case Only(names):
                return only(cluster.nodes, names)
        raise BrokenAnswer("pre_filter gives a wrong answer", f"{answer!r}; None, SKIP, Only or RejectPod was due")

    def check_pod_causes(self, rejected_by: str, cluster: Cluster) -> None:
        """Raise BrokenAnswer if the plugin names no cause, or a wrong one, for a pod that its method rejected."""
        if not self.has("pod_causes"):
            return
        enabled = EnabledPlugin(self.name, self.plugin)
        if not self.ask("pod_causes", lambda: cause_calls.named_pod_causes(enabled, self.pod, cluster)):
            raise BrokenAnswer(f"pod_causes names none for a pod that {rejected_by} rejected", "at least one was due")

    def _cause_problems(self, nodes: Nodes, verdicts: Answers) -> Iterator[Problem]:
        """Yield a problem if a node that the filter rejected has no cause, or another one when asked again."""
        rejected = only(nodes, [name for name, verdict in verdicts.items() if verdict is not None])
        if not self.has("causes") or not len(rejected):
            return
        enabled = EnabledPlugin(self.name, self.plugin)
        answers = []
        for _ in range(2):
            found = self.ask("causes", lambda: cause_calls.named_causes(enabled, self.pod, rejected))
            left = cause_calls.unnamed(found, len(rejected))
            if left.any():
                nameless = rejected.where(left).names[0]
                yield "causes names none for a node that filter rejected", f"node {nameless} has none"
                return
            answers.append([(each.cause, each.rows.tolist()) for each in found])
        if answers[0] != answers[1]:
            yield "causes gives two answers to one question", f"{answers[0]!r}, and then {answers[1]!r}"

    def problems_of_answers(self, twin: Any) -> Iterator[Problem]:
        """Yield what is wrong with the answers for nodes, and with what the plugin did to the cluster meanwhile."""
        state = self.state()
        before, labels = picture(state), dict(self.pod.labels)
        try:
            yield from self._answers(Cluster(state), twin)
        except BrokenAnswer as broken:
            yield broken.args
        changed = [what for what, was in before.items() if picture(state).get(what) != was]
        if self.pod.labels != labels:
            changed.append("the pod's labels, which it shares with other pods")
        if changed:
            yield "it changed what it was shown", ", ".join(changed)

    def _answers(self, cluster: Cluster, twin: Any) -> Iterator[Problem]:
        filters, left = self.has("filter"), cluster.nodes
        if self.has("pre_filter"):
            yield from self._pre_filter_problems(cluster)
            allowed = self.pre_filtered(cluster)
            filters, left = filters and allowed is not None, left if allowed is None else allowed
        if filters and len(left):
            yield from self._filter_problems(left, twin)
            verdicts = self.filtered(left)
            yield from self._cause_problems(left, verdicts)
            left = only(left, [name for name, verdict in verdicts.items() if verdict is None])
        if self.has("score") and len(left):
            yield from self._score_problems(left, twin)

    def _pre_filter_problems(self, cluster: Cluster) -> Iterator[Problem]:
        by_shape = getattr(self.plugin, "pre_filters_by_shape", False)
        if not self.ignores_requests or not (by_shape(self.pod) if callable(by_shape) else by_shape):
            return
        skips, unsized_skips = (self._skips(pod, cluster) for pod in (self.pod, without_requests(self.pod)))
        if skips != unsized_skips:
            yield f"pre_filter {REQUESTS}", "SKIP is the answer for the pod, or for one that requests nothing; not both"

    def _skips(self, pod: Pod, cluster: Cluster) -> bool:
        answer = self.ask("pre_filter", lambda: self.plugin.pre_filter(pod, cluster))
        return answer is SKIP

    @property
    def ignores_requests(self) -> bool:
        return bool(getattr(self.plugin, "ignores_requests", False))

    def _filter_problems(self, nodes: Nodes, twin: Any) -> Iterator[Problem]:
        expected, less = self.filtered(nodes), nodes.where(np.arange(len(nodes)) % 2 == 0)
        yield from differ("filter gives two answers to one question", self.filtered(nodes), expected)
        yield from differ("filter depends on which other nodes it is asked about", self.filtered(less), expected)
        by_row = getattr(self.plugin, "filters_by_row", False)
        by_row = by_row(self.pod) if callable(by_row) else by_row
        alone = by_row or getattr(self.plugin, "local", False)
        yield from self._row_problems("filter", expected, self.filtered, alone)
        if by_row:
            yield from differ(f"filter {SHAPE}", self.filtered(nodes, pod=same_shape(self.pod)), expected)
        if hasattr(self.plugin, "fits"):
            yield from differ("filter and fits disagree", self.filtered(nodes, Twin(self.plugin)), expected)
        if hasattr(twin, "fits"):
            yield from differ("filter and its twin's fits disagree", self.filtered(nodes, Twin(twin)), expected)

    def _score_problems(self, nodes: Nodes, twin: Any) -> Iterator[Problem]:
        expected = self.scored(nodes)
        yield from differ("score gives two answers to one question", self.scored(nodes), expected)
        by_row = getattr(self.plugin, "scores_by_row", False)
        yield from self._row_problems("score", expected, self.scored, by_row)
        if by_row:
            yield from differ(f"score {SHAPE}", self.scored(nodes, pod=same_shape(self.pod)), expected)
        if getattr(self.plugin, "scores_by_node", False):
            empty = self._pre_filtered_cluster(self.situation.without_pods()).nodes
            yield from differ(f"score {PODS}", self.scored(only(empty, expected)), expected)
            other = self.scored(nodes, pod=same_shape(self.pod))
            yield from differ("score depends on more than the pod's shape, in spite of scores_by_node", other, expected)
            if self.ignores_requests:
                unsized = self.scored(nodes, pod=without_requests(self.pod))
                yield from differ(f"score {REQUESTS}", unsized, expected)
        if hasattr(self.plugin, "rate") and None not in expected.values():
            yield from differ("score and rate disagree", self.scored(nodes, Twin(self.plugin)), expected)
        if hasattr(twin, "rate") and None not in expected.values():
            yield from differ("score and its twin's rate disagree", self.scored(nodes, Twin(twin)), expected)

    def _row_problems(
        self, method: str, expected: Answers, answer_for: Callable[[Nodes], Answers], alone: bool
    ) -> Iterator[Problem]:
        """Yield a problem if the answer changes with the node's row, or (`alone`) in a cluster of that node only."""
        reversed_nodes = self._pre_filtered_cluster(self.situation.reversed()).nodes
        yield from differ(
            f"{method} depends on the order of rows", answer_for(only(reversed_nodes, expected)), expected
        )
        for name in expected if alone else ():
            single = self._pre_filtered_cluster(self.situation.alone(name)).nodes
            yield from differ(f"{method} {ALONE}", answer_for(single), expected)

    def _pre_filtered_cluster(self, situation: RandomCluster) -> Cluster:
        """Return another cluster, with the notes that the plugin's pre-filter makes there."""
        cluster = Cluster(self.state(situation))
        if self.has("pre_filter"):
            self.ask("pre_filter", lambda: self.plugin.pre_filter(self.pod, cluster))
        return cluster


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
        "pods": [{uid: (each.pod, dict(each.pod.labels)) for uid, each in pods.items()} for pods in state.pods_on],
        "uses": {use: tally.items() for use, tally in state.uses.tallies.items()},
        "objects": state.store.version,
        "the clock of changes": table.clock,
    }
