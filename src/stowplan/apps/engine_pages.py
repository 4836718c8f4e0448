"""The pages that every service has: health, metrics, and whether this replica leads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from stowplan.apps.engine_loop import Engine, EngineLoop
from stowplan.apps.http_server import Pages
from stowplan.apps.program import Program
from stowplan.serving import web

STUCK_AFTER = 60.0  # seconds without a heartbeat of the engine's loop

T = TypeVar("T")


def engine_pages(
    program: Program, engine_loop: EngineLoop[Engine], exposition: Callable[[str], tuple[bytes, str]]
) -> Pages:
    """`exposition` returns the metrics and their content type, for an Accept header."""
    return program_pages(program, lambda: engine_loop.silence, exposition)


def program_pages(
    program: Program, silence: Callable[[], float], exposition: Callable[[str], tuple[bytes, str]]
) -> Pages:
    """`silence` returns the seconds since the program's loop last showed that it is alive."""

    def heartbeat() -> str:
        return f"no heartbeat for {silence():.0f} s" if silence() > STUCK_AFTER else ""

    async def metrics(request: web.PageRequest) -> web.PageResponse:
        text, content_type = exposition(request.headers.get("Accept", ""))
        return web.PageResponse(body=text, headers={"Content-Type": content_type})

    async def leader(_request: web.PageRequest) -> web.PageResponse:
        return web.PageResponse(text="leading\n" if program.leading else "following\n")

    return Pages(
        health={"ping": lambda: "", "engine": heartbeat},
        readiness={"informer-sync": lambda: "" if program.synced else "caches are not synced yet"},
        get={"/metrics": metrics, "/leader": leader},
    )


async def read_engine(reading: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop, within: float) -> T:
    """Run a coroutine that reads the engine in the engine's loop. Raises TimeoutError if the loop is busy."""
    future = asyncio.run_coroutine_threadsafe(reading, loop)
    async with asyncio.timeout(within):
        return await asyncio.wrap_future(future)


def json_response(body: object, status: int = 200) -> web.PageResponse:
    return web.PageResponse(
        body=msgspec.json.encode(body, enc_hook=str), status=status, content_type="application/json"
    )
