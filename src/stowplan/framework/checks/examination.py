"""What the checks of a plugin found, and how it is gathered, for nodes and for clusters alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stowplan.framework.checks.called_plugin import Problem
from stowplan.framework.checks.lines import LinesRun
from stowplan.framework.checks.says import Says
from stowplan.framework.extension_points import PluginKind


@dataclass(frozen=True)
class Examination:
    """What the checks found.

    kind         what the plugin chooses: nodes or clusters
    problems     what is wrong, one sentence each, those about idle methods included
    acted        how often each method was called, and how often its answer made a difference
    never_ran    lines of methods that never ran, by method
    not_called   methods that only a whole scheduler calls
    asked        how many pods (or placements) were drawn or given
    """

    kind: PluginKind
    problems: list[str]
    acted: dict[str, tuple[int, int]]
    never_ran: dict[str, list[int]]
    not_called: list[str]
    asked: int


class Examiner:
    """Gathers what is wrong with one plugin: each problem once, with the first example of it."""

    def __init__(self, plugin: Any, kind: PluginKind, idle: Mapping[str, str]) -> None:
        """`idle`: methods that need not have a say, with the reason."""
        self.plugin, self.kind, self.idle = plugin, kind, idle
        self.says, self.lines = Says(kind), LinesRun(plugin)
        self._found: dict[str, str] = {}
        self.note(self._incomplete())

    def _incomplete(self) -> Iterator[str]:
        if not self.kind.points_of(type(self.plugin)):
            yield "it has no method of any extension point; give it filter or score"
        for method in self.idle:
            if not callable(getattr(self.plugin, method, None)):
                yield f"idle names {method!r}, and there is no such method"

    def note(self, sentences: Iterable[str]) -> None:
        """Note problems that need no example."""
        self._found |= dict.fromkeys(sentences, "")

    def asked(self, key: str, where: str, problems: Iterable[Problem]) -> None:
        """Note the problems of one pod or placement; `where`: the seed that gives the same cluster or fleet again."""
        self.says.asked += 1
        for what, example in problems:
            self._found.setdefault(what, f": {example} ({self.kind.asked} {key}, {where})")

    def examination(self, hints: Mapping[str, str] = {}, not_called: Iterable[str] = ()) -> Examination:
        """Return what was found. `hints`: the methods that `wakes_on` names, with the kinds of their events."""
        says, lines, plugin = self.says, self.lines, self.plugin
        if says.asked and self.kind.points_of(type(plugin)):
            self.note(sentence for _, sentence in says.idle(plugin, hints, lines, self.idle))
        ran = (method for method in lines.methods if lines.ran(method))
        return Examination(
            kind=self.kind,
            problems=[f"{type(plugin).__name__}: {what}{example}" for what, example in self._found.items()],
            acted={
                method: (says.calls[method], says.differences[method])
                for method in (*says.never, *hints)
                if says.calls[method]
            },
            never_ran={method: never for method in ran if (never := lines.never(method))},
            not_called=[method for method in not_called if callable(getattr(plugin, method, None))],
            asked=says.asked,
        )
