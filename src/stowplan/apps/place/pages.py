"""The pages of `stowplan place`: health, metrics, who leads, and why a placement has which clusters.

GET  /debug/placements/NAMESPACE/NAME     a placement as it is; needs the right to get it
POST /debug/placements                    one that is not saved, as JSON; needs the right to create it
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
from aiohttp import web

from stowplan.apps.authorization import Attributes
from stowplan.apps.http_server import Pages
from stowplan.apps.place.explain_json import explained
from stowplan.apps.place.options import RunningPlacement
from stowplan.objects import kinds
from stowplan.objects.errors import StowplanError
from stowplan.objects.placements import GROUP, Placement

STUCK_AFTER = 60.0  # seconds without a heartbeat of the engine's loop
LOOK_WITHIN = 10.0
UNSAVED = "/debug/placements"
SAVED = UNSAVED + "/{namespace}/{name}"
LARGEST = 1024 * 1024  # bytes


def of(running: RunningPlacement, loop: asyncio.AbstractEventLoop) -> Pages:
    """`loop` is the engine's: whatever reads the engine does so there."""

    async def metrics(request: web.Request) -> web.Response:
        text, kind = running.metrics.text(request.headers.get("Accept", ""))
        return web.Response(body=text, headers={"Content-Type": kind})

    async def leading(_request: web.Request) -> web.Response:
        return web.Response(text="leading\n" if running.leading else "following\n")

    async def explain(what: Placement | str) -> web.Response:
        future = asyncio.run_coroutine_threadsafe(_explained(running, what), loop)
        try:
            async with asyncio.timeout(LOOK_WITHIN):
                found = await asyncio.wrap_future(future)
        except TimeoutError:
            return _problem(503, "the engine is busy")
        return _problem(404, f"there is no placement {what}") if found is None else _json(found)

    async def saved(request: web.Request) -> web.Response:
        return await explain(f"{request.match_info['namespace']}/{request.match_info['name']}")

    async def unsaved(request: web.Request) -> web.Response:
        return await explain(await sent(request))

    return Pages(
        checks={"ping": lambda: "", "engine": lambda: _silence(running)},
        ready={
            "informer-sync": lambda: "" if running.synced else "caches are not synced yet",
            "definitions": lambda: f"the hub has no {', '.join(running.missing)}" if running.missing else "",
        },
        others={"/metrics": metrics, "/leader": leading, SAVED: saved},
        posts={UNSAVED: unsaved, f"{UNSAVED}/": unsaved},
        about=about,
    )


def _silence(running: RunningPlacement) -> str:
    silent = 0.0 if running.live is None else time.time() - running.live.beat
    return f"no heartbeat for {silent:.0f} s" if silent > STUCK_AFTER else ""


async def _explained(running: RunningPlacement, what: Placement | str) -> dict[str, Any] | None:
    if running.live is None:
        return None
    engine = running.live.engine
    running.live.take_in()
    placement = engine.placements.get(what) if isinstance(what, str) else what
    return None if placement is None else explained(engine.choose(placement, time.time()))


async def about(request: web.Request) -> Attributes | None:
    """Which right it takes."""
    matched = request.match_info
    if request.path.rstrip("/") == UNSAVED and request.method == "POST":
        return _right("create", (await sent(request)).namespace)
    if request.path.startswith(f"{UNSAVED}/") and "name" in matched:
        return _right("get", matched["namespace"]) | {"name": matched["name"]}
    return None


def _right(verb: str, namespace: str) -> Attributes:
    return {"verb": verb, "group": GROUP, "resource": "placements", "namespace": namespace}


async def sent(request: web.Request) -> Placement:
    """The placement in a request's body; an answer of its own where there is none."""
    try:
        document = msgspec.json.decode(await request.read())
    except web.HTTPRequestEntityTooLarge:
        raise _refused(f"found more than {LARGEST} bytes") from None
    except msgspec.DecodeError as error:
        raise _refused(f"found no JSON: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != "Placement":
        found = document.get("kind") if isinstance(document, dict) else type(document).__name__
        raise _refused(f"kind: found {found!r}, expected Placement")
    try:
        placement = kinds.convert(Placement, document)
    except StowplanError as error:
        raise _refused(str(error)) from None
    if not placement.namespace:
        raise _refused("metadata.namespace: found nothing, expected the namespace whose clusters are meant")
    return placement


def _refused(message: str) -> web.HTTPBadRequest:
    return web.HTTPBadRequest(text=msgspec.json.encode(_status(400, message)).decode(), content_type="application/json")


def _problem(status: int, message: str) -> web.Response:
    return _json(_status(status, message), status)


def _status(code: int, message: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(body, enc_hook=str), status=status, content_type="application/json")
