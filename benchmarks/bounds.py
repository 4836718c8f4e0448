"""The bounds that the figures must keep, and which of them they do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.figures import AnyFigure, Comparison, Figure


@dataclass(frozen=True)
class Limit:
    """A field of a workload's figures: at most, or at least, so much. `nodes` 0 stands for any size."""

    workload: str
    nodes: int
    field: str
    most: float | None = None
    least: float | None = None

    def met(self, value: float) -> bool:
        return (self.most is None or value <= self.most) and (self.least is None or value >= self.least)

    def __str__(self) -> str:
        return f"at most {self.most:g}" if self.most is not None else f"at least {self.least:g}"


LIMITS = (
    Limit("basic", 5000, "yardsticks", most=2),
    Limit("basic", 50000, "growth", most=4),  # against 5,000
    Limit("basic", 100000, "growth", most=2),  # against 50,000: at most 8 times 5,000
    Limit("unlike", 5000, "yardsticks", most=6),
    Limit("affinity", 5000, "yardsticks", most=6),  # below 4 times basic when basic took 1.87; basic got faster since
    Limit("anti-affinity", 5000, "times_basic", most=4),
    Limit("preferred-affinity", 5000, "times_basic", most=4),
    Limit("spread", 5000, "times_basic", most=4),
    Limit("soft-spread", 5000, "times_basic", most=4),
    Limit("preemption", 5000, "yardsticks", most=80),
    Limit("preemption-spread", 5000, "times_preemption", most=20),
    Limit("preemption-anti-affinity", 5000, "times_preemption", most=20),
    Limit("bound-pods", 0, "ratio", most=1.5),
    Limit("static-volumes", 0, "ratio", most=3),
    Limit("device-claims", 0, "yardsticks", most=100),
    Limit("per-node-twins", 0, "ratio", least=30),
    Limit("churn-memory", 0, "ratio", most=1.10),
    Limit("engine-step", 0, "yardsticks", most=0.5),
    Limit("engine-pending", 0, "ratio", most=1.2),
    Limit("engine-group", 0, "ratio", most=2),
    Limit("policies", 0, "ratio", most=1.3),
    Limit("gangs", 0, "ratio", least=0.7),
    Limit("gangs-infeasible", 0, "ratio", most=2),
    Limit("gangs-outage", 0, "ratio", most=4),
    Limit("placement", 0, "ratio", most=1 / 50),
    Limit("placement-memory", 0, "ratio", most=1),
    Limit("diagnosis", 0, "yardsticks", most=400),
    Limit("diagnosis-evictions", 0, "yardsticks", most=1500),
)


def limit_of(figure: Comparison) -> Limit | None:
    return next((limit for limit in LIMITS if limit.workload == figure.workload), None)


def missed(figures: Sequence[AnyFigure]) -> Iterator[str]:
    """A sentence for each bound that is not met, or that nothing was measured for."""
    for limit in LIMITS:
        values = [(figure, getattr(figure, limit.field, None)) for figure in figures if _about(figure, limit)]
        known = [(figure, value) for figure, value in values if value is not None]
        if not known:
            yield f"{limit.workload}: {limit.field} was not measured; {limit} is due"
        for figure, value in known:
            if not limit.met(value):
                yield f"{_title(figure)}: {limit.field} is {value:.2f}; {limit} is due"


def _about(figure: AnyFigure, limit: Limit) -> bool:
    same_size = isinstance(figure, Figure) and figure.nodes == limit.nodes
    return figure.workload == limit.workload and (limit.nodes == 0 or same_size)


def _title(figure: AnyFigure) -> str:
    if isinstance(figure, Comparison):
        return f"{figure.workload} ({figure.case})"
    return f"{figure.workload} at {figure.nodes:,} nodes" if isinstance(figure, Figure) else figure.workload
