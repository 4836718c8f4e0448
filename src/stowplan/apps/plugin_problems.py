"""The log of what plugins do wrong: one line for each different problem."""

from __future__ import annotations

from stowplan.apps.logging import Log
from stowplan.engine.reports import PluginMisbehaved

MAX_REMEMBERED = 1000


class PluginProblemLog:
    def __init__(self, log: Log) -> None:
        self._log = log
        self._logged: set[PluginMisbehaved] = set()

    def report(self, problem: PluginMisbehaved) -> None:
        """Log the problem, unless it is logged already."""
        if problem in self._logged:
            return
        if len(self._logged) >= MAX_REMEMBERED:
            self._logged.clear()
        self._logged.add(problem)
        self._log.warning("A plugin misbehaves", plugin=problem.plugin, point=problem.point, problem=problem.problem)
