"""All errors of a configuration at once, although its readers stop at the first one.

After each error the value that it is about is taken out of a copy of the document, and the rest is read again:

    profiles[0].plugins.score.enabled[1]: there is no plugin "Nodeafinity"   →  the entry is taken out
    profiles[0].plugins.score.enabled[2]: …                                  →  the entry that was [2] in the file

An error that something is missing where something was taken out is a consequence of that, so it is not told, and the
whole place is taken out. A plugin that cannot be made from its arguments is no longer enabled.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from stowplan.framework.config.document import under
from stowplan.objects.errors import ConfigError

MOST = 100  # readings of one document
_PATH = re.compile(r"(?:profiles|extenders|plugins|pluginConfig)(?:\.\w+|\[[^\]]*\])+")
_INDEX = re.compile(r"\[(?:(\d+)|name=([^\]]*))\]")
_LACKING = re.compile(r"missing|found none|found null|differs")
_ARGUMENTS = re.compile(r"(?P<profile>.*?)\.?pluginConfig\[name=(?P<name>[^\]]*)\]\.args")


def every(
    document: Mapping[str, Any], read: Callable[[dict[str, Any]], object], instead: Mapping[str, Any]
) -> Iterator[ConfigError]:
    """Yield the errors that reading the document raises. `instead`: values to read on with, by their field."""
    left = _WhatIsLeft(document, instead)
    for _ in range(MOST):
        try:
            read(copy.deepcopy(left.document))
        except ConfigError as error:
            where = left.place(under(error.path, error.key))
            if not left.follows(where.path, error):
                yield left.as_in_file(error)
            if not left.leave_out(where, error):
                return
        else:
            return


class DocumentPlace(NamedTuple):
    """A path: the lists, mappings and keys that lead to it, as far as they exist, and how the file calls it."""

    path: str
    steps: tuple[tuple[Any, Any], ...]  # containers, and the key or index in each
    missing: str  # what does not exist


class _WhatIsLeft:
    """The document without what was taken out."""

    def __init__(self, document: Mapping[str, Any], instead: Mapping[str, Any]) -> None:
        self.document: dict[str, Any] = copy.deepcopy(dict(document))
        self._instead = instead
        self._numbers: dict[str, list[int]] = {}  # of the items that are left, by the path of their list
        self._taken: list[str] = []

    def place(self, path: str) -> DocumentPlace:
        """Return the place that a path of what is left leads to."""
        value: Any = self.document
        steps: list[tuple[Any, Any]] = []
        name, rest = "", path
        while rest:
            key, after = self._next(value, rest)
            if key is None:
                break
            steps.append((value, key))
            name = f"{name}[{self._in_file(name, value)[key]}]" if isinstance(value, list) else under(name, str(key))
            value, rest = value[key], after
        return DocumentPlace(under(name, rest), tuple(steps), rest)

    def _next(self, value: Any, rest: str) -> tuple[Any, str]:
        """Return the next key or index of a path, and the rest of the path; None for one that is not there."""
        if isinstance(value, list) and (found := _INDEX.match(rest)):
            names = [each.get("name") if isinstance(each, dict) else None for each in value]
            index = int(found[1]) if found[1] else names.index(found[2]) if found[2] in names else len(names)
            return (index if index < len(value) else None), rest[found.end() :].removeprefix(".")
        if isinstance(value, dict):
            for key in sorted((each for each in value if isinstance(each, str)), key=len, reverse=True):
                after = rest.removeprefix(key)
                if key and rest.startswith(key) and after[:1] in ("", ".", "["):
                    return key, after.removeprefix(".")
        return None, rest

    def _in_file(self, path: str, items: list[Any]) -> list[int]:
        return self._numbers.setdefault(path, list(range(len(items))))

    def follows(self, path: str, error: ConfigError) -> bool:
        """True for an error about what was taken out, or that it is missing."""
        inside = any(each.startswith(path) and each[len(path) : len(path) + 1] in (".", "[") for each in self._taken)
        return path in self._taken or (inside and _LACKING.search(error.problem) is not None)

    def as_in_file(self, error: ConfigError) -> ConfigError:
        """Return the error with the numbers that the items have in the file."""
        if not self._taken:
            return error

        def renumbered(text: str) -> str:
            return _PATH.sub(lambda found: self._spelled(found[0]), text)

        remedy = renumbered(error.remedy)
        return ConfigError(renumbered(error.problem), path=self._spelled(error.path), file=error.file, remedy=remedy)

    def _spelled(self, path: str) -> str:
        """Return a path with the file's numbers; one that names a plugin keeps its name."""
        ahead, bracket, name = path.partition("[name=")
        return self.place(ahead).path + bracket + name if bracket else self.place(path).path

    def leave_out(self, where: DocumentPlace, error: ConfigError) -> bool:
        """Take out what an error is about. False if there is nothing that can be taken out."""
        if where.path in self._instead and self.document.get(where.path) != self._instead[where.path]:
            self.document[where.path] = self._instead[where.path]
            return True
        if where.missing == "schedulerName":  # the rest of the profile is worth reading
            container, key = where.steps[-1]
            container[key]["schedulerName"] = f"profile {len(self._taken)}"
            self._taken.append(where.path)
            return True
        arguments = _ARGUMENTS.fullmatch(error.path)
        if arguments and not error.key:
            return self._disable(arguments["name"], arguments["profile"])
        if not where.steps or error.file:
            return False
        self._take(where)
        return True

    def _take(self, where: DocumentPlace) -> None:
        container, key = where.steps[-1]
        path = where.path.removesuffix(where.missing).rstrip(".") if where.missing else where.path
        if isinstance(container, list):
            parent = path.rpartition("[")[0]
            del self._in_file(parent, container)[key]
        del container[key]
        self._taken.append(path)

    def _disable(self, name: str, profile: str) -> bool:
        """Take out a plugin wherever a profile lists it, and its arguments."""
        found = False
        for place in [f"plugins.{point}.enabled" for point in self._points(profile)] + ["pluginConfig"]:
            while not (where := self.place(under(profile, f"{place}[name={name}]"))).missing:
                self._take(where)
                found = True
        return found

    def _points(self, profile: str) -> list[str]:
        where = self.place(under(profile, "plugins"))
        if where.missing or not where.steps:
            return []
        container, key = where.steps[-1]
        return list(container[key] or ())
