"""Scores: which of the feasible nodes is best. Each plugin's score, 0 to 100, counts times its weight."""

from __future__ import annotations

from typing import Protocol, SupportsInt

import numpy as np

from stowplan.columns.arrays import Bytes, Ints
from stowplan.columns.nodes.answer_cache import TOTAL, CachedAnswers
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.decision import FEASIBLE, Trail
from stowplan.framework.extenders import Consultation
from stowplan.framework.node_order import NodeOrder
from stowplan.framework.plugin_calls import call_score
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod


class Draw(Protocol):
    """Where ties are drawn from: a numpy generator, or another one. A `NodeOrder` is asked for the first instead."""

    def integers(self, below: int, /) -> SupportsInt:
        """Return a number from 0 on, below this one."""


def score(
    trail: Trail,
    pod: Pod,
    nodes: Nodes,
    profile: Profile,
    cached: CachedAnswers | None,
    consultation: Consultation | None,
) -> None:
    """Add to the trail every plugin's and extender's scores of the feasible nodes, and the weighted totals."""
    is_feasible = trail.verdict_of == FEASIBLE
    trail.feasible = nodes.positions_of_all() if is_feasible.all() else is_feasible.nonzero()[0]
    if not len(trail.feasible):
        return
    feasible = nodes if len(trail.feasible) == len(nodes) else nodes.where(trail.feasible)
    kept = {} if cached is None else cached.columns
    if TOTAL not in kept:
        trail.totals = np.zeros(len(feasible), np.int64 if consultation else profile.totals_type)
    else:
        trail.totals = feasible.copy_of(kept[TOTAL])
        if consultation:
            trail.totals = trail.totals.astype(np.int64)
    for_all = 0
    for enabled in profile.scorers:
        if enabled.name in kept:
            trail.scores[enabled.name] = (enabled.weight, feasible.copy_of(kept[enabled.name]))
            continue  # it is in the totals
        scores = call_score(enabled, pod, feasible)
        if scores is None and enabled.name in profile.scored_without_pre_score:
            # Answering "nothing to score" is PreScore's part; with that point switched off kube-scheduler scores 0.
            scores = 0
        if scores is None:
            continue
        trail.scores[enabled.name] = (enabled.weight, scores)
        if isinstance(scores, int):
            for_all += scores * enabled.weight
        else:
            add_weighted(trail.totals, scores, enabled.weight)
    if for_all:
        trail.totals += for_all
    if consultation and len(trail.feasible) > 1:
        names = [trail.names[at] for at in trail.feasible.tolist()]
        for name, weight, extender_scores in consultation.scores(names):
            trail.scores[name] = (weight, extender_scores)
            add_weighted(trail.totals, extender_scores, weight)


def choose(trail: Trail, generator: Draw | None) -> str | None:
    """One of the nodes with the highest total, drawn by the generator, or the first one of its order.

    Without a generator it is the first one as they are numbered.
    """
    if not len(trail.feasible):
        return None
    if generator is None:
        return trail.names[int(trail.feasible[int(trail.totals.argmax())])]
    best = (trail.totals == trail.totals.max()).nonzero()[0]
    if isinstance(generator, NodeOrder):
        names = [trail.names[at] for at in trail.feasible[best].tolist()]
        return names[generator.first(names)]
    drawn = int(generator.integers(len(best))) if len(best) > 1 else 0
    return trail.names[int(trail.feasible[int(best[drawn])])]


def add_weighted(totals: Ints, scores: Ints | Bytes | int, weight: int) -> None:
    if weight == 1:
        totals += scores
    elif isinstance(scores, int):
        totals += scores * weight
    else:
        totals += np.multiply(scores, weight, dtype=totals.dtype)  # bytes times a weight would overflow
