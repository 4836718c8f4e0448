"""The page /debug/pprof/profile?seconds=N: the CPU time of the program by stack, over the next N seconds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from stowplan.apps.http_server import Page
from stowplan.apps.profiling import pprof
from stowplan.apps.profiling.cpu_sampler import CpuProfile, CpuSampler, MainThread
from stowplan.serving import web

PATH = "/debug/pprof/profile"
DEFAULT_SECONDS, MOST_SECONDS = 30, 300
LOOK_EVERY = 0.1  # seconds, at whether the client is still there
PREPARE_WITHIN = 1.0  # seconds for the main thread
OFF = "Profiling is off: set enableProfiling in the configuration, or give --profiling.\n"


class ProfilePage:
    """`loop` is that of the main thread. One profile is taken at a time."""

    def __init__(
        self,
        is_on: Callable[[], bool],
        loop: asyncio.AbstractEventLoop | None = None,
        sampler: Callable[[MainThread], CpuSampler] = CpuSampler,
    ) -> None:
        self._is_on, self._loop, self._sampler = is_on, loop, sampler
        self._main, self._busy = MainThread(), False

    async def __call__(self, request: web.PageRequest) -> web.PageResponse:
        if not self._is_on():
            return web.PageResponse(text=OFF, status=404)
        seconds = _seconds(request.query.get("seconds", str(DEFAULT_SECONDS)))
        if seconds is None:
            told = f"seconds: expected a whole number from 1 to {MOST_SECONDS}.\n"
            return web.PageResponse(text=told, status=400)
        if self._busy:
            return web.PageResponse(text="A profile is being taken already; try again later.\n", status=503)
        self._busy = True
        try:
            await self._prepare()
            profile = await _taken(self._sampler(self._main), seconds, request)
        finally:
            self._busy = False
        headers = {"Content-Disposition": 'attachment; filename="profile"', "X-Content-Type-Options": "nosniff"}
        return web.PageResponse(body=pprof.encoded(profile), content_type="application/octet-stream", headers=headers)

    async def _prepare(self) -> None:
        """Let the main thread prepare for signals, if it has time for that."""
        if self._loop is None or self._main.prepared:
            return
        prepared = asyncio.Event()
        own = asyncio.get_running_loop()

        def prepare() -> None:
            self._main.prepare()
            own.call_soon_threadsafe(prepared.set)

        self._loop.call_soon_threadsafe(prepare)
        try:
            async with asyncio.timeout(PREPARE_WITHIN):
                await prepared.wait()
        except TimeoutError:
            return


def profile_page(is_on: Callable[[], bool], loop: asyncio.AbstractEventLoop) -> Page:
    return ProfilePage(is_on, loop)


def _seconds(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if is_number and 1 <= int(text) <= MOST_SECONDS else None


async def _taken(sampler: CpuSampler, seconds: int, request: web.PageRequest) -> CpuProfile:
    """Sample in a thread. If the client goes away, or the page is cancelled, it ends."""
    stop, found = threading.Event(), list[CpuProfile]()

    def take() -> None:
        found.append(sampler.sample(seconds, stop.wait))

    thread = threading.Thread(target=take, name="profile", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            if request.transport is None or request.transport.is_closing():
                stop.set()
            await asyncio.sleep(LOOK_EVERY)
    finally:
        stop.set()
    return found[0]
