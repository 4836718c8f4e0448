"""What came of a run as bytes: JSON, and lines of JSON. The same run gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from stowplan.simulation.run import Simulation


def summary(figures: Mapping[str, Any]) -> bytes:
    """Return `summary.json`."""
    return msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n"


def outcome_rows(run: Simulation) -> Iterator[dict[str, Any]]:
    """Yield a row for each pod of the run, in the order of arrival: `[row["waited"] for row in pods_of(run)]`."""
    return (each.row() for each in run.recorder.outcomes.values())


def lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield each row as a line of JSON."""
    return (msgspec.json.encode(row) + b"\n" for row in rows)
