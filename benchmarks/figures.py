"""The results of a run: figures of workloads, and comparisons of two costs. Both are objects in the JSON file."""

from __future__ import annotations

from typing import Any

import msgspec


class Figure(msgspec.Struct, frozen=True):
    """A workload at a size. `growth` is to the next smaller size, `times_basic` to `basic` at the same size.

    `times_preemption` is to plain `preemption` at the same size, for workloads whose name begins with that.
    """

    workload: str
    nodes: int
    pods: int
    pods_per_s: float
    microseconds: float
    yardsticks: float
    yardstick_microseconds: float
    growth: float | None
    times_basic: float | None
    bytes_per_node: float
    bytes_per_pod: float
    bound_before: int
    placed: int
    preempted: int
    without_node: int
    times_preemption: float | None = None


class Comparison(msgspec.Struct, frozen=True):
    """Something against something else: `ratio` is `value` through `against`, in whatever `unit` both have."""

    workload: str
    case: str
    nodes: int
    pods: int
    unit: str
    value: float
    against: float
    ratio: float
    yardsticks: float | None = None
    pods_per_s: float | None = None
    note: str = ""


class Missing(msgspec.Struct, frozen=True):
    """A figure that could not be had, and why."""

    workload: str
    why: str


AnyFigure = Figure | Comparison | Missing


def plain(figures: list[AnyFigure]) -> list[dict[str, Any]]:
    return [_rounded(msgspec.to_builtins(figure)) for figure in figures]


def _rounded(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in fields.items()}
