"""Follows one kind, and sends its changes to a sink: first all existing objects, then every change.

    absent ◄── not served ──┐
      │ checks again        │
      ▼                     │
    listing ── all pages ─► watching ── broken or ended ─► watching, from the last resource version
      ▲                        │
      └── 410: too old ────────┘   (the list is compared with the cache: no change is lost or sent twice)

The sink gets all changes that arrived together. It is called in the event loop, so it must not block. No document ends
a reflector: what cannot be read of one object is that object's alone (`unreadable`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeAlias

from stowplan.kube.client import Client, WatchEvent, failure_of
from stowplan.kube.rate_limits import Backoff
from stowplan.kube.reflector_cache import ReflectorCache
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import RefusedError, UnreachableError, WireError
from stowplan.kube.unreadable import UnreadableObject
from stowplan.objects.changes import Change

Sink: TypeAlias = Callable[[list[Change]], None]

RESUMED = frozenset((429, 500, 502, 503))  # the watch is resumed; after any other refusal the kind is listed again
RECHECK_INTERVAL = 10.0  # seconds between two checks for a kind that is not served
WATCH_SECONDS = (300.0, 600.0)  # seconds; random, so that watches do not all end at once
SLICE = 100  # objects of a page that are decoded in one go
MIN_WATCH_SECONDS = 1.0  # seconds; a watch that ended sooner without an event is retried with backoff


class Reflector:
    """Run `run` as a task. `synced` is set when all existing objects have been sent, or the kind is not served.

    `namespace`: follow the objects of this namespace only. `heard`: when the server last said anything about the kind,
    by `time.monotonic`.
    """

    def __init__(
        self,
        client: Client,
        resource: ApiResource,
        sink: Sink,
        *,
        namespace: str = "",
        on_problem: Callable[[str], None] = lambda _: None,
        on_unreadable: Callable[[UnreadableObject], None] = lambda _: None,
        keep_raw: bool = False,
        page_size: int = 500,
        recheck_after: float = RECHECK_INTERVAL,
        backoff: Backoff | None = None,
    ) -> None:
        self.resource = resource
        self.cache = ReflectorCache(resource, on_problem, keep_raw=keep_raw, on_unreadable=on_unreadable)
        self.synced = asyncio.Event()
        self.served = True
        self.heard = time.monotonic()
        self._client, self._sink, self._on_problem = client, sink, on_problem
        self._namespace, self._page_size, self._recheck_after = namespace, page_size, recheck_after
        self._generator = client.transport.generator
        self._backoff = backoff or Backoff(self._generator, longest=10.0)

    async def run(self) -> None:
        """Follow the kind until cancelled."""
        while True:
            try:
                resource = await self._client.served(self.resource)
                if resource is None:
                    await self._wait_until_served()
                    continue
                await self._list(resource)
                await self._watch(resource)
            except RefusedError as error:
                await (self._wait_until_served() if error.status == 404 else self._pause(error))
            except WireError as error:
                await self._pause(error)
            except Exception as error:  # whatever it is, the other objects of the kind must go on
                await self._pause(WireError(f"{type(error).__name__}: {error}"))

    def learn(self, change: Change, document: bytes = b"") -> None:
        """Send the result of a single read, unless it is known already."""
        self._send(self.cache.apply_read(change, document))

    async def _wait_until_served(self) -> None:
        """The kind is not served: all known objects are gone. Check again later."""
        self._send(self.cache.remove_missing(set()))
        self.served = False
        self.heard = time.monotonic()
        self.synced.set()
        await asyncio.sleep(self._recheck_after * self._generator.uniform(0.75, 1.25))

    async def _list(self, resource: ApiResource) -> None:
        try:
            await self._list_once(resource, self._page_size)
        except RefusedError as error:
            if error.status != 410:
                raise
            await self._list_once(resource, 0)  # the list expired between two pages: list all at once
        self.served = True
        self.synced.set()

    async def _list_once(self, resource: ApiResource, limit: int) -> None:
        seen: set[str] = set()
        version = ""
        async for page in self._client.list_pages(resource, namespace=self._namespace, limit=limit):
            self.heard = time.monotonic()
            items = page.items or ()
            for begin in range(0, len(items), SLICE):
                self._send(self.cache.apply_page(items[begin : begin + SLICE], seen))
                await asyncio.sleep(0)  # health, the lease and other lists go on
            version = page.metadata.resource_version
        self._send(self.cache.remove_missing(seen))
        self.cache.resource_version = version

    async def _watch(self, resource: ApiResource) -> None:
        """Watch, over as many connections as necessary, until the resource version is too old (410)."""
        while True:
            try:
                await self._watch_once(resource)
            except RefusedError as error:
                if error.status == 410:
                    await asyncio.sleep(self._backoff.wait())
                    return
                if error.status not in RESUMED:
                    raise
                await self._pause(error)
            except UnreachableError as error:
                await self._pause(error)

    async def _watch_once(self, resource: ApiResource) -> None:
        loop = asyncio.get_running_loop()
        begun, version = loop.time(), self.cache.resource_version
        seconds = int(self._generator.uniform(*WATCH_SECONDS))
        async with self._client.watch(resource, version, namespace=self._namespace, seconds=seconds) as watch:
            self.heard = time.monotonic()
            async for events in watch.batches():
                self.heard = time.monotonic()
                self._apply(events)
                self._backoff.reset()
        if self.cache.resource_version == version and loop.time() - begun < MIN_WATCH_SECONDS:
            raise UnreachableError("a watch ended at once")

    def _apply(self, events: list[WatchEvent]) -> None:
        changes: list[Change] = []
        try:
            for event in events:
                if event.type == "ERROR":
                    raise failure_of(event)
                changes += self.cache.apply_event(event)
        finally:
            self._send(changes)

    def _send(self, changes: list[Change]) -> None:
        if changes:
            self._sink(changes)

    async def _pause(self, error: WireError) -> None:
        problem = f"{self.resource.plural}: {error}"
        if self.resource.brought_by and isinstance(error, RefusedError) and error.status == 403:
            problem += f"; plugin {self.resource.brought_by} needs this right: `stowplan config check --rbac` prints it"
        self._on_problem(problem)
        await asyncio.sleep(self._backoff.wait(error.retry_after if isinstance(error, RefusedError) else None))
