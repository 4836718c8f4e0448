"""Which lines of a plugin's methods ran, and how often: a line that never ran names the branch that nobody tried."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType
from typing import Any

from stowplan.framework.checks.words import codes_of


class LinesRun:
    """Counts the lines that run in the methods of one plugin; not while a debugger or another tracer is at work."""

    def __init__(self, plugin: object) -> None:
        self.methods = dict(_methods(type(plugin)))
        self._method_of = {code: name for name, codes in self.methods.items() for code in codes}
        self.counts: Counter[tuple[str, int]] = Counter()  # by method and line

    @contextmanager
    def counting(self) -> Iterator[None]:
        if sys.gettrace() is not None or not self._method_of:
            yield
            return
        sys.settrace(self._entered)
        try:
            yield
        finally:
            sys.settrace(None)

    def _entered(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:  # noqa: ARG002
        method = self._method_of.get(frame.f_code)
        if method is None:
            return None
        counts = self.counts

        def ran(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:  # noqa: ARG001
            if event == "line":
                counts[method, frame.f_lineno] += 1
            return ran

        return ran

    def ran(self, method: str) -> bool:
        return any(name == method for name, _ in self.counts)

    def never(self, method: str) -> list[int]:
        """Return the lines of a method that never ran."""
        return sorted(
            line
            for line in {line for code in self.methods.get(method, ()) for line in _lines(code)}
            if not self.counts[method, line]
        )

    def busiest(self, method: str) -> tuple[int, int]:
        """Return the line of a method that ran most often, and how often; 0 and 0 if none ran."""
        counted = {line: count for (name, line), count in self.counts.items() if name == method}
        line = max(counted, key=counted.__getitem__, default=0)
        return line, counted.get(line, 0)


def _methods(plugin: type) -> Iterator[tuple[str, list[CodeType]]]:
    file = sys.modules.get(plugin.__module__)
    for each in reversed(plugin.__mro__):
        if each.__module__ != plugin.__module__ or file is None:
            continue
        for name, value in vars(each).items():
            if isinstance(value, FunctionType) and value.__module__ == plugin.__module__ and not name.startswith("__"):
                yield name, list(codes_of(value.__code__))


def _lines(code: CodeType) -> Iterator[int]:
    own = {line for _, _, line in code.co_lines() if line}
    yield from own if own == {code.co_firstlineno} else own - {code.co_firstlineno}  # the line of `def` does not run


def in_words(lines: Iterable[int]) -> str:
    """Return "line 7", or "lines 7 to 9 and 12"."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][-1] + 1:
            runs[-1].append(line)
        else:
            runs.append([line])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    together = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
    return f"line {together}" if len(runs) == 1 and len(runs[0]) == 1 else f"lines {together}"
