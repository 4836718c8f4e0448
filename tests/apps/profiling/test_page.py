"""The page of CPU profiles: when it answers, and with what."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable

import pytest

from stowplan.apps.profiling.cpu_sampler import CpuProfile, CpuSampler, MainThread
from stowplan.apps.profiling.page import PATH, ProfilePage
from stowplan.serving import web


class Canned(CpuSampler):
    """Knows what it found before; with `hold` it goes on until it is stopped."""

    def __init__(self, hold: bool = False) -> None:
        super().__init__(MainThread())
        self.hold, self.seconds, self.ended = hold, list[float](), 0

    def sample(self, seconds: float, stopped: Callable[[float], bool]) -> CpuProfile:
        self.seconds.append(seconds)
        while self.hold and not stopped(60):
            pass
        self.ended += 1
        return CpuProfile(started=1)


class Transport(asyncio.Transport):
    closing = False

    def is_closing(self) -> bool:
        return self.closing

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default


class NoBody:
    complete = True

    async def read(self, most: int) -> bytes:
        return b""[:most]


def request(query: str = "", transport: Transport | None = None) -> web.PageRequest:
    return web.PageRequest("GET", f"{PATH}{query}".encode(), web.Headers(), NoBody(), transport or Transport())


def asked(query: str = "", *, on: bool = True, sampler: Canned | None = None) -> web.PageResponse:
    page = ProfilePage(lambda: on, sampler=lambda _: sampler or Canned())

    async def ask() -> web.PageResponse:
        return await page(request(query))

    return asyncio.run(ask())


def test_a_profile() -> None:
    sampler = Canned()
    answer = asked("?seconds=5", sampler=sampler)
    assert (answer.status, answer.headers["Content-Type"], sampler.seconds) == (200, "application/octet-stream", [5])
    assert gzip.decompress(answer.body)
    asked(sampler=sampler)
    assert sampler.seconds[1] == 30, "as Go's programs have it"


def test_profiling_that_is_off() -> None:
    answer = asked(on=False)
    assert answer.status == 404 and b"set enableProfiling" in answer.body


@pytest.mark.parametrize("seconds", ["0", "-1", "301", "1.5", "x", "", "9" * 30, "٣"])
def test_seconds_that_are_none(seconds: str) -> None:
    answer = asked(f"?seconds={seconds}")
    assert answer.status == 400 and answer.body == b"seconds: expected a whole number from 1 to 300.\n"


def test_one_at_a_time_and_none_for_nobody() -> None:
    sampler, transport = Canned(hold=True), Transport()
    page = ProfilePage(lambda: True, sampler=lambda _: sampler)

    async def story() -> list[int]:
        first = asyncio.ensure_future(page(request(transport=transport)))
        async with asyncio.timeout(60):
            while not sampler.seconds:
                await asyncio.sleep(0.005)
            refused = await page(request())
            transport.closing = True  # the client went away
            await first
            sampler.hold = False
            return [refused.status, (await page(request())).status]

    assert asyncio.run(story()) == [503, 200]
    assert sampler.ended == 2
