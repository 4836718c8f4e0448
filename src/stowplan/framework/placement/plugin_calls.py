"""Calls of cluster plugins, with every answer checked, as `framework.plugin_calls` does for nodes.

An exception that a plugin raises, and an answer of a wrong shape, type or range, becomes a PluginError that names the
plugin and the method. It ends the decision of one placement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.fleet.views import Clusters
from stowplan.framework.decision import Reject
from stowplan.framework.placement.choice import ClusterScores
from stowplan.framework.placement.interfaces import (
    MAX_CLUSTER_SCORE,
    ChangesAt,
    ClusterFilter,
    Excludes,
    Misconfigured,
    Prioritizer,
    UnfinishedError,
)
from stowplan.framework.plugin_calls import asks, call, call_list, checked_rows, raised, wrong
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.errors import PluginError
from stowplan.objects.placements import Placement
from stowplan.objects.texts import described


@dataclass(frozen=True, slots=True)
class Rejected:
    """What a filter answered; `kept` is None if it rejected nothing."""

    kept: Bools | None
    rejects: tuple[Reject, ...]


NOTHING_REJECTED = Rejected(None, ())
NO_SCORES = ClusterScores(np.zeros(0, np.int64))  # of no clusters


@asks
def call_cluster_filter(
    enabled: EnabledPlugin[ClusterFilter], placement: Placement, clusters: Clusters
) -> Rejected | Misconfigured:
    try:
        answers = tuple(enabled.plugin.filter(placement, clusters) or ())
    except (PluginError, UnfinishedError):
        raise
    except BaseException as error:
        raise raised(enabled, "filter", error) from error
    return _rejected(enabled, answers, len(clusters)) if answers else NOTHING_REJECTED


def call_exclude(enabled: EnabledPlugin[Excludes], placement: Placement, clusters: Clusters) -> Rejected:
    answers = call_list(enabled, enabled.plugin.exclude, Reject, placement, clusters)
    found = _rejected(enabled, tuple(answers), len(clusters))
    assert isinstance(found, Rejected)
    return found


def _rejected(
    enabled: EnabledPlugin[object], answers: tuple[Reject | Misconfigured, ...], size: int
) -> Rejected | Misconfigured:
    rejects, rejected = list[Reject](), None
    for answer in answers:
        if isinstance(answer, Misconfigured):
            return _checked(enabled, "filter", answer)
        rows = checked_rows(enabled, answer, size, "cluster")
        rejected = rows if rejected is None else rejected | rows
        rejects.append(answer)
    if rejected is None or not rejected.any():
        return NOTHING_REJECTED
    return Rejected(~rejected, tuple(rejects))


def _checked(enabled: EnabledPlugin[object], method: str, answer: Misconfigured) -> Misconfigured:
    for each in (answer.message, answer.path, answer.remedy):
        if not isinstance(each, str):
            raise PluginError(enabled.name, method, f"message, path and remedy must be texts; found {described(each)}")
    return answer


def call_cluster_score(
    enabled: EnabledPlugin[Prioritizer], placement: Placement, clusters: Clusters, *, bounded: bool = True
) -> ClusterScores | Misconfigured:
    """The scores; all 0, and none present, if the plugin has no opinion. `bounded`: check their range, too."""
    answer = call(enabled, enabled.plugin.score, placement, clusters)
    size = len(clusters)
    if isinstance(answer, np.ndarray):
        present = None
        if isinstance(answer, np.ma.MaskedArray):
            present, answer = ~np.ma.getmaskarray(answer), answer.filled(0)
        _check_shape(enabled, answer, size)
        if bounded:
            _check_range(enabled, answer)
        return ClusterScores(answer, present)
    if answer is None:
        return ClusterScores(np.zeros(size, np.int64), np.zeros(size, np.bool_))
    if isinstance(answer, Misconfigured):
        return _checked(enabled, "score", answer)
    if type(answer) is not int or not -MAX_CLUSTER_SCORE <= answer <= MAX_CLUSTER_SCORE:
        problem = f"scores must be {size} int64 within {-MAX_CLUSTER_SCORE} and {MAX_CLUSTER_SCORE}"
        raise PluginError(enabled.name, "score", f"{problem}, one per cluster; found {described(answer, 80)}")
    return ClusterScores(np.full(size, answer, np.int64))


def _check_shape(enabled: EnabledPlugin[object], scores: Ints, size: int) -> None:
    if scores.dtype != np.int64 or scores.shape != (size,):
        found = f"{scores.dtype} of shape {scores.shape}"
        raise PluginError(enabled.name, "score", f"scores must be {size} int64, one per cluster; found {found}")


def _check_range(enabled: EnabledPlugin[object], scores: Ints) -> None:
    most = MAX_CLUSTER_SCORE
    wrong_ones = (scores < -most) | (scores > most)
    if wrong_ones.any():
        found = int(scores[wrong_ones][0])
        raise PluginError(enabled.name, "score", f"scores must be within {-most} and {most}; found {found}")


def call_changes_at(enabled: EnabledPlugin[ChangesAt], placement: Placement, clusters: Clusters) -> float:
    """When time alone may change an answer; infinity: never."""
    answer = call(enabled, enabled.plugin.changes_at, placement, clusters)
    if answer is None:
        return math.inf
    if isinstance(answer, bool) or not isinstance(answer, int | float) or math.isnan(answer):
        raise wrong(enabled, enabled.plugin.changes_at, answer, "a moment in seconds or None was due")
    return float(answer)
