"""The bounds that `make bench-live` must keep at 5,000 nodes, and which of them a run does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.live.figures import Figure, Missing

NODES = 5000


@dataclass(frozen=True)
class Bound:
    """`workload` "" stands for any."""

    workload: str
    what: str
    value: Callable[[Figure], float]
    least: float | None = None
    most: float | None = None

    def met(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        return f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}"


RATIOS = {
    "basic": 2.8,
    "node-affinity": 5.0,
    "spread": 9.0,
    "preferred-anti-affinity": 11.0,
    "anti-affinity": 14.0,
    "affinity": 10.0,
}
CPU = dict.fromkeys(RATIOS, 0.95) | {"basic": 0.75}  # seconds per 1,000 pods, start and events included
BOUNDS = (
    *(
        Bound(name, "Stowplan's pods/s over kube-scheduler's", lambda figure: figure.ratio, least=least)
        for name, least in RATIOS.items()
    ),
    *(
        Bound(
            name,
            "Stowplan's CPU seconds per 1,000 pods",
            lambda figure: figure.cpu_s_per_1000_pods.stowplan,
            most=most,
        )
        for name, most in CPU.items()
    ),
    Bound("basic", "share of the floor with events last", lambda figure: figure.of_floor_with_events, least=0.85),
    Bound("", "Stowplan's CPU over kube-scheduler's", lambda figure: figure.cpu_ratio, most=0.5),
    Bound("", "Stowplan's peak RSS in MB", lambda figure: figure.peak_rss_mb.stowplan, most=250),
    Bound("", "Stowplan's idle RSS in MB", lambda figure: figure.idle_rss_mb.stowplan, most=60),
    Bound("", "quiet rounds", lambda figure: figure.counted_rounds, least=1),
)


def missed(figures: Sequence[Figure | Missing], names: Sequence[str]) -> Iterator[str]:
    """A sentence for each bound that is not met by these workloads, or that nothing was measured for."""
    known = {figure.workload: figure for figure in figures if isinstance(figure, Figure) and figure.nodes == NODES}
    for name in names:
        if name not in known:
            yield f"{name} at {NODES:,} nodes: not measured"
            continue
        for bound in BOUNDS:
            value = bound.value(known[name])
            if bound.workload in ("", name) and not bound.met(value):
                yield f"{name} at {NODES:,} nodes: {bound.what} is {value:.2f}; {bound} is due"
