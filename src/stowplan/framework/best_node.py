"""The choice of a node by totals that are kept from one pod of a shape to the next.

Scores that plugins give row by row are kept by row, and their sums with them (`answer_cache`). Other scores are kept as
long as no node object changes and the same nodes are feasible, if the plugin declares that this is right
(`scores_by_node`); while all nodes are feasible, pods that differ in their requests alone share them (`node_scores`).
The rest is asked for each pod; if all of these give every node the same, the best rows are found without a look at all
nodes (`best_rows`).

Where a filter or such a score must be asked about each pod, too, only the kept totals of the nodes that are left are
needed (`SiftedChoice`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.columns.nodes.answer_cache import TOTAL, VERDICT, CachedAnswers
from stowplan.columns.nodes.best_rows import LOWEST, BestRows
from stowplan.columns.nodes.table import NodeTable
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import FEASIBLE
from stowplan.framework.filtering import SiftedNodes
from stowplan.framework.interfaces import ScorePlugin
from stowplan.framework.node_order import NodeOrder
from stowplan.framework.plugin_calls import call_score
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.framework.ranking import Draw, add_weighted
from stowplan.framework.unread_trail import KeptScores, RejectedLater, UnreadTrail
from stowplan.objects.pods import Pod

Scored: TypeAlias = Mapping[str, Any]  # by plugin: one number for all feasible nodes, one for each, or None


class KeptRanking:
    """What the scores that are not kept by row add to the totals of a shape's answers.

    live     all rows, when this was made; `rows` are the feasible ones
    scores   by plugin, in the profile's order; None: kept by row
    columns  the columns among them
    sums     what these add up to, over all rows; None: there are none
    asked    the plugins to ask for each pod
    """

    __slots__ = ("_feasible_set", "_node_clock", "asked", "columns", "live", "rows", "scores", "sums")

    def __init__(self, pod: Pod, cluster: Cluster, profile: Profile, answers: CachedAnswers) -> None:
        table = cluster.state.table
        self.live, self._node_clock, self._feasible_set = table.live_rows(), table.node_clock, answers.feasible_set
        verdicts = cluster.nodes.pick(answers.columns[VERDICT])
        is_feasible = verdicts == FEASIBLE
        self.rows: Rows = self.live if is_feasible.all() else self.live[is_feasible]
        self.scores: KeptScores = {}
        self.columns: list[Any] = []
        self.sums: Any = None
        asked: list[EnabledPlugin[ScorePlugin]] = []
        nodes, known, by_row = self.nodes(cluster), self._known(pod, cluster, profile), answers.columns
        for enabled in profile.scorers if len(self.rows) else ():
            name = enabled.name
            if name in by_row:
                self.scores[name] = (enabled.weight, None)
            elif name in profile.unsized_scorers:
                if name not in known:
                    known[name] = scored(enabled, pod, nodes, profile)
                self._add(enabled, known[name], table.capacity, profile)
            elif name in profile.node_scorers:
                self._add(enabled, scored(enabled, pod, nodes, profile), table.capacity, profile)
            else:
                asked.append(enabled)
        self.asked = tuple(asked)

    def _known(self, pod: Pod, cluster: Cluster, profile: Profile) -> dict[str, Any]:
        """What plugins that ignore requests said of a pod like this one. It holds where all nodes are feasible."""
        unsized = pod.shape.unsized
        if unsized is None or self.rows is not self.live:
            return {}
        return cluster.state.node_scores.of((profile, unsized.key), cluster.state.table)

    def _add(self, enabled: EnabledPlugin[ScorePlugin], found: Any, capacity: int, profile: Profile) -> None:
        if found is None:
            return
        if not isinstance(found, int):
            column = np.zeros(capacity, np.uint8)
            column[self.rows] = found
            self.sums = np.zeros(capacity, profile.totals_type) if self.sums is None else self.sums
            self.sums[self.rows] += np.multiply(found, enabled.weight, dtype=profile.totals_type)
            self.columns.append(column)
            found = column
        self.scores[enabled.name] = (enabled.weight, found)

    def holds(self, state: ClusterState, answers: CachedAnswers) -> bool:
        """True while no node object changes and the same nodes are feasible."""
        table = state.table
        return (
            self._feasible_set == answers.feasible_set
            and self._node_clock == table.node_clock
            and self.live is table.live_rows()
        )

    def same_ranks(self, other: KeptRanking | None) -> bool:
        """True if rows that were ranked by the other one need not be ranked again."""
        return other is not None and other.live is self.live and other.sums is None and self.sums is None

    @property
    def nbytes(self) -> int:
        """The bytes that it has besides what it shares."""
        own = [*self.columns] if self.sums is None else [*self.columns, self.sums]
        own += [] if self.rows is self.live else [self.rows]
        return sum(int(each.nbytes) for each in own)

    def nodes(self, cluster: Cluster) -> Nodes:
        """Return the feasible nodes."""
        if self.rows is self.live:
            return cluster.nodes
        return Nodes(cluster.state, self.rows, False, cluster)

    def rank(self, row: int, total: int) -> int:
        return total if self.sums is None else total + int(self.sums[row])

    def ranks(self, answers: CachedAnswers, gapless: bool) -> Any:
        """Return the feasible rows' sums of kept scores."""
        totals = answers.columns.get(TOTAL)
        if totals is None:
            totals = np.zeros(len(answers.columns[VERDICT]), np.int32)
        if self.rows is self.live and gapless:
            size = len(self.rows)
            return totals[:size] if self.sums is None else totals[:size] + self.sums[:size]
        return totals.take(self.rows) if self.sums is None else totals.take(self.rows) + self.sums.take(self.rows)


class KeptChoice:
    """One pod's choice of a node. `scores` has what plugins answered that had to be asked about this pod."""

    __slots__ = ("_answers", "_cluster", "_ranking", "same_for_all", "scores")

    def __init__(self, pod: Pod, cluster: Cluster, profile: Profile, answers: CachedAnswers) -> None:
        self._answers, self._cluster = answers, cluster
        ranking: KeptRanking | None = answers.ranking
        if ranking is None or not ranking.holds(cluster.state, answers):
            ranking = KeptRanking(pod, cluster, profile, answers)
            if not ranking.same_ranks(answers.ranking):
                answers.best_rows = None
            answers.ranking = ranking
            if ranking.nbytes:
                cluster.state.answer_cache.keep(answers.key, answers)
        self._ranking = ranking
        self.scores: dict[str, Any] = {}
        self.same_for_all = True  # they give every node the same, so that kept ranks tell the best nodes
        nodes = ranking.nodes(cluster) if ranking.asked else cluster.nodes
        for enabled in ranking.asked:
            found = self.scores[enabled.name] = scored(enabled, pod, nodes, profile)
            if not (found is None or isinstance(found, int)):
                self.same_for_all = False
                break

    def known(self) -> Scored:
        """What plugins said of the feasible nodes so far, to which totals have to be added up."""
        kept = {name: score for name, (_, score) in self._ranking.scores.items() if score is not None}
        rows = self._ranking.rows
        return {**{name: _of_rows(score, rows) for name, score in kept.items()}, **self.scores}

    def row(self, generator: Draw | None) -> int | None:
        """Return one of the best rows, as `ranking.choose` does."""
        answers, ranking = self._answers, self._ranking
        if not len(ranking.rows):
            return None
        if answers.fresh:
            answers.fresh = False  # a pod like this one may never come again: the blocks are made for the second one
            table = self._cluster.state.table
            return _best_of(ranking.rows, ranking.ranks(answers, table.gapless), generator, table)
        if answers.best_rows is None:
            self._rank_all()
        best_rows = answers.best_rows
        assert best_rows is not None
        if isinstance(generator, NodeOrder):
            return generator.first_row(self._cluster.state.table, best_rows.rows())
        return best_rows.row(0 if generator is None else _drawn(generator, best_rows.number))

    def _rank_all(self) -> None:
        answers, ranking, table = self._answers, self._ranking, self._cluster.state.table
        feasible = ranking.ranks(answers, table.gapless)
        ranks = np.full(table.size, LOWEST, feasible.dtype)
        ranks[ranking.rows] = feasible
        answers.best_rows = BestRows(ranks)
        self._cluster.state.answer_cache.keep(answers.key, answers)

    def trail(self, profile: Profile) -> UnreadTrail:
        """Return the trail of the decision, to be filled in when it is read."""
        scores = self._ranking.scores
        found = {name: score for name, score in self.scores.items() if score is not None}
        if found:
            every = {each.name: (each.weight, found[each.name]) for each in profile.scorers if each.name in found}
            merged = {**scores, **every}
            scores = {each.name: merged[each.name] for each in profile.scorers if each.name in merged}
        answers, names = self._answers, self._cluster.state.table.live_names()
        return UnreadTrail(names, answers.history, answers.verdict_codes.verdicts, scores, self._ranking.columns)


class SiftedChoice:
    """One pod's choice of a node where a filter, or a score that differs between nodes, must be asked about it.

    Of the nodes that are left, the kept totals and the scores that were asked add up to the ranks. `known`: scores of
    these nodes that were asked before.
    """

    __slots__ = ("_cluster", "_nodes", "_sifted", "_weighted", "scores")

    def __init__(self, pod: Pod, cluster: Cluster, profile: Profile, sifted: SiftedNodes, known: Scored) -> None:
        self._cluster, self._sifted, self._nodes = cluster, sifted, sifted.feasible()
        self.scores: KeptScores = {}
        self._weighted: list[tuple[int, Any]] = []  # scores that differ between nodes, with their weights
        by_row = sifted.answers.columns
        for enabled in profile.scorers if len(self._nodes) else ():
            name = enabled.name
            if name in by_row:
                self.scores[name] = (enabled.weight, None)
                continue
            found = known[name] if name in known else scored(enabled, pod, self._nodes, profile)
            if found is not None:
                self.scores[name] = (enabled.weight, found)
                if not isinstance(found, int):
                    self._weighted.append((enabled.weight, found))

    def row(self, generator: Draw | None, profile: Profile) -> int | None:
        """Return one of the best rows, as `ranking.choose` does; None if no node is left."""
        rows = self._nodes.rows
        if not len(rows):
            return None
        return _best_of(rows, self._ranks(profile), generator, self._cluster.state.table)

    def _ranks(self, profile: Profile) -> Any:
        kept, nodes = self._sifted.answers.columns.get(TOTAL), self._nodes
        if not self._weighted:
            return nodes.pick(kept) if kept is not None else np.zeros(len(nodes), profile.totals_type)
        ranks: Any = nodes.copy_of(kept) if kept is not None else np.zeros(len(nodes), profile.totals_type)
        for weight, found in self._weighted:
            add_weighted(ranks, found, weight)
        return ranks

    def trail(self) -> UnreadTrail:
        """Return the trail of the decision, to be filled in when it is read."""
        answers, codes = self._sifted.answers, self._sifted.codes
        rejected = RejectedLater(codes.verdicts, self._sifted.verdict_of) if codes.verdicts else None
        names, verdicts = self._cluster.state.table.live_names(), answers.verdict_codes.verdicts
        return UnreadTrail(names, answers.history, verdicts, self.scores, rejected=rejected, of_feasible=True)


def scored(enabled: EnabledPlugin[ScorePlugin], pod: Pod, nodes: Nodes, profile: Profile) -> Any:
    """A plugin's scores of these nodes: one number for all, one for each, or None."""
    found = call_score(enabled, pod, nodes)
    if found is None and enabled.name in profile.scored_without_pre_score:
        # Answering "nothing to score" is PreScore's part; with that point switched off kube-scheduler scores 0.
        return 0
    return found


def _best_of(rows: Rows, ranks: Any, generator: Draw | None, table: NodeTable) -> int:
    """Return the row with the highest rank; among several, as `ranking.choose` does."""
    if generator is None:
        return int(rows[int(ranks.argmax())])
    best = (ranks == ranks.max()).nonzero()[0]
    if isinstance(generator, NodeOrder):
        return generator.first_row(table, rows[best])
    return int(rows[best[_drawn(generator, len(best))]])


def _of_rows(score: Any, rows: Rows) -> Any:
    return score if isinstance(score, int) else score.take(rows)


def _drawn(generator: Draw, number: int) -> int:
    return int(generator.integers(number)) if number > 1 else 0
