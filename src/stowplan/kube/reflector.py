"""One kind of the cluster, told to a sink as changes: first all there is, then all that happens.

    absent ◄── not served ──┐
      │ looks again         │
      ▼                     │
    listing ── all pages ─► watching ── broken or ended ─► watching, from where it stopped
      ▲                        │
      └── 410: too long ago ───┘   (the list is compared with what was told: nothing is lost or told twice)

A sink gets lists: whatever arrived at once. It is called in the event loop, so it should only take note.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from stowplan.kube.client import Client, WatchEvent, failure_of
from stowplan.kube.rate_limits import Backoff
from stowplan.kube.reflector_cache import ReflectorCache
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import RefusedError, UnreachableError, WireError
from stowplan.objects.changes import Change

Sink: TypeAlias = Callable[[list[Change]], None]

PASSING = frozenset((429, 500, 502, 503))  # the watch goes on where it stopped; after any other refusal, list again
LOOK_AGAIN_AFTER = 10.0  # seconds until a kind that was not served is looked for again
WATCH_FOR = (300.0, 600.0)  # seconds; drawn, so that watches do not all end at once
AT_LEAST = 1.0  # a watch that ended sooner than this without an event is not begun again at once


class Reflector:
    """`run` it as a task; `synced` is set once all there is has been told (nothing, if the kind is not served)."""

    def __init__(
        self,
        client: Client,
        resource: ApiResource,
        sink: Sink,
        *,
        on_problem: Callable[[str], None] = lambda _: None,
        keep_raw: bool = False,
        page_size: int = 500,
        look_again_after: float = LOOK_AGAIN_AFTER,
        backoff: Backoff | None = None,
    ) -> None:
        self.resource = resource
        self.known = ReflectorCache(resource, on_problem, keep_raw=keep_raw)
        self.synced = asyncio.Event()
        self.served = True
        self._client, self._sink, self._on_problem = client, sink, on_problem
        self._page_size, self._look_again_after = page_size, look_again_after
        self._generator = client.transport.generator
        self._backoff = backoff or Backoff(self._generator, longest=10.0)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                resource = await self._client.served(self.resource)
                if resource is None:
                    await self._wait_for_it()
                    continue
                await self._list(resource)
                await self._watch(resource)
            except RefusedError as error:
                await (self._wait_for_it() if error.status == 404 else self._pause(error))
            except WireError as error:
                await self._pause(error)

    def learn(self, change: Change, document: bytes = b"") -> None:
        """Tell what a single read found out, unless it is known already."""
        self._tell(self.known.learned(change, document))

    async def _wait_for_it(self) -> None:
        """The kind is not served, or no longer: nothing of it is there. Perhaps later."""
        self._tell(self.known.vanished(set()))
        self.served = False
        self.synced.set()
        await asyncio.sleep(self._look_again_after * self._generator.uniform(0.75, 1.25))

    async def _list(self, resource: ApiResource) -> None:
        try:
            await self._list_once(resource, self._page_size)
        except RefusedError as error:
            if error.status != 410:
                raise
            await self._list_once(resource, 0)  # its pages expired while they were read: all of it at once
        self.served = True
        self.synced.set()

    async def _list_once(self, resource: ApiResource, limit: int) -> None:
        seen: set[str] = set()
        version = ""
        async for page in self._client.list_pages(resource, limit=limit):
            self._tell(self.known.listed(page.items or (), seen))
            version = page.metadata.resource_version
        self._tell(self.known.vanished(seen))
        self.known.resource_version = version

    async def _watch(self, resource: ApiResource) -> None:
        """Follow what happens, over as many connections as it takes, until the past we need is forgotten (410)."""
        while True:
            try:
                await self._watch_once(resource)
            except RefusedError as error:
                if error.status == 410:
                    await asyncio.sleep(self._backoff.wait())
                    return
                if error.status not in PASSING:
                    raise
                await self._pause(error)
            except UnreachableError as error:
                await self._pause(error)

    async def _watch_once(self, resource: ApiResource) -> None:
        loop = asyncio.get_running_loop()
        begun, version = loop.time(), self.known.resource_version
        seconds = int(self._generator.uniform(*WATCH_FOR))
        async with self._client.watch(resource, version, seconds=seconds) as watch:
            async for events in watch.batches():
                self._take(events)
                self._backoff.reset()
        if self.known.resource_version == version and loop.time() - begun < AT_LEAST:
            raise UnreachableError("a watch ended as soon as it had begun")

    def _take(self, events: list[WatchEvent]) -> None:
        changes: list[Change] = []
        try:
            for event in events:
                if event.type == "ERROR":
                    raise failure_of(event)
                changes += self.known.happened(event)
        finally:
            self._tell(changes)

    def _tell(self, changes: list[Change]) -> None:
        if changes:
            self._sink(changes)

    async def _pause(self, error: WireError) -> None:
        self._on_problem(f"{self.resource.plural}: {error}")
        await asyncio.sleep(self._backoff.wait(error.retry_after if isinstance(error, RefusedError) else None))
