"""Calls of plugins, with every answer checked.

A plugin may be any code. Whatever it raises (`plugin_faults`), and an answer of a wrong shape, type or range, becomes a
PluginError that names the plugin, the method, and the line that raised.

Every question to a plugin goes through a function marked with `asks`. Their frames on the stack say what is being asked
now: a watchdog reads them from outside, so that it costs a call nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType, UnionType
from typing import Any, TypeVar, TypeVarTuple, cast

import numpy as np

from stowplan.columns.arrays import Bools, Bytes
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.decision import Reject
from stowplan.framework.declared_kinds import undeclared
from stowplan.framework.extension_points import CALLED
from stowplan.framework.interfaces import FilterPlugin, ScorePlugin
from stowplan.framework.plugin_faults import CallInterrupted, error_place, error_text, is_ctrl_c
from stowplan.framework.profile import EnabledPlugin
from stowplan.framework.scoring import MAX_SCORE
from stowplan.objects.actions import Write
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod
from stowplan.objects.texts import described

Answer = TypeVar("Answer")
Arguments = TypeVarTuple("Arguments")
Asking = TypeVar("Asking", bound=Callable[..., object])
ASKING: set[int] = set()  # the ids of the code of functions that ask plugins; a code object's hash is slow
REJECTS = 'a filter yields Reject, or returns a list of them: yield Reject(mask, "the reason")'
UNSIGNED: dict[Any, Any] = {
    np.dtype(np.int64): np.uint64,
    np.dtype(np.uint8): np.uint8,
}  # the types that scores may have


def asks(function: Asking) -> Asking:
    """Mark a function that asks a plugin: a watchdog knows its frame by its code."""
    ASKING.add(id(cast("FunctionType", function).__code__))
    return function


@asks
def call(enabled: EnabledPlugin[object], method: Callable[[*Arguments], Answer], *arguments: *Arguments) -> Answer:
    """Call a method of an enabled plugin: `call(enabled, enabled.plugin.permit, pod, node_name, cluster)`."""
    try:
        return method(*arguments)
    except PluginError:
        raise
    except BaseException as error:
        raise raised(enabled, method, error) from error


@asks
def call_optional(
    enabled: EnabledPlugin[object],
    method: Callable[[*Arguments], Answer | None],
    kind: type[Answer],
    *arguments: *Arguments,
) -> Answer | None:
    """Call a method that answers with this kind of value, or None."""
    try:
        answer = method(*arguments)
    except PluginError:
        raise
    except BaseException as error:
        raise raised(enabled, method, error) from error
    if answer is not None and not isinstance(answer, kind):
        raise wrong(enabled, method, answer, f"{kind.__name__} or None was due")
    return answer


@asks
def call_list(
    enabled: EnabledPlugin[object],
    method: Callable[[*Arguments], Iterable[Answer] | None],
    kind: type[Answer] | UnionType,
    *arguments: *Arguments,
) -> list[Answer]:
    """Call a method that answers with several values of this kind, or None. A generator runs, and raises, in here."""
    try:
        answers = list(method(*arguments) or ())
    except PluginError:
        raise
    except BaseException as error:
        raise raised(enabled, method, error) from error
    for answer in answers:
        if not isinstance(answer, kind):
            raise wrong(enabled, method, answer, f"only {_name_of(kind)} is right")
    return answers


def call_actions(
    enabled: EnabledPlugin[object],
    method: Callable[[*Arguments], Iterable[Answer] | None],
    kind: type[Answer] | UnionType,
    *arguments: *Arguments,
) -> list[Answer]:
    """Call a method that answers with actions. Writes that the plugin did not declare are an error."""
    actions = call_list(enabled, method, kind, *arguments)
    for action in actions:
        if isinstance(action, Write) and (problem := undeclared(enabled.plugin, action)):
            raise PluginError(enabled.name, method_name(enabled.plugin, method), problem)
    return actions


def seconds_of(enabled: EnabledPlugin[object], attribute: str, otherwise: float | None) -> float | None:
    """A number of seconds that a plugin has as an attribute. `otherwise`: if it has none, or None."""
    try:
        found: object = getattr(enabled.plugin, attribute, None)
    except BaseException as error:  # it may be a property
        raise raised(enabled, attribute, error) from error
    if found is None:
        return otherwise
    if isinstance(found, bool) or not isinstance(found, int | float | np.number) or np.isnan(found):
        raise PluginError(enabled.name, attribute, f"is {described(found)}; a number of seconds is right")
    return float(found)


def raised(enabled: EnabledPlugin[object], method: Callable[..., object] | str, error: BaseException) -> PluginError:
    """What a method raised, as a PluginError. A Ctrl-C, and the end of a call further out, go on."""
    if is_ctrl_c(error) or (isinstance(error, CallInterrupted) and error.culprit is not enabled):
        raise error
    name = method if isinstance(method, str) else method_name(enabled.plugin, method)
    return PluginError(enabled.name, name, error_text(error), error_place(error))


def wrong(enabled: EnabledPlugin[object], method: Callable[..., object], answer: object, right: str) -> PluginError:
    """A PluginError for an answer that is not what the method should give."""
    return PluginError(enabled.name, method_name(enabled.plugin, method), f"answered {described(answer)}; {right}")


def method_name(plugin: object, method: Callable[..., object]) -> str:
    """The name that the plugin has the method under; a wrapped method or a lambda calls itself something else."""
    own = str(getattr(method, "__name__", ""))
    names = (own, *CALLED)
    return next((name for name in names if getattr(plugin, name, None) == method), own)


def _name_of(kind: type | UnionType) -> str:
    kinds = kind.__args__ if isinstance(kind, UnionType) else (kind,)
    return " or ".join(each.__name__ for each in kinds)


@asks
def call_filter(enabled: EnabledPlugin[FilterPlugin], pod: Pod, nodes: Nodes) -> list[Reject]:
    answer: Any = ()
    try:
        answer = enabled.plugin.filter(pod, nodes)
        return list(answer)
    except PluginError:
        raise
    except BaseException as error:
        if isinstance(error, TypeError) and not isinstance(answer, Iterable):
            raise PluginError(enabled.name, "filter", f"answered {described(answer)}; {REJECTS}") from None
        raise raised(enabled, "filter", error) from error


def checked_rows(enabled: EnabledPlugin[object], reject: Reject, size: int, kind: str = "node") -> Bools:
    """The rows of a rejection, once the whole rejection is known to be sound; `kind`: what a row is."""
    rows: object = getattr(reject, "rows", None)
    if not isinstance(rows, np.ndarray) or rows.dtype != np.bool_ or rows.shape != (size,):
        if not isinstance(reject, Reject):
            raise PluginError(enabled.name, "filter", f"found {_found(reject)}; {REJECTS}")
        found = f"{rows.dtype} of shape {rows.shape}" if isinstance(rows, np.ndarray) else described(rows)
        right = f"rejected rows must be {size} booleans, one per {kind}"
        raise PluginError(enabled.name, "filter", f"{right}; found {found}")
    reason: object = reject.reason
    if not isinstance(reason, str):
        raise PluginError(enabled.name, "filter", f"a reason must be a text; found {described(reason)}")
    helps: object = reject.resolvable
    if not isinstance(helps, bool | np.bool_) and (
        not isinstance(helps, np.ndarray) or helps.dtype != np.bool_ or helps.shape != (size,)
    ):
        raise PluginError(
            enabled.name, "filter", f"resolvable must be a boolean, or {size} of them; found {described(helps)}"
        )
    return rows


def _found(answer: object) -> str:
    return f"an array, {answer.dtype} of shape {answer.shape}" if isinstance(answer, np.ndarray) else described(answer)


def call_score(enabled: EnabledPlugin[ScorePlugin], pod: Pod, nodes: Nodes) -> Bytes | int | None:
    """The scores as bytes of their own, one number for all nodes, or None."""
    score = call(enabled, enabled.plugin.score, pod, nodes)
    if score is None or (type(score) is int and 0 <= score <= MAX_SCORE):
        return score
    if not isinstance(score, np.ndarray) or score.dtype not in UNSIGNED or score.shape != (len(nodes),):
        found = f"{score.dtype} of shape {score.shape}" if isinstance(score, np.ndarray) else described(score, 80)
        raise PluginError(enabled.name, "score", f"scores must be {len(nodes)} int64, one per node; found {found}")
    if len(score) and int(score.view(UNSIGNED[score.dtype]).max()) > MAX_SCORE:  # as unsigned, -1 is far above 100
        out_of_range = int(score[(score < 0) | (score > MAX_SCORE)][0])
        raise PluginError(enabled.name, "score", f"scores must be within 0 and {MAX_SCORE}; found {out_of_range}")
    return score.astype(np.uint8, copy=score.base is not None)  # a column would change while the trail refers to it
