"""The figures of a run by name, as a gate or a table names them: `wait.p99`, `allocation.cpu`, `pods.neverPlaced`.

A name is the path of the figure in `summary.json`, with dots; `waiting` is also `wait`. The unit follows from the name.

    seconds     wait.p99                            60s, 5m, 2h, 1d
    part        allocation.cpu, fairness.index      0.7 or 70%
    hours       nodes.usedHours                     100h, 2d
    number      pods.neverPlaced, cost.used         3
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from stowplan.objects.errors import ConfigError


class FigureUnit(StrEnum):
    """What a figure counts."""

    SECONDS = "seconds"
    PART = "part"
    HOURS = "hours"
    NUMBER = "number"


STATES = ("pending", "bound", "running", "succeeded", "failed", "evicted", "deleted")
FIXED = (
    "seconds",
    *(f"pods.{name}" for name in ("arrived", "placed", "neverPlaced", "initial")),
    *(f"pods.atEnd.{name}" for name in STATES),
    *(f"wait.{name}" for name in ("mean", "p50", "p90", "p95", "p99", "p100")),
    "evictions.pods",
    *(f"nodes.{name}" for name in ("atEnd", "most", "mostUsed", "meanUsed", "hours", "usedHours")),
    *(f"cost.{name}" for name in ("all", "used", "nodesWithoutPrice")),
    "fairness.index",
    "skipped.problems",
)
# What follows is a resource, a reason, or a namespace.
OPEN = ("allocation.", "utilisation.", "fragmentation.", "evictions.byReason.", "fairness.namespaces.")
OF_NAMESPACES = ("pods", "satisfaction", "meanWait")
REASONS, NAMESPACES = "evictions.byReason.", "fairness.namespaces."
WILD = re.compile(r"[*?\[]")  # in patterns
PARTS = ("allocation.", "utilisation.", "fragmentation.")

Figures = Mapping[str, float | None]


def by_name(told: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the figures of a run by name. A figure that the run does not have, such as a wait of no pod, is None."""
    return dict(_flat("", {name: each for name, each in told.items() if name != "seed"}))


def _flat(path: str, found: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    for key, value in found.items():
        name = path + ("wait" if not path and key == "waiting" else key)
        if isinstance(value, Mapping):
            yield from _flat(f"{name}.", value)
        else:
            yield name, None if value is None else float(value)


def unit(name: str) -> FigureUnit:
    """Return the unit of a figure."""
    last = name.rpartition(".")[2]
    if name == "seconds" or name.startswith("wait.") or (name.startswith(NAMESPACES) and last == "meanWait"):
        return FigureUnit.SECONDS
    if name.startswith(PARTS) or name == "fairness.index" or (name.startswith(NAMESPACES) and last == "satisfaction"):
        return FigureUnit.PART
    return FigureUnit.HOURS if name in ("nodes.hours", "nodes.usedHours") else FigureUnit.NUMBER


def checked(name: str) -> str:
    """Return the name as we spell it. Raises ConfigError for one that no run has, with the closest ones."""
    name = _as_we_spell_it(name)
    followed = any(name.startswith(each) and name != each for each in OPEN)
    if name.startswith(NAMESPACES):
        followed = name.rpartition(".")[2] in OF_NAMESPACES and name.count(".") > 2
    if name not in FIXED and not followed:
        raise unknown(name, (*FIXED, *(f"{each}…" for each in OPEN)))
    return name


def unknown(name: str, known: Collection[str], path: str = "") -> ConfigError:
    """Return the error for a figure that is not there. `path`: who names it."""
    near = difflib.get_close_matches(name, known, 1, 0.5)
    guess = f"did you mean {near[0]}? There are" if near else "there are"
    return ConfigError(f"no figure is named {name!r}", path=path, remedy=f"{guess} {', '.join(known)}")


def missing(name: str) -> float | None:
    """Return what a run has that does not tell of this figure: no eviction for a reason is 0 evictions."""
    return 0.0 if name.startswith(REASONS) else None


def check_patterns(patterns: Iterable[str], path: str = "") -> None:
    """Raise ConfigError for a pattern that no figure of any run can match. Resources and namespaces have any name."""
    for pattern in map(_as_we_spell_it, patterns):
        plain = WILD.split(pattern, maxsplit=1)[0]
        is_open = any(plain.startswith(each) or (plain != pattern and each.startswith(plain)) for each in OPEN)
        if not is_open and not any(fnmatchcase(each, pattern) for each in FIXED):
            raise unknown(pattern, (*FIXED, *(f"{each}…" for each in OPEN)), path)


def _as_we_spell_it(name: str) -> str:
    return f"wait.{name.removeprefix('waiting.')}" if name.startswith("waiting.") else name


def chosen(names: Iterable[str], patterns: Collection[str] = (), path: str = "") -> list[str]:
    """Return the names that match a pattern such as `wait.*`; without patterns, all but those of namespaces.

    Raises ConfigError for a pattern without a match: `check_patterns` finds most of them before there are runs.
    """
    names = list(names)
    if not patterns:
        return [each for each in names if not each.startswith(NAMESPACES)]
    wanted = [_as_we_spell_it(each) for each in patterns]
    for pattern in wanted:
        if not any(fnmatchcase(each, pattern) for each in names):
            raise unknown(pattern, names, path)
    return [each for each in names if any(fnmatchcase(each, pattern) for pattern in wanted)]
