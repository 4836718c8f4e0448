"""Questions to the API server that strangers cause: each is asked once at a time, few at once, and few wait.

    asker ─┐                    ┌─ AT_ONCE are asked
    asker ─┼─► one review ──────┤
    asker ─┘   per question     └─ MOST_WAITING wait; a question beyond them is refused (CrowdedError)

A review has REVIEW_WITHIN seconds, and the wait is part of them. An asker that leaves is forgotten at once, and so is
a question that waits and that nobody asks any more. A review that is under way is not cancelled for that: it would cost
the connection to the API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

AT_ONCE = 2
MOST_WAITING = 16
REVIEW_WITHIN = 5.0  # seconds
CONNECTIONS = 2 * AT_ONCE  # that a client needs for two lines

A = TypeVar("A")


class CrowdedError(Exception):
    """Too many questions wait."""


@dataclass(eq=False)
class _Asked:
    """A question, and how many wait for its answer."""

    task: asyncio.Task[Any]
    askers: int = 0
    under_way: bool = False


class ReviewLine:
    def __init__(self) -> None:
        self._asked: dict[bytes, _Asked] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    def __len__(self) -> int:
        """Return how many questions wait or are under way."""
        return len(self._asked)

    async def ask(self, question: bytes, review: Callable[[], Awaitable[A]]) -> A:
        """Return the review's answer, or raise what it raises. Raises TimeoutError if it takes too long."""
        asked = self._asked.get(question)
        if asked is None:
            if len(self._asked) >= AT_ONCE + MOST_WAITING:
                raise CrowdedError
            task = asyncio.get_running_loop().create_task(self._answer(question, review))
            asked = self._asked[question] = _Asked(task)
            task.add_done_callback(lambda _: self._forget(question, asked))
        asked.askers += 1
        try:
            answer: A | Exception = await asyncio.shield(asked.task)
        finally:
            asked.askers -= 1
            if not asked.askers and not asked.under_way:
                asked.task.cancel()
                self._forget(question, asked)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _answer(self, question: bytes, review: Callable[[], Awaitable[A]]) -> A | Exception:
        """Return what went wrong, too: perhaps nobody is left to whom it could be raised."""
        try:
            async with asyncio.timeout(REVIEW_WITHIN), self._turns:
                self._asked[question].under_way = True
                return await review()
        except Exception as error:
            return error

    def _forget(self, question: bytes, asked: _Asked) -> None:
        if self._asked.get(question) is asked:
            del self._asked[question]

    def close(self) -> None:
        for each in self._asked.values():
            each.task.cancel()


class RecentAnswers(Generic[A]):
    """Answers by question, for some seconds each; the oldest go first if there are too many."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float]) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._found: dict[bytes, tuple[float, A]] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._found)

    def get(self, question: bytes) -> A | None:
        self._expire()
        found = self._found.get(question)
        return None if found is None else found[1]

    def keep(self, question: bytes, answer: A) -> None:
        self._found.pop(question, None)
        self._expire()
        if len(self._found) >= self._most:
            del self._found[next(iter(self._found))]
        self._found[question] = self._clock(), answer

    def _expire(self) -> None:
        """Forget what is too old, whether or not somebody asks for it again."""
        oldest = self._clock() - self._seconds
        while self._found and (first := next(iter(self._found.items())))[1][0] <= oldest:
            del self._found[first[0]]
