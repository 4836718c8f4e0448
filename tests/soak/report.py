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
            for role, found in life.settled().items():
                if found.most > found.after_ten_minutes * (1 + GROWTH):
                    grown = f"from {_mb(found.after_ten_minutes)} to {_mb(found.most)}"
                    wrong.append(f"{' '.join((life.name, role)).strip()} grew {grown} after its first ten minutes")
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
    """Of each process that had a role for longer than ten minutes."""
    found = []
    for life in lives:
        for role, memory in life.settled().items():
            name = f"{life.name}{', ' if role else ''}{role} (ended by {life.ended_by or 'nobody'})"
            least, most = _mb(memory.after_ten_minutes), _mb(memory.most)
            found.append((name, f"{least} after ten minutes, {most} at most until minute {memory.until:.0f}"))
    return found or [("all", "no process had a role for longer than ten minutes")]


def _mb(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
