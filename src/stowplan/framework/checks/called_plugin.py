"""Calls of a plugin in one situation, for nodes or for clusters: what it answers, and how answers are compared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np

from stowplan.columns.fleet.views import Clusters
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.checks.lines import LinesRun
from stowplan.framework.checks.says import Says
from stowplan.framework.per_node import filter_each, score_each
from stowplan.objects.errors import PluginError

Answers: TypeAlias = dict[str, Any]  # by the name of the node or cluster
Problem: TypeAlias = tuple[str, str]  # what is wrong, and an example
Answer = TypeVar("Answer")
View = TypeVar("View", Nodes, Clusters)


class BrokenAnswer(Exception):  # noqa: N818  used in the checks only
    """An answer that ends the checks of one situation."""


class CalledPlugin:
    """A plugin in one situation: calls it, counts its lines, and notes when it had a say."""

    def __init__(self, plugin: Any, says: Says, lines: LinesRun) -> None:
        self.plugin, self.says, self.lines = plugin, says, lines
        self.name = type(plugin).__name__

    def ask(self, method: str, run: Callable[[], Answer]) -> Answer:
        try:
            with self.lines.counting():
                return run()
        except PluginError as error:
            self.says.failures[method] += 1
            raise BrokenAnswer(f"{method} fails", error.problem) from error
        except Exception as error:
            self.says.failures[method] += 1
            raise BrokenAnswer(f"{method} fails", f"{type(error).__name__}: {error}") from error

    def has(self, method: str) -> bool:
        return callable(getattr(self.plugin, method, None))


class Twin:
    """A version that looks at one node or cluster at a time, with the methods of a plugin."""

    def __init__(self, twin: Any) -> None:
        self._twin = twin

    def filter(self, asked: Any, these: Any) -> Any:
        return filter_each(self._twin, asked, these)

    def score(self, asked: Any, these: Any) -> Any:
        return score_each(self._twin, asked, these)


def differ(what: str, found: Answers, expected: Answers, one: str = "node") -> Iterator[Problem]:
    """Yield a problem for the first node (or cluster) with another answer than before."""
    for name, answer in found.items():
        if answer != expected[name]:
            yield what, f"{one} {name} gets {expected[name]}, and then {answer}"
            return


def only(these: View, names: Collection[str]) -> View:
    return these.where(np.array([name in names for name in these.names], np.bool_))
