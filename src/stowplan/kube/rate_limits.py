"""When to try again, and how often to ask at most. Chance is an argument: the generator comes from the caller."""

from __future__ import annotations

import asyncio
import random


class Backoff:
    """Waits that double from `first` to `longest`, each drawn from its upper half so that clients spread out."""

    def __init__(self, generator: random.Random, first: float = 0.2, longest: float = 30.0) -> None:
        self._generator, self._first, self._longest = generator, first, longest
        self.reset()

    def reset(self) -> None:
        """All is well again: the next wait is the first one."""
        self._next = self._first

    def wait(self, at_least: float | None = None) -> float:
        """Seconds until the next try; a server's Retry-After is the least, and is jittered upwards."""
        ceiling, self._next = self._next, min(2 * self._next, self._longest)
        drawn = ceiling * self._generator.uniform(0.5, 1.0)
        return drawn if at_least is None else at_least + drawn


class TokenBucket:
    """At most `qps` requests a second, with `burst` of them saved up. Who comes first goes first."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps, self._burst = qps, max(burst, 1)
        self._saved, self._at = float(self._burst), 0.0

    async def take(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._saved = min(self._burst, self._saved + (now - self._at) * self._qps)
        self._at = now
        self._saved -= 1  # below zero: it is owed, and paid for by waiting
        if self._saved < 0:
            await asyncio.sleep(-self._saved / self._qps)
