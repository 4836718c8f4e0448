"""What processes take, read from /proc: CPU seconds and resident memory; and what the rest of the machine takes.

All parts of a run are our children (tests/controlplane/process.py becomes the program it starts), so whatever else
keeps the machine busy is not ours: noise, which is printed beside the figures.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
IDLE = (3, 4)  # idle and iowait among the machine's counters; those after steal are counted twice


@dataclass(frozen=True)
class Usage:
    """CPU seconds up to a moment: of each child by name, of ourselves, of the whole machine."""

    at: float
    children: dict[str, float]
    own: float
    machine: float

    def child_since(self, earlier: Usage, name: str) -> float:
        return self.children.get(name, 0.0) - earlier.children.get(name, 0.0)

    def all_but_us_since(self, earlier: Usage) -> float:
        """How many cores everybody but this process kept busy, on average."""
        return max(self.machine - earlier.machine - (self.own - earlier.own), 0.0) / (self.at - earlier.at)

    def others_since(self, earlier: Usage) -> float:
        """How many cores other programs kept busy, on average."""
        ours = sum(self.child_since(earlier, name) for name in self.children) + self.own - earlier.own
        return max(self.machine - earlier.machine - ours, 0.0) / (self.at - earlier.at)


def usage() -> Usage:
    children: dict[str, float] = {}
    for pid in _pids():
        name, fields = _stat(pid)
        if fields and int(fields[1]) == os.getpid():
            children[name] = children.get(name, 0.0) + _seconds(fields)
    return Usage(time.monotonic(), children, cpu_seconds(os.getpid()), _machine())


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads since the process began."""
    return _seconds(_stat(pid)[1])


def resident_mb(pid: int) -> float:
    return _memory(pid, "VmRSS")


def peak_resident_mb(pid: int) -> float:
    return _memory(pid, "VmHWM")


def _memory(pid: int, field: str) -> float:
    for line in (PROC / str(pid) / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024 / 1e6
    raise ProcessLookupError(f"process {pid} has no {field}: it has ended")


def _pids() -> list[int]:
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> tuple[str, list[str]]:
    """A process's name and its fields from the third on, which is the state; nothing if it has ended."""
    try:
        before, _, after = (PROC / str(pid) / "stat").read_text().rpartition(")")
    except (FileNotFoundError, ProcessLookupError):
        return "", []
    return before.partition("(")[2], after.split()


def _seconds(fields: list[str]) -> float:
    return (int(fields[11]) + int(fields[12])) / TICKS if fields else 0.0


def _machine() -> float:
    """Time that all cores were busy or taken away by the host (steal)."""
    counters = [int(value) for value in (PROC / "stat").read_text().splitlines()[0].split()[1:9]]
    return sum(value for index, value in enumerate(counters) if index not in IDLE) / TICKS
