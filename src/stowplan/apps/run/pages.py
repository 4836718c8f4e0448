"""The scheduler's pages: what each path shows, and at which doors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from aiohttp import web

from stowplan.apps import printing
from stowplan.apps.http_server import Pages
from stowplan.apps.run.options import RunningScheduler

STUCK_AFTER = 60.0  # seconds without a heartbeat of the engine's loop
LOOK_WITHIN = 5.0


def of(running: RunningScheduler, loop: asyncio.AbstractEventLoop) -> Pages:
    """`loop` is the engine's: whatever reads the engine does so there."""

    def beating() -> str:
        silent = 0.0 if running.live is None else time.monotonic() - running.live.beat
        return f"no heartbeat for {silent:.0f} s" if silent > STUCK_AFTER else ""

    async def metrics(request: web.Request) -> web.Response:
        text, kind = running.metrics.text(request.headers.get("Accept", ""))
        return web.Response(body=text, headers={"Content-Type": kind})

    async def configz(_request: web.Request) -> web.Response:
        body = {"kubescheduler.config.k8s.io": msgspec.to_builtins(running.loaded.configuration, enc_hook=str)}
        return _json(body)

    async def looked_up(reading: Coroutine[Any, Any, Any], nothing: str) -> web.Response:
        future = asyncio.run_coroutine_threadsafe(reading, loop)
        try:
            async with asyncio.timeout(LOOK_WITHIN):
                found = await asyncio.wrap_future(future)
        except TimeoutError:
            return _json({"message": "the engine is busy"}, status=503)
        return _json({"message": nothing}, status=404) if found is None else _json(found)

    async def decision(request: web.Request) -> web.Response:
        key = f"{request.match_info['namespace']}/{request.match_info['pod']}"
        return await looked_up(_latest(running, key), f"no decision about {key} is remembered")

    async def podgroups(_request: web.Request) -> web.Response:
        return await looked_up(_groups(running), "the engine has not begun yet")

    async def leading(_request: web.Request) -> web.Response:
        return web.Response(text="leading\n" if running.leading else "following\n")

    return Pages(
        checks={"ping": lambda: "", "engine": beating},
        ready={"informer-sync": lambda: "" if running.synced else "caches are not synced yet"},
        others={
            "/metrics": metrics,
            "/configz": configz,
            "/leader": leading,
            "/debug/decisions/{namespace}/{pod}": decision,
            "/debug/podgroups": podgroups,
        },
    )


async def _latest(running: RunningScheduler, key: str) -> dict[str, Any] | None:
    if running.live is None:
        return None
    pod = running.reflectors["Pod"].known.objects.get(key)
    found = None if pod is None else running.live.engine.decisions.latest(pod.uid)
    return None if found is None else printing.decided(found)


async def _groups(running: RunningScheduler) -> dict[str, Any] | None:
    if running.live is None:
        return None
    groups, now = running.live.engine.groups, time.monotonic()
    return printing.grouped(groups.recent(now), datetime.now(UTC) - timedelta(seconds=now))


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(body, enc_hook=str), status=status, content_type="application/json")
