"""The pages of `stowplan place`, beside those that every program has.

GET  /debug/placements/NAMESPACE/NAME     a placement, explained; needs the right to get it
POST /debug/placements                    a placement that is not saved, as JSON; needs the right to create it
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from stowplan.apps.authorization import ResourceAttributes
from stowplan.apps.engine_pages import engine_pages, json_response, read_engine
from stowplan.apps.http_server import Pages
from stowplan.apps.place.explain_json import explained
from stowplan.apps.place.service import PlacementService
from stowplan.objects import kinds
from stowplan.objects.errors import StowplanError
from stowplan.objects.placements import GROUP, Placement
from stowplan.serving import web

READ_WITHIN = 10.0  # seconds
UNSAVED = "/debug/placements"
SAVED = UNSAVED + "/{namespace}/{name}"


def of(service: PlacementService, loop: asyncio.AbstractEventLoop) -> Pages:
    """`loop` is the engine's: a page that reads the engine does so there."""

    async def explain(wanted: Placement | str) -> web.PageResponse:
        try:
            found = await read_engine(_explained(service, wanted), loop, READ_WITHIN)
        except TimeoutError:
            return _problem(503, "the engine is busy")
        return _problem(404, f"there is no placement {wanted}") if found is None else json_response(found)

    async def saved(request: web.PageRequest) -> web.PageResponse:
        return await explain(f"{request.match_info['namespace']}/{request.match_info['name']}")

    async def unsaved(request: web.PageRequest) -> web.PageResponse:
        return await explain(await sent(request))

    pages = engine_pages(service, service.engine_loop, service.metrics.text)
    pages.readiness["definitions"] = lambda: f"the hub has no {', '.join(service.missing)}" if service.missing else ""
    pages.get[SAVED] = saved
    pages.post = {UNSAVED: unsaved, f"{UNSAVED}/": unsaved}
    pages.resource_of = resource_of
    return pages


async def _explained(service: PlacementService, wanted: Placement | str) -> dict[str, Any] | None:
    service.engine_loop.handle_inbox()
    engine = service.engine_loop.engine
    placement = engine.placements.get(wanted) if isinstance(wanted, str) else wanted
    return None if placement is None else explained(engine.choose(placement, time.time()))


async def resource_of(request: web.PageRequest) -> ResourceAttributes | None:
    """Return the right that the request needs."""
    matched = request.match_info
    if request.path.rstrip("/") == UNSAVED and request.method == "POST":
        return _right("create", (await sent(request)).namespace)
    if request.path.startswith(f"{UNSAVED}/") and "name" in matched:
        return _right("get", matched["namespace"]) | {"name": matched["name"]}
    return None


def _right(verb: str, namespace: str) -> ResourceAttributes:
    return {"verb": verb, "group": GROUP, "resource": "placements", "namespace": namespace}


async def sent(request: web.PageRequest) -> Placement:
    """Return the placement in a request's body. Raises HTTPBadRequest if there is none."""
    if not isinstance(request.decoded, Placement):
        request.decoded = await _decoded(request)
    return request.decoded


async def _decoded(request: web.PageRequest) -> Placement:
    try:
        document = kinds.decode_plain(await request.read())
    except web.HTTPRequestEntityTooLarge:
        raise _refused(f"found more than {request.client_max_size} bytes") from None
    except StowplanError as error:
        raise _refused(f"found no JSON: {error}") from None
    except RecursionError:
        raise _refused("found JSON that is nested too deeply") from None
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


def _problem(status: int, message: str) -> web.PageResponse:
    return json_response(_status(status, message), status)


def _status(code: int, message: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
