"""Memory that a peak leaves behind goes back to the system.

The C library keeps freed memory for the next time. After a peak (a long expression was compiled, a huge list was read)
that may be many megabytes, for good. So the program asks it to give them back: soon after it has grown, as nobody knows
when the peak is over, then less and less often.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

INTERVAL = 4.0  # seconds
LONGEST_WAIT = 64  # intervals
GROWTH = 4 << 20  # bytes; less is not worth the time
_STATM = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE")


async def keep_trimmed() -> None:
    """Runs until it is cancelled; ends at once where the C library cannot give memory back."""
    trim = _trim()
    if trim is None:
        return
    trimmer = MemoryTrimmer(resident, trim)
    while True:
        await asyncio.sleep(INTERVAL)
        with suppress(OSError):  # no file descriptor may be free
            trimmer.look()


class MemoryTrimmer:
    def __init__(self, resident: Callable[[], int], trim: Callable[[], object]) -> None:
        self._resident, self._trim = resident, trim
        self._left = resident()  # after the last trim
        self._looks, self._wait = 0, 1  # since the last trim, and until the next one

    def look(self) -> None:
        """Trim if it is time, or if the program has grown."""
        now, self._looks = self._resident(), self._looks + 1
        grown = now - self._left >= GROWTH
        if not grown and self._looks < self._wait:
            return
        self._trim()
        self._left = self._resident()
        gave_back = now - self._left >= GROWTH
        self._looks, self._wait = 0, 1 if grown or gave_back else min(self._wait * 2, LONGEST_WAIT)


def resident() -> int:
    """The resident bytes of this process (Linux)."""
    return int(_STATM.read_text(encoding="ascii").split()[1]) * _PAGE


def _trim() -> Callable[[], object] | None:
    """glibc's malloc_trim, which musl and macOS do not have."""
    if not _STATM.exists():
        return None
    function = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return None if function is None else lambda: function(0)
