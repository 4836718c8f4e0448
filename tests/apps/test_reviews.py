"""Questions to the API server: how many are asked at once, who waits, who is refused, and what is remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from stowplan.apps import reviews
from stowplan.apps.reviews import AT_ONCE, MOST_WAITING, CrowdedError, RecentAnswers, ReviewLine


class Reviewer:
    """Answers when a test lets it."""

    def __init__(self) -> None:
        self.line, self.go = ReviewLine(), asyncio.Event()
        self.begun: list[int] = []
        self.cancelled: list[int] = []

    def about(self, number: int) -> Callable[[], Awaitable[int]]:
        async def review() -> int:
            self.begun.append(number)
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled.append(number)
                raise
            return number

        return review

    def ask(self, number: int) -> asyncio.Task[int]:
        return asyncio.create_task(self.line.ask(b"%d" % number, self.about(number)))


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def left(task: asyncio.Task[int]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await turns()


def test_few_are_asked_at_once_few_wait_and_the_others_are_refused() -> None:
    async def story() -> None:
        reviewer = Reviewer()
        tasks = [reviewer.ask(number) for number in range(AT_ONCE + MOST_WAITING)]
        await turns()
        assert len(reviewer.begun) == AT_ONCE
        with pytest.raises(CrowdedError):
            await reviewer.ask(1000)
        reviewer.go.set()
        assert await asyncio.gather(*tasks) == list(range(AT_ONCE + MOST_WAITING))
        await turns()
        assert len(reviewer.line) == 0

    asyncio.run(story())


def test_a_question_is_asked_once_however_many_ask_it() -> None:
    async def story() -> None:
        reviewer = Reviewer()
        tasks = [reviewer.ask(7) for _ in range(50)]
        await turns()
        await left(tasks.pop())
        reviewer.go.set()
        assert await asyncio.gather(*tasks) == [7] * 49 and reviewer.begun == [7]

    asyncio.run(story())


def test_who_leaves_gives_up_its_place_but_a_review_under_way_goes_on() -> None:
    async def story() -> None:
        reviewer = Reviewer()
        tasks = [reviewer.ask(number) for number in range(AT_ONCE + MOST_WAITING)]
        await turns()
        for task in tasks:
            await left(task)
        assert len(reviewer.line) == AT_ONCE and reviewer.cancelled == []
        again = reviewer.ask(AT_ONCE)
        reviewer.go.set()
        assert await again == AT_ONCE and reviewer.begun == list(range(AT_ONCE + 1))

    asyncio.run(story())


def test_the_wait_is_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "REVIEW_WITHIN", 0.05)

    async def story() -> None:
        reviewer = Reviewer()
        tasks = [reviewer.ask(number) for number in range(AT_ONCE + 3)]
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in found] == [TimeoutError] * len(tasks)
        await turns()
        assert len(reviewer.line) == 0

    asyncio.run(story())


def test_what_a_review_raises_is_raised_to_all_who_ask() -> None:
    async def story() -> None:
        line = ReviewLine()

        async def fails() -> int:
            await asyncio.sleep(0)
            raise ZeroDivisionError

        found = await asyncio.gather(*(line.ask(b"", fails) for _ in range(2)), return_exceptions=True)
        assert [type(each) for each in found] == [ZeroDivisionError] * 2

    asyncio.run(story())


def test_answers_leave_by_time_and_the_oldest_by_number() -> None:
    now = 0.0
    recent = RecentAnswers[int](3, 10.0, lambda: now)
    for number in range(5):
        now = float(number)
        recent.keep(b"%d" % number, number)
    assert [recent.get(b"%d" % number) for number in range(5)] == [None, None, 2, 3, 4]
    recent.keep(b"2", 20)
    now = 13.5
    assert recent.get(b"3") is None and recent.get(b"2") == 20 and len(recent) == 2
    now = 14.0
    assert recent.get(b"other") is None and len(recent) == 0
