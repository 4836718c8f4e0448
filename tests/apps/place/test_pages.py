"""The placement in a request: which right it needs, and how often it is decoded."""

from __future__ import annotations

import asyncio

import msgspec

from stowplan.apps.place import pages
from stowplan.serving import web

PLACEMENT = {"kind": "Placement", "metadata": {"name": "a", "namespace": "ns"}, "spec": {}}


class CountedBody:
    complete = True

    def __init__(self) -> None:
        self.reads = 0

    async def read(self, most: int) -> bytes:
        self.reads += 1
        return msgspec.json.encode(PLACEMENT)


def test_a_placement_is_decoded_once() -> None:
    body = CountedBody()
    request = web.PageRequest("POST", pages.UNSAVED.encode(), web.Headers(), body, None)
    right = asyncio.run(pages.resource_of(request))
    assert right is not None and (right["verb"], right["namespace"]) == ("create", "ns")
    assert asyncio.run(pages.sent(request)) is asyncio.run(pages.sent(request)) and body.reads == 1
