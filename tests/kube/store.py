"""A fake kind in an API server of a few lines: lists in pages as of one moment, watches from any remembered version.

Faults are switches: `forget()` compacts the past, `cut()` breaks all watches, `hiccups` are answered first.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from functools import partial
from typing import Any

from aiohttp import web

from tests.kube.fakes import a_stream, refused

DEEP = '"deep"'  # a value that is sent as `Store.deep`


class Store:
    def __init__(self, path: str = "/api/v1/nodes") -> None:
        self.path = path
        self.served = True
        self.deep = DEEP
        self.objects: dict[str, dict[str, Any]] = {}
        self.log: list[tuple[int, str, dict[str, Any]]] = []
        self.version = 1
        self.oldest = 0
        self.hiccups: list[web.Response] = []
        self.expire_pages = 0  # how many continued lists are answered with 410
        self._changed = asyncio.Condition()
        self._epoch = 0
        self._uids = itertools.count(1)
        self._snapshots: dict[str, list[dict[str, Any]]] = {}

    # -- the world

    async def put(self, name: str, **labels: str) -> None:
        old = self.objects.get(name)
        uid = old["metadata"]["uid"] if old else f"uid-{next(self._uids)}"
        await self._happen("MODIFIED" if old else "ADDED", {"metadata": {"name": name, "uid": uid, "labels": labels}})

    async def delete(self, name: str) -> None:
        await self._happen("DELETED", {"metadata": {**self.objects[name]["metadata"]}})

    async def _happen(self, kind: str, document: dict[str, Any]) -> None:
        self.version += 1
        document["metadata"]["resourceVersion"] = str(self.version)
        name = document["metadata"]["name"]
        if kind == "DELETED":
            del self.objects[name]
        else:
            self.objects[name] = document
        await self.say(kind, document)

    async def say(self, kind: str, document: dict[str, Any]) -> None:
        self.log.append((self.version, kind, document))
        async with self._changed:
            self._changed.notify_all()

    async def cut(self) -> None:
        """Break all watches off."""
        self._epoch += 1
        async with self._changed:
            self._changed.notify_all()

    def forget(self) -> None:
        """Drop the history: older versions get 410."""
        self.oldest = self.version

    # -- the server

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if self.hiccups:
            return self.hiccups.pop(0)
        if request.path != self.path or not self.served:
            return refused(404, "the server could not find the requested resource")
        return await (self._watch(request) if "watch" in request.query else self._list(request))

    async def _list(self, request: web.Request) -> web.Response:
        token = request.query.get("continue", "")
        if token and self.expire_pages:
            self.expire_pages -= 1
            return refused(410, "the provided continue parameter is too old")
        version, _, start = token.partition(":") if token else (str(self.version), "", "0")
        all_items = self._snapshots.setdefault(version, list(self.objects.values()))
        end = int(start) + int(request.query.get("limit", len(all_items) or 1))
        more = f"{version}:{end}" if end < len(all_items) else ""
        metadata = {"resourceVersion": version, "continue": more}
        found = {"kind": "List", "metadata": metadata, "items": all_items[int(start) : end]}
        return web.Response(body=self._written(found), content_type="application/json")

    def _written(self, document: dict[str, Any]) -> bytes:
        return json.dumps(document).replace(DEEP, self.deep).encode()

    def _has_news(self, at: int, epoch: int) -> bool:
        return len(self.log) > at or epoch != self._epoch

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        told, epoch = int(request.query["resourceVersion"]), self._epoch
        if told < self.oldest:
            return refused(410, f"too old resource version: {told} ({self.oldest})")
        response = a_stream()
        await response.prepare(request)
        at = next((place for place, (version, _, _) in enumerate(self.log) if version > told), len(self.log))
        while epoch == self._epoch:
            for _, kind, document in self.log[at:]:
                await response.write(self._written({"type": kind, "object": document}) + b"\n")
            at = len(self.log)
            async with self._changed:
                await self._changed.wait_for(partial(self._has_news, at, epoch))
        assert request.transport is not None
        await response.write(b'{"type": "MODIFIED", "obj')
        request.transport.abort()
        return response
