"""CPU time of the program's threads, by stack, while it runs.

    the main thread    gets a signal after each 10 ms of CPU time (`cpu_timer`), and notes where it is: the program
                       decides there, in pieces of work that are shorter than the interpreter's turns of threads
    all others         are looked at a hundred times per second; what the kernel has counted for a thread since the
                       last look goes to the stack that it has now

So the sum is CPU time, not the time that passed: a thread that waits gets nothing. Python code notices a signal, and
lets other threads look, between two of its instructions: a long call of C code counts for the line after it at the
latest. If the main thread is too busy to prepare for signals, it is looked at like the others; then it is seen well.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import NamedTuple, TypeAlias

from stowplan.apps.profiling.cpu_timer import SIGNAL, CpuTimer, cpu_clock
from stowplan.apps.thread_frames import no_collection

INTERVAL = 0.01  # seconds
DEEPEST = 200  # frames of a stack; the outer ones beyond it are left out


class StackFrame(NamedTuple):
    """A line of a function."""

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

    def add(self, thread: str, innermost: FrameType, nanoseconds: int) -> None:
        key = thread, stack_of(innermost)
        count, total = self.stacks.get(key, (0, 0))
        self.stacks[key] = count + 1, total + nanoseconds


def stack_of(innermost: FrameType) -> Stack:
    found: list[StackFrame] = []
    frame: FrameType | None = innermost
    while frame is not None and len(found) < DEEPEST:
        code = frame.f_code
        function = f"{frame.f_globals.get('__name__', '?')}.{code.co_qualname}"
        found.append(StackFrame(function, code.co_filename, code.co_firstlineno, frame.f_lineno or 0))
        frame = frame.f_back
    return tuple(found)


def thread_cpu(native_id: int) -> int:
    """Return the CPU time of a thread in nanoseconds. Raises OSError if the thread has ended."""
    return time.clock_gettime_ns(cpu_clock(native_id))


class MainThread:
    """Notes, at each signal, where the main thread is. `prepare` must be called in that thread, once."""

    def __init__(self) -> None:
        self.prepared = False
        self._profile: CpuProfile | None = None
        self._used = 0

    def prepare(self) -> None:
        """Handle the signals. They are handled for ever: a late one must not end the process."""
        if not self.prepared and threading.current_thread() is threading.main_thread():
            signal.signal(SIGNAL, self._handle)
            self.prepared = True

    @contextmanager
    def noted(self, profile: CpuProfile) -> Iterator[bool]:
        """Note into this profile; whether that is possible."""
        timer = self._timer()
        if timer is None:
            yield False
            return
        self._used, self._profile = thread_cpu(_main_id()), profile
        try:
            yield True
        finally:
            timer.stop()
            self._profile = None

    def _timer(self) -> CpuTimer | None:
        try:
            return CpuTimer(_main_id(), INTERVAL) if self.prepared else None
        except OSError:  # a system without such timers, or with no right to them
            return None

    def _handle(self, _: int, innermost: FrameType | None) -> None:
        profile, used = self._profile, time.thread_time_ns()
        if profile is not None and innermost is not None:
            profile.add(threading.main_thread().name, innermost, used - self._used)
            self._used = used


def _main_id() -> int:
    found = threading.main_thread().native_id
    assert found is not None
    return found


class CpuSampler:
    """`main` must be prepared by the main thread; otherwise that one is looked at like all others."""

    def __init__(
        self,
        main: MainThread,
        *,
        cpu_of: Callable[[int], int] = thread_cpu,
        frames: Callable[[], Mapping[int, FrameType]] = sys._current_frames,
        threads: Callable[[], list[threading.Thread]] = threading.enumerate,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._main, self._cpu_of, self._frames, self._threads, self._clock = main, cpu_of, frames, threads, clock

    def sample(self, seconds: float, stopped: Callable[[float], bool]) -> CpuProfile:
        """Sample for so long. `stopped` waits for the seconds that it is given, and is true if it is time to end."""
        begun, profile, left_out = self._clock(), CpuProfile(time.time_ns()), {threading.get_ident()}
        with self._main.noted(profile) as is_noted:
            if is_noted:
                left_out.add(threading.main_thread().ident or 0)
            used = self._used(left_out)
            while not stopped(INTERVAL) and self._clock() < begun + seconds:
                now = self._used(left_out)
                self._take(profile, {ident: spent - used.get(ident, 0) for ident, spent in now.items()})
                used = now
        profile.seconds = self._clock() - begun
        return profile

    def _used(self, left_out: set[int]) -> dict[int, int]:
        """Return the CPU time of each thread but these."""
        found = {}
        for thread in self._threads():
            if thread.ident is not None and thread.native_id is not None and thread.ident not in left_out:
                try:
                    found[thread.ident] = self._cpu_of(thread.native_id)
                except OSError:  # it has ended
                    continue
        return found

    def _take(self, profile: CpuProfile, spent: Mapping[int, int]) -> None:
        names = {thread.ident: thread.name for thread in self._threads()}
        with no_collection():
            frames = self._frames()
            for ident, nanoseconds in spent.items():
                if nanoseconds > 0 and ident in frames:
                    profile.add(names.get(ident, str(ident)), frames[ident], nanoseconds)
