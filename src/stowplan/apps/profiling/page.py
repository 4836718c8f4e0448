"""The page /debug/pprof/profile?seconds=N: the CPU time of the program by stack, over the next N seconds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from aiohttp import web

from stowplan.apps.http_server import Page
from stowplan.apps.profiling import pprof
from stowplan.apps.profiling.cpu_sampler import CpuProfile, CpuSampler

PATH = "/debug/pprof/profile"
DEFAULT_SECONDS, MOST_SECONDS = 30, 300
LOOK_EVERY = 0.1  # seconds, at whether the client is still there
OFF = "Profiling is off: set enableProfiling in the configuration, or give --profiling.\n"


def profile_page(is_on: Callable[[], bool], sampler: Callable[[], CpuSampler] = CpuSampler) -> Page:
    """Return the page. One profile is taken at a time."""
    busy = False

    async def page(request: web.Request) -> web.Response:
        nonlocal busy
        if not is_on():
            return web.Response(text=OFF, status=404)
        seconds = _seconds(request.query.get("seconds", str(DEFAULT_SECONDS)))
        if seconds is None:
            told = f"seconds: expected a whole number from 1 to {MOST_SECONDS}.\n"
            return web.Response(text=told, status=400)
        if busy:
            return web.Response(text="A profile is being taken already; try again later.\n", status=503)
        busy = True
        try:
            profile = await _taken(sampler(), seconds, request)
        finally:
            busy = False
        headers = {"Content-Disposition": 'attachment; filename="profile"', "X-Content-Type-Options": "nosniff"}
        return web.Response(body=pprof.encoded(profile), content_type="application/octet-stream", headers=headers)

    return page


def _seconds(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if is_number and 1 <= int(text) <= MOST_SECONDS else None


async def _taken(sampler: CpuSampler, seconds: int, request: web.Request) -> CpuProfile:
    """Sample in a thread. If the client goes away, or the page is cancelled, it ends."""
    stop, found = threading.Event(), list[CpuProfile]()
    thread = threading.Thread(
        target=lambda: found.append(sampler.sample(seconds, stop.wait)), name="profile", daemon=True
    )
    thread.start()
    try:
        while thread.is_alive():
            if request.transport is None or request.transport.is_closing():
                stop.set()
            await asyncio.sleep(LOOK_EVERY)
    finally:
        stop.set()
    return found[0]
