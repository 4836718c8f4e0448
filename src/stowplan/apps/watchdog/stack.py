"""What a thread is asking a plugin just now, read from its stack.

Every question to a plugin has a frame on the stack whose function `framework.plugin_calls.asks` marks, with the
plugin and what it is asked about among its variables. Nobody has to note anything before or after a call, so that it
costs nothing. A frame is one call: while the same frame is on the stack, the same call has not ended. Questions nest: a
post-filter asks filters.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import stowplan
from stowplan.framework import plugin_calls
from stowplan.framework.interfaces import QueueEntry
from stowplan.framework.plugin_faults import own_place
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object

_PACKAGE = f"{Path(stowplan.__file__).parent}{os.sep}"
# Code of ours that may be left at any point: it changes nothing that stays, or only calls the plugin.
_HARMLESS = tuple(
    _PACKAGE + each.replace("/", os.sep)
    for each in ("plugins/", "cel/", "objects/", "framework/per_node.py", "apps/run/plugin_timing.py")
)
_DEBUGGERS = ("pdb", "bdb")


@dataclass(frozen=True, slots=True)
class PluginQuestion:
    """A call of a plugin: by its configured name, at which method, about which object, and where it is now."""

    plugin: str
    point: str
    about: str  # namespace/name of a pod, or of a placement; empty if it is about neither
    uid: str
    place: str  # mine.py:12

    def problem(self, seconds: float) -> str:
        """What the pod is told."""
        where = f" ({self.place})" if self.place else ""
        return str(PluginError(self.plugin, self.point, f"did not answer within {seconds:g} s{where}"))


def questions(top: FrameType | None) -> list[FrameType]:
    """The calls of plugins on a stack, the innermost first."""
    return [frame for frame in _stack(top) if id(frame.f_code) in plugin_calls.ASKING]


def described(call: FrameType, top: FrameType | None) -> PluginQuestion:
    """Say in words what one of the `questions` of a stack is."""
    variables = call.f_locals
    enabled, method = variables["enabled"], variables.get("method")
    point = "filter" if method is None else plugin_calls.method_name(enabled.plugin, method)
    about = _about(variables)
    places: list[tuple[str, int]] = []
    for frame in _stack(top):
        if frame is call:
            break
        places.append((frame.f_code.co_filename, frame.f_lineno))
    place = own_place(places[::-1])
    key, uid = (about.key, about.uid) if about is not None else ("", "")
    return PluginQuestion(enabled.name, point, key, uid, place)


def is_our_own(call: FrameType) -> bool:
    """True if the plugin that is asked is one of Stowplan's."""
    return type(call.f_locals["enabled"].plugin).__module__.startswith("stowplan.plugins.")


def may_be_left(top: FrameType) -> bool:
    """True if an exception can be raised here: in a plugin's code, and not while it uses what the scheduler keeps.

    An exception in the middle of a change of the cluster's state would leave half of it.
    """
    for frame in _stack(top):
        if id(frame.f_code) in plugin_calls.ASKING:
            return frame is not top
        file = frame.f_code.co_filename
        if file == contextlib.__file__ or (file.startswith(_PACKAGE) and not file.startswith(_HARMLESS)):
            return False
    return False


def is_debugged(top: FrameType | None) -> bool:
    """True if a debugger has stopped the thread: somebody looks at the plugin, and takes the time for it."""
    return any(frame.f_globals.get("__name__") in _DEBUGGERS for frame in _stack(top))


def _stack(top: FrameType | None) -> Iterator[FrameType]:
    while top is not None:
        yield top
        top = top.f_back


def _about(variables: dict[str, Any]) -> Object | None:
    for value in (variables.get("pod"), variables.get("placement"), *variables.get("arguments", ())):
        found = value.pod if isinstance(value, QueueEntry) else value
        if isinstance(found, Object):
            return found
    return None
