"""Filters: which nodes are feasible for a pod, and which plugin rejected which of the others.

Each filter is called for the nodes that the filters before it left. Filters whose answer depends on the pod's shape and
the node's row alone come from a cache, where only rows that changed are asked about again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.columns.nodes.answer_cache import COUNT_AFTER, TOTAL, VERDICT, CachedAnswers
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.framework import changed_rows, ranking, what_if
from stowplan.framework.decision import FEASIBLE, UNRESOLVABLE, Verdict
from stowplan.framework.interfaces import FilterPlugin, ScorePlugin
from stowplan.framework.plugin_calls import call, call_filter, call_score
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.framework.verdict_codes import VerdictCodes, Verdicts
from stowplan.framework.what_if import WhatIf
from stowplan.objects.devices import DeviceClass
from stowplan.objects.pods import Pod

MOST_VERDICTS = 256  # a filter that puts numbers into its reasons would fill the cache without end
HIGHEST_USER_PRIORITY = 1_000_000_000  # higher priorities are the system's own
LOCALITY = ("", "pods", "resources", "node")  # from the widest to the narrowest

Filters: TypeAlias = tuple[EnabledPlugin[FilterPlugin], ...]


@dataclass(frozen=True, slots=True)
class SiftedNodes:
    """Which nodes are feasible, found in two steps.

    answers      the kept verdicts of the filters that judge by row
    left         the positions of the nodes that these find feasible; `nodes` is a view of them
    verdict_of   what the other filters said of these; the meaning of the codes is in `codes`
    """

    answers: CachedAnswers
    left: Rows
    nodes: Nodes
    codes: VerdictCodes
    verdict_of: Verdicts

    def feasible(self) -> Nodes:
        if not self.codes.verdicts:
            return self.nodes
        return self.nodes.where((self.verdict_of == FEASIBLE).nonzero()[0])


class NodeFilters:
    """The filters that have something to do for one pod, run on the cluster as it is now: in a trial, say."""

    def __init__(
        self, pod: Pod, state: ClusterState, profile: Profile, notes: dict[str, Any], skipped: Set[str] = frozenset()
    ) -> None:
        self._pod, self._state, self._profile, self._notes = pod, state, profile, notes
        self._filters: Filters = tuple(enabled for enabled in profile.filters if enabled.name not in skipped)
        self.cached: CachedAnswers | None = None

    def view(self, rows: Rows) -> Nodes:
        """These rows as they are now: columns that were read before a trial changed them must not be used again."""
        return view(self._state, rows, self._notes)

    # -- what each node's verdict is

    def on_all(self, nodes: Nodes, known: SiftedNodes | None = None) -> tuple[VerdictCodes, Verdicts]:
        """Every node's verdict. `known`: what `sifted` said of the same nodes a moment ago."""
        sifted = known or self.sifted(nodes)
        verdict_of = nodes.copy_of(sifted.answers.columns[VERDICT])
        codes: VerdictCodes = sifted.answers.verdict_codes.copy()
        if sifted.codes.verdicts:
            numbers = np.array([*map(codes.number, sifted.codes.verdicts), FEASIBLE], np.int32)
            verdict_of[sifted.left] = numbers[sifted.verdict_of]
        return codes, verdict_of

    def sifted(self, nodes: Nodes) -> SiftedNodes:
        """Ask the leading filters that judge by row, whose answers are kept, and the others about the nodes left."""
        cached_filters = self._by_row()
        answers = self._refreshed(cached_filters)
        feasible = nodes.pick(answers.columns[VERDICT]) == FEASIBLE
        whole = feasible.all()
        left = nodes.positions_of_all() if whole else feasible.nonzero()[0]
        asked, codes = nodes if whole else self.view(nodes.rows[left]), VerdictCodes()
        verdict_of = self._run(asked, self._filters[len(cached_filters) :], codes)
        return SiftedNodes(answers, left, asked, codes, verdict_of)

    def on_named(self, nodes: Nodes, names: frozenset[str], limited_by: list[str]) -> tuple[VerdictCodes, Verdicts]:
        """Every node's verdict, if pre-filters limited the search to these names: they reject all other nodes."""
        codes = VerdictCodes()
        reason = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(limited_by))}]"
        verdict_of = np.full(len(nodes), codes.number(Verdict("", UNRESOLVABLE, (reason,))), np.int32)
        named = np.array(sorted(at for name in names if (at := nodes.position(name)) is not None), np.int64)
        verdict_of[named] = self._run(self.view(nodes.rows[named]), self._filters, codes)
        return codes, verdict_of

    def on_rows(self, rows: Rows) -> list[Verdict | None]:
        """The verdict on each of these rows as things stand now; None: feasible."""
        nodes, codes = self.view(rows), VerdictCodes()
        verdict_of = self._run(nodes, self._filters, codes)
        for at, verdict in self.beside_nominated(nodes):
            verdict_of[at] = codes.number(verdict)
        return [None if number == FEASIBLE else codes.verdicts[number] for number in verdict_of.tolist()]

    def beside_nominated(self, nodes: Nodes) -> Iterator[tuple[int, Verdict]]:
        """The nodes where the pod does not fit beside the pods nominated there, with their verdicts.

        Nominated pods of equal or higher priority count; the pod's own companions do not.
        """
        names = self._state.nominated_pods.by_node
        # A look at a few nodes must not cost a look at all that pods are nominated to. A trial drops a pod with its
        # companions on other nodes, and adds them again.
        few = len(nodes) < len(names)
        for name in [name for name in nodes.names if name in names] if few else list(names):
            others = self.rivals(name)
            at = nodes.position(name) if others else None
            if at is None:
                continue
            with self._state.trial() as trial:
                for other in others:
                    trial.add_pod(other, name, as_extension=True)
                codes = VerdictCodes()
                beside = self._run(self.view(nodes.rows[at : at + 1]), self._filters, codes)
            if beside[0] != FEASIBLE:
                yield at, codes.verdicts[int(beside[0])]

    def rivals(self, node_name: str) -> list[Pod]:
        """The pods nominated to a node beside which the pod must fit there."""
        nominated, uid = self._state.nominated_pods, self._pod.uid
        preempts = self._pod.spec.preemption_policy != "Never" or self._pod.priority > HIGHEST_USER_PRIORITY
        firm = () if preempts else nominated.firm
        pods = nominated.by_node.get(node_name, {})
        rivals = (other for other in pods.values() if other.priority >= self._pod.priority or other.uid in firm)
        others = [other for other in rivals if other.uid != uid and other.uid not in self._state.pods]
        if nominated.owner_of:
            owners = nominated.owner_of
            others = [other for other in others if other.uid not in owners or owners[other.uid].uid != uid]
        return others

    def what_if(self) -> WhatIf | None:
        """Many what-ifs at once, one for each node; None if a filter has no form for that."""
        if not all(map(what_if.has_form, self._filters)):
            return None
        row_of = self._state.table.row_of
        found = ((name, self.rivals(name)) for name in list(self._state.nominated_pods.by_node))
        rivals = {row_of[name]: others for name, others in found if others and name in row_of}
        return WhatIf(self._pod, self._state, self._filters, self._notes, rivals)

    def locality(self) -> str:
        """The most that any filter looks at: "node", "resources" or "pods" of one node, or "" for more."""
        marks = (getattr(enabled.plugin, "local", "") for enabled in self._filters)
        known = (mark if mark in LOCALITY else "" for mark in marks)
        return min(known, key=LOCALITY.index, default="node")

    # -- calling filters

    def _run(self, nodes: Nodes, filters: Iterable[EnabledPlugin[FilterPlugin]], codes: VerdictCodes) -> Verdicts:
        return codes.ask_in_order(filters, nodes, lambda enabled, left: call_filter(enabled, self._pod, left))

    def _by_row(self) -> Filters:
        """The filters up to the first one whose answer needs more than the pod's shape and the node's row."""
        declared = self._profile.filters_by_row
        for at, enabled in enumerate(self._filters):
            by_row = declared[enabled.name]
            if by_row is not True and not (call(enabled, by_row, self._pod) if callable(by_row) else by_row):
                return self._filters[:at]
        return self._filters

    def kept(self) -> CachedAnswers | None:
        """The kept answers, if every filter judges by row; the others would have to be asked about all nodes.

        A pod with volumes has none: it shares answers with pods whose volumes differ, but not what scores add to them.
        """
        if self._pod.shape.bare is not None:
            return None
        filters = self._by_row()
        return self._refreshed(filters) if len(filters) == len(self._filters) else None

    def _refreshed(self, filters: Filters) -> CachedAnswers:
        """The cached verdicts of these filters, and scores of plugins that score by row, with all rows up to date."""
        table, cache = self._state.table, self._state.answer_cache
        if self.cached is not None and self.cached.clock == table.clock:
            return self.cached  # `kept` asked for the same
        shape = self._pod.shape
        alike = shape.key if shape.bare is None or not self._profile.ignores_volumes else shape.bare.key
        names = tuple([enabled.name for enabled in filters])
        key = (self._profile, alike, names, self._state.store.version_of(DeviceClass))
        answers = cache.get(key)
        if answers is None or len(answers.verdict_codes.verdicts) > MOST_VERDICTS:
            answers = CachedAnswers(VerdictCodes())
        if answers.clock != table.clock or not answers.covers(table.capacity):
            try:
                self._refresh(answers, filters, key)
            except BaseException:
                answers.doubt()  # a plugin raised: some columns know of its row's change, and others do not
                raise
        answers.clock = table.clock
        self.cached = answers
        return answers

    def _refresh(self, answers: CachedAnswers, filters: Filters, key: Hashable) -> None:
        table, covered = self._state.table, answers.covers(self._state.table.capacity)
        if answers.best_rows is not None and answers.ranking.live is not table.live_rows():
            answers.best_rows = None  # nodes came or went
        few = table.few_changed_since(answers.clock) if covered else None
        if few is not None and len(few) <= changed_rows.FEW and answers.row_questions is not None:
            answers.row_questions.refresh(self._pod, self._state, few, answers)
            if answers.uncounted >= COUNT_AFTER:
                self._state.answer_cache.keep(key, answers)
            return
        stale = answers.stale(table, table.capacity)
        answers.best_rows, answers.fresh = None, True
        if not covered or len(stale) == table.live_count:
            answers.begin()
            answers.feasible_set += 1
            self._ask(answers, filters, Cluster(self._state, self._notes).nodes)
        elif len(stale):
            answers.note(stale, len(stale))
            before = answers.columns[VERDICT][stale] == FEASIBLE
            self._ask(answers, filters, self.view(stale))
            answers.feasible_set += bool((before != (answers.columns[VERDICT][stale] == FEASIBLE)).any())
        self._state.answer_cache.keep(key, answers)

    def _ask(self, answers: CachedAnswers, filters: Filters, nodes: Nodes) -> None:
        """Ask the filters and the plugins that score by row about these nodes."""
        rows, capacity = nodes.rows, self._state.table.capacity
        answers.put(VERDICT, rows, self._run(nodes, filters, answers.verdict_codes), capacity)
        scorers: list[EnabledPlugin[ScorePlugin]] = []
        totals: Any = np.zeros(len(rows), self._profile.totals_type)
        for enabled in self._profile.row_scorers:
            score = call_score(enabled, self._pod, nodes)
            if score is not None:
                answers.put(enabled.name, rows, np.asarray(score, np.uint8), capacity)
                ranking.add_weighted(totals, score, enabled.weight)
                scorers.append(enabled)
        if scorers:
            answers.put(TOTAL, rows, totals, capacity)
        answers.row_questions = changed_rows.row_questions(filters, scorers, self._profile)


def view(state: ClusterState, rows: Rows, notes: dict[str, Any]) -> Nodes:
    """A new view of some rows; `notes` are those of the decision."""
    return Nodes(state, rows, False, Cluster(state, notes))
