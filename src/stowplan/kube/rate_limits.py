"""Backoff between attempts, and a limit of requests per second. The random generator comes from the caller."""

from __future__ import annotations

import asyncio
import random


class Backoff:
    """Waits that double from `first` to `longest`, with jitter."""

    def __init__(self, generator: random.Random, first: float = 0.2, longest: float = 30.0) -> None:
        self._generator, self._first, self._longest = generator, first, longest
        self.reset()

    def reset(self) -> None:
        """Start again with the shortest wait."""
        self._next = self._first

    def wait(self, at_least: float | None = None) -> float:
        """Seconds until the next attempt; with the Retry-After of a server, at least that."""
        ceiling, self._next = self._next, min(2 * self._next, self._longest)
        drawn = ceiling * self._generator.uniform(0.5, 1.0)
        return drawn if at_least is None else at_least + drawn


class TokenBucket:
    """At most `qps` requests per second, with bursts of `burst`. Requests are served in order."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps, self._burst = qps, max(burst, 1)
        self._saved, self._at = float(self._burst), 0.0

    async def take(self) -> None:
        pause = self.pause(asyncio.get_running_loop().time())
        if pause:
            await asyncio.sleep(pause)

    def pause(self, now: float) -> float:
        """Take a token. Seconds to wait before the request may be sent; 0 in most cases."""
        self._saved = min(self._burst, self._saved + (now - self._at) * self._qps)
        self._at = now
        self._saved -= 1  # a negative number is paid off by waiting
        return -self._saved / self._qps if self._saved < 0 else 0.0
