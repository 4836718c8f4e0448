"""Asking a plugin, and trusting no answer: what raises or has a wrong shape, type or range becomes a PluginError."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.profile import EnabledPlugin
from stowplan.framework.scoring import MAX_SCORE
from stowplan.framework.verdict import Reject
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

Answer = TypeVar("Answer")
UNSIGNED: dict[Any, Any] = {np.dtype(np.int64): np.uint64, np.dtype(np.uint8): np.uint8}  # what scores may be


def ask(bound: EnabledPlugin, method: str, *arguments: Any) -> Any:
    """Call a plugin; whatever it raises becomes a PluginError with its name."""
    try:
        return getattr(bound.plugin, method)(*arguments)
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(bound.name, method, f"{type(error).__name__}: {error}") from error


def expect(bound: EnabledPlugin, point: str, kind: type[Answer], answer: Any) -> Answer | None:
    """An answer of this kind, or None."""
    if answer is not None and not isinstance(answer, kind):
        raise PluginError(bound.name, point, f"answered {answer!r}; {kind.__name__} or None was due")
    return answer


def ask_list(bound: EnabledPlugin, method: str, kind: type[Answer], *arguments: Any) -> list[Answer]:
    """All answers of a plugin that gives several, or None; a generator does its work, and raises, in here."""
    try:
        answers = list(getattr(bound.plugin, method)(*arguments) or ())
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(bound.name, method, f"{type(error).__name__}: {error}") from error
    for answer in answers:
        if not isinstance(answer, kind):
            raise PluginError(bound.name, method, f"answered {answer!r}; only {named(kind)} is right")
    return answers


def named(kind: Any) -> str:
    return " or ".join(each.__name__ for each in getattr(kind, "__args__", (kind,)))


def ask_filter(bound: EnabledPlugin, pod: Pod, nodes: Nodes) -> list[Reject]:
    try:
        return list(bound.plugin.filter(pod, nodes))
    except (Exception, SystemExit) as error:
        raise PluginError(bound.name, "filter", f"{type(error).__name__}: {error}") from error


def checked(bound: EnabledPlugin, reject: Reject, size: int) -> Bools:
    rows = getattr(reject, "rows", None)
    if not isinstance(rows, np.ndarray) or rows.dtype != np.bool_ or rows.shape != (size,):
        found = f"{rows.dtype} of shape {rows.shape}" if isinstance(rows, np.ndarray) else repr(rows)
        raise PluginError(bound.name, "filter", f"rejected rows must be {size} booleans, one per node; found {found}")
    if not isinstance(reject.reason, str):
        raise PluginError(bound.name, "filter", f"a reason must be a text; found {reject.reason!r}")
    helps = reject.resolvable
    if not isinstance(helps, bool | np.bool_) and (
        not isinstance(helps, np.ndarray) or helps.dtype != np.bool_ or helps.shape != (size,)
    ):
        raise PluginError(bound.name, "filter", f"resolvable must be a boolean, or {size} of them; found {helps!r}")
    return rows


def ask_score(bound: EnabledPlugin, pod: Pod, nodes: Nodes) -> Ints | int | None:
    score = ask(bound, "score", pod, nodes)
    if score is None or (type(score) is int and 0 <= score <= MAX_SCORE):
        return score
    if not isinstance(score, np.ndarray) or score.dtype not in UNSIGNED or score.shape != (len(nodes),):
        found = f"{score.dtype} of shape {score.shape}" if isinstance(score, np.ndarray) else repr(score)[:80]
        raise PluginError(bound.name, "score", f"scores must be {len(nodes)} int64, one per node; found {found}")
    if len(score) and int(score.view(UNSIGNED[score.dtype]).max()) > MAX_SCORE:  # below 0 is far above 100 then
        wrong = int(score[(score < 0) | (score > MAX_SCORE)][0])
        raise PluginError(bound.name, "score", f"scores must be within 0 and {MAX_SCORE}; found {wrong}")
    if score.dtype == np.uint8 and score.base is None:
        return score
    return score.astype(np.uint8)  # a copy, since a column itself would change under the trail's feet
