"""What a report shows of one run, as plain data."""

from __future__ import annotations

from typing import Any

import msgspec

NO_NODE = 255  # instead of a percentage: there was no node of that name
FULL = 100


class FillHistory(msgspec.Struct, frozen=True):
    """How full each node was at some moments.

    `moments`: in seconds from the start of the run. `nodes`: the names of all nodes of the run. `parts`: by resource, a
    byte for each node at the first moment, then at the second and so on: the percentage that is requested, `FULL` also
    for more, or `NO_NODE`.
    """

    moments: list[float]
    nodes: list[str]
    parts: dict[str, bytes]


class CauseHistory(msgspec.Struct, frozen=True):
    """How many pods had no node at some moments, by the cause of that. Each cause has a number for each moment."""

    moments: list[float]
    pods: dict[str, list[int]]


class ReportRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has ended. It can come from another process: `msgspec.msgpack.encode(run)`.

    `name`: what it is called beside other runs. `facts`: what it was made of, such as its files and its seed.
    `figures`, `series`: as in `summary.json` and `series.jsonl`. `waits`: the seconds that pods waited for a node, in
    ascending order; many are represented by some. `configuration`: the text of the scheduler's configuration.
    """

    name: str
    facts: dict[str, str]
    figures: dict[str, Any]
    series: list[dict[str, Any]]
    waits: list[float]
    fill: FillHistory
    causes: CauseHistory
    configuration: str = ""
