"""The table of a soak, for people and for docs/conformance.md."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from tests.soak.programs import GROWTH, Life


@dataclass
class SoakResult:
    commit: str
    minutes: float
    created: int
    bound: int
    waits: list[float]
    groups_in_part: list[str]
    never_bound: list[str]
    placements: int
    poison: int
    faults: dict[str, int]
    lost_leases: int
    lives: list[Life]
    problems: list[str] = field(default_factory=list)

    def verdicts(self) -> list[str]:
        """What is wrong; empty if nothing is."""
        wrong = list(self.problems)
        wrong += [f"pod {name} was never bound" for name in self.never_bound]
        wrong += [f"group {name} is bound in part" for name in self.groups_in_part]
        for life in self.lives:
            found = life.settled()
            if found is not None and found[1] > found[0] * (1 + GROWTH):
                wrong.append(f"{life.name} grew from {_mb(found[0])} to {_mb(found[1])} after its first ten minutes")
        return wrong

    def table(self) -> str:
        """In Markdown."""
        seconds = self.minutes * 60
        rows = [
            ("time", f"{self.minutes:.0f} minutes"),
            ("pods that came and went", f"{self.created} ({self.created / seconds:.0f} a second)"),
            ("bound", f"{self.bound}"),
            ("creation to binding", _quantiles(self.waits)),
            ("never bound, groups bound in part", f"{len(self.never_bound)}, {len(self.groups_in_part)}"),
            ("placements decided", f"{self.placements}"),
            ("poisonous objects", f"{self.poison}"),
            ("faults", ", ".join(f"{name} × {number}" for name, number in sorted(self.faults.items())) or "none"),
            ("processes that ended because of a lost lease", f"{self.lost_leases}"),
            *((f"memory of {name}", text) for name, text in _memories(self.lives)),
            ("wrong", "; ".join(self.verdicts()[:10]) or "nothing"),
        ]
        lines = [f"Commit {self.commit}.", "", "| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows)]
        return "\n".join(lines) + "\n"


def _quantiles(waits: list[float]) -> str:
    if len(waits) < 2:
        return "none"
    found = statistics.quantiles(waits, n=100)
    return f"median {found[49]:.2f} s, 99 % {found[98]:.1f} s, longest {max(waits):.1f} s"


def _memories(lives: list[Life]) -> list[tuple[str, str]]:
    """Of each process that lived longer than ten minutes."""
    found = []
    for life in lives:
        settled = life.settled()
        if settled is not None:
            until = life.samples[-1][0] / 60
            text = f"{_mb(settled[0])} after ten minutes, {_mb(settled[1])} at most until minute {until:.0f}"
            found.append((f"{life.name} (ended by {life.ended_by or 'nobody'})", text))
    return found or [("all", "no process lived longer than ten minutes")]


def _mb(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
