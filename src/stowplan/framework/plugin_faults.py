"""What a plugin raised, in words: the exception, its text, and the line of the plugin's file where it happened.

A plugin may raise anything, also what does not derive from Exception: `SystemExit`, `GeneratorExit`, a `CancelledError`
that leaks out of a library. All of it is the plugin's error and nothing else's. Only a KeyboardInterrupt that no
statement raised is the user's: Ctrl-C.

A call that takes too long is ended from outside: the caller's watchdog raises `CallInterrupted` in the plugin's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from opcode import opmap
from types import TracebackType
from typing import TypeAlias

from stowplan.objects.texts import shortened

Place: TypeAlias = tuple[str, int]  # file and line

_PACKAGE = __file__[: -len("framework/plugin_faults.py")]  # as it is in the file names of our code
_POLICIES = f"{_PACKAGE}plugins{__file__[-len('/plugin_faults.py')]}"
_RAISES = frozenset((opmap["RAISE_VARARGS"], opmap["RERAISE"]))


class CallInterrupted(BaseException):
    """Raised in the code of a plugin whose call takes too long. `culprit` is the plugin as it is enabled."""

    def __init__(self, culprit: object, seconds: float) -> None:
        self.culprit = culprit
        super().__init__(f"did not answer within {seconds:g} s")


def error_text(error: BaseException) -> str:
    """Return what was raised and where: `KeyError: 'zone' (mine.py:12)`."""
    what = _text(error)
    if not isinstance(error, CallInterrupted):
        what = f"{type(error).__name__}: {what}".removesuffix(": ")
    place = error_place(error)
    return f"{what} ({place})" if place else what


def error_place(error: BaseException) -> str:
    """Return where it was raised: the innermost line of the plugin's own file, `mine.py:12`."""
    return own_place(_places(error.__traceback__))


def is_ctrl_c(error: BaseException) -> bool:
    """True for a Ctrl-C: a KeyboardInterrupt that no statement raised."""
    if not isinstance(error, KeyboardInterrupt) or error.__traceback__ is None:
        return False
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    return last.tb_frame.f_code.co_code[last.tb_lasti] not in _RAISES


def own_place(places: Sequence[Place]) -> str:
    """Return the innermost place in the plugin's own file, as `mine.py:12`. `places`: a stack, the innermost last.

    The plugin's own file is the first one that is not the scheduler's: a method may be wrapped.
    """
    theirs = [place for place in places if not _is_ours(place[0])] or list(places[-1:])
    if not theirs:
        return ""
    file, line = next(place for place in reversed(theirs) if place[0] == theirs[0][0])
    return f"{file.replace(chr(92), '/').rpartition('/')[2]}:{line}"


def _is_ours(file: str) -> bool:
    return file.startswith(_PACKAGE) and not file.startswith(_POLICIES)


def _places(trace: TracebackType | None) -> list[Place]:
    found: list[Place] = []
    while trace is not None:
        found.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return found


def _text(error: BaseException) -> str:
    """The text of an exception. Its `__str__` is the plugin's, too."""
    try:
        return shortened(str(error))
    except Exception as other:
        return f"its text cannot be had: {type(other).__name__}"
