"""The exceptions of Stowplan.

    StowplanError
    ├── ConfigError     a configuration, manifest or plugin that cannot be used; the text names file, path and remedy
    └── PluginError     a plugin raised, or returned a wrong answer; the text names the plugin
        └── DecisionError   a plugin found that a decision must end in an error

Verdicts about pods are values (`framework.verdict`), never exceptions.
"""

from __future__ import annotations

import re


class StowplanError(Exception):
    """The base of all exceptions. Their texts can be shown to a user."""


class ConfigError(StowplanError):
    """Input that cannot be used: the file and the path in it, what was found, and a remedy.

    def __init__(self, percent: int = 50) -> None:
        if not 0 <= percent <= 100:
            raise ConfigError(f"percent is {percent}", remedy="choose 0 to 100")

    `key`: which entry at the path it is about, if the problem has its name already; it is not part of the text.
    """

    def __init__(self, problem: str, *, path: str = "", file: str = "", remedy: str = "", key: str = "") -> None:
        self.problem, self.path, self.file, self.remedy, self.key = problem, path, file, remedy, key
        where = ": ".join(part for part in (file, path) if part)
        text = f"{where}: {problem}" if where else problem
        super().__init__(f"{text}; {remedy}" if remedy else text)

    def located(self, file: str) -> ConfigError:
        """Return the same error with the name of the file."""
        return ConfigError(self.problem, path=self.path, file=self.file or file, remedy=self.remedy, key=self.key)


class PluginError(StowplanError):
    """A plugin raised, or its answer has a wrong shape, type or range. `place`: the line that raised, `mine.py:12`."""

    def __init__(self, plugin: str, point: str, problem: str, place: str = "") -> None:
        self.plugin, self.point, self.problem, self.place = plugin, point, problem, place
        super().__init__(f'plugin "{plugin}" failed at {point}: {problem}')

    @staticmethod
    def named_in(text: str) -> tuple[str, str] | None:
        """Return the plugin and the point of the error in this text; None if it has none."""
        found = _FAILED.search(text)
        return None if found is None else (found[1], found[2])


class DecisionError(PluginError):
    """What ends a whole decision in an error though nothing is wrong with the plugin: kube-scheduler's status Error.

    raise DecisionError("DynamicResources", "filter", "claim default/gpu: …")
    """

    def __init__(self, plugin: str, point: str, text: str) -> None:
        super().__init__(plugin, point, text)
        self.args = (f'running "{plugin}" {point} plugin: {text}',)


_FAILED = re.compile(r'plugin "([^"]+)" failed at (\w+): ')
