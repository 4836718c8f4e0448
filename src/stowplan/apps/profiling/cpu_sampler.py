"""CPU time of the program's threads, by stack, while it runs.

A thread of its own looks at all others, a hundred times per second. What a thread has used of the CPU since the last
look (the kernel counts it) goes to the stack that it has now. A thread that waits has used nothing and gets nothing. So
the sum is the CPU time, not the time that passed, and no signal interrupts the program.

Python code is seen when the interpreter lets another thread run. So time in a call of C code that never does goes to
the line that follows it at the latest.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import NamedTuple, TypeAlias

INTERVAL = 0.01  # seconds
DEEPEST = 200  # frames of a stack; the outer ones beyond it are left out


class StackFrame(NamedTuple):
    """A line of a function. Frames of the same line of the same code are equal."""

    function: str
    file: str
    first_line: int
    line: int


Stack: TypeAlias = tuple[StackFrame, ...]  # the innermost first


@dataclass
class CpuProfile:
    """`stacks`: by thread and stack, how often it was seen at work, and its CPU time in nanoseconds."""

    started: int  # nanoseconds since the epoch
    seconds: float = 0.0
    stacks: dict[tuple[str, Stack], tuple[int, int]] = field(default_factory=dict)


def thread_cpu(native_id: int) -> int:
    """Return the CPU time of a thread in nanoseconds. Raises OSError if the thread has ended."""
    return time.clock_gettime_ns((~native_id << 3) | 6)  # Linux' clock of a thread; it is safe for one that has ended


class CpuSampler:
    def __init__(
        self,
        *,
        cpu_of: Callable[[int], int] = thread_cpu,
        frames: Callable[[], Mapping[int, FrameType]] = sys._current_frames,
        threads: Callable[[], list[threading.Thread]] = threading.enumerate,
        clock: Callable[[], float] = time.monotonic,
        interval: float = INTERVAL,
    ) -> None:
        self._cpu_of, self._frames, self._threads = cpu_of, frames, threads
        self._clock, self._interval = clock, interval

    def sample(self, seconds: float, stopped: Callable[[float], bool]) -> CpuProfile:
        """Sample for so long. `stopped` waits for the seconds that it is given, and is true if it is time to end."""
        begun, profile = self._clock(), CpuProfile(time.time_ns())
        used = self._used()
        while not stopped(self._interval) and self._clock() < begun + seconds:
            now = self._used()
            self._take(profile, {ident: spent - used.get(ident, 0) for ident, spent in now.items()})
            used = now
        profile.seconds = self._clock() - begun
        return profile

    def _used(self) -> dict[int, int]:
        """Return the CPU time of each thread but this one."""
        found, own = {}, threading.get_ident()
        for thread in self._threads():
            if thread.ident is not None and thread.native_id is not None and thread.ident != own:
                try:
                    found[thread.ident] = self._cpu_of(thread.native_id)
                except OSError:  # it has ended
                    continue
        return found

    def _take(self, profile: CpuProfile, spent: Mapping[int, int]) -> None:
        names = {thread.ident: thread.name for thread in self._threads()}
        frames = self._frames()
        for ident, nanoseconds in spent.items():
            if nanoseconds > 0 and ident in frames:
                key = names.get(ident, str(ident)), self._stack(frames[ident])
                count, sum_ = profile.stacks.get(key, (0, 0))
                profile.stacks[key] = count + 1, sum_ + nanoseconds

    def _stack(self, innermost: FrameType) -> Stack:
        found: list[StackFrame] = []
        frame: FrameType | None = innermost
        while frame is not None and len(found) < DEEPEST:
            code = frame.f_code
            function = f"{frame.f_globals.get('__name__', '?')}.{code.co_qualname}"
            found.append(StackFrame(function, code.co_filename, code.co_firstlineno, frame.f_lineno or 0))
            frame = frame.f_back
        return tuple(found)
