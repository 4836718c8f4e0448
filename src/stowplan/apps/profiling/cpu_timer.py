"""A signal to the main thread each time that it has used so much of the CPU.

Linux' timers on the CPU clock of a thread (timer_create) have no function in Python's library, so C's library is
called. While the thread waits its clock stands still, and no signal comes. The signal has a real-time number: those of
`signal.setitimer` belong to the watchdog.
"""

from __future__ import annotations

import ctypes
import os
import signal

SIGNAL = signal.SIGRTMIN + 10
TO_A_THREAD = 4  # SIGEV_THREAD_ID


class _SignalEvent(ctypes.Structure):
    """C's struct sigevent, as Linux has it."""

    _fields_ = (
        ("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("kind", ctypes.c_int), ("thread", ctypes.c_int),
        ("rest", ctypes.c_char * 44),
    )  # fmt: skip


class _Times(ctypes.Structure):
    """C's struct itimerspec: an interval and a first time, each in seconds and nanoseconds."""

    _fields_ = (
        ("interval_s", ctypes.c_long), ("interval_ns", ctypes.c_long),
        ("first_s", ctypes.c_long), ("first_ns", ctypes.c_long),
    )  # fmt: skip


def cpu_clock(native_id: int) -> int:
    """Return the number of the CPU clock of a thread. It is safe for one that has ended: reading it is an error."""
    return (~native_id << 3) | 6


class CpuTimer:
    """Runs from the beginning until `stop`, which any thread may call. Raises OSError if there are no such timers."""

    def __init__(self, native_id: int, interval: float) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._timer = ctypes.c_void_p()
        event = _SignalEvent(signal=SIGNAL, kind=TO_A_THREAD, thread=native_id)
        clock = ctypes.c_int(cpu_clock(native_id))
        self._check("timer_create", clock, ctypes.byref(event), ctypes.byref(self._timer))
        seconds, rest = divmod(round(interval * 1e9), 1_000_000_000)
        times = _Times(seconds, rest, seconds, rest)
        self._check("timer_settime", self._timer, ctypes.c_int(0), ctypes.byref(times), None)

    def stop(self) -> None:
        self._check("timer_delete", self._timer)

    def _check(self, function: str, *arguments: object) -> None:
        try:
            failed = getattr(self._library, function)(*arguments)
        except AttributeError:
            raise OSError(f"there is no {function}") from None
        if failed:
            number = ctypes.get_errno()
            raise OSError(number, f"{function}: {os.strerror(number)}")
