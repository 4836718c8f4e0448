"""A kind that may be listed, and not watched: it is listed again after each pause, and the differences are sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from stowplan.kube.client import Client
from stowplan.kube.reflector import Sink
from stowplan.kube.reflector_cache import ReflectorCache
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import RefusedError, WireError
from stowplan.objects.changes import Change

SHORTEST, SHARE = 5.0, 20.0  # seconds; a pause is so many times as long as listing took


class PolledKind:
    """Run `run` as a task. `synced` is set once all existing objects have been sent."""

    def __init__(
        self,
        client: Client,
        resource: ApiResource,
        sink: Sink,
        on_problem: Callable[[str], None] = lambda _: None,
        namespace: str = "",
    ) -> None:
        self.resource = resource
        self.cache = ReflectorCache(resource, on_problem)
        self.synced = asyncio.Event()
        self._client, self._sink, self._on_problem, self._namespace = client, sink, on_problem, namespace

    async def run(self) -> None:
        """List the kind again and again, until cancelled."""
        while True:
            begun = time.monotonic()
            try:
                await self._list()
            except RefusedError as error:
                if error.status != 404:
                    self._on_problem(f"{self.resource.plural}: {error}")
                self.synced.set()
            except WireError as error:
                self._on_problem(f"{self.resource.plural}: {error}")
            await asyncio.sleep(max(SHORTEST, SHARE * (time.monotonic() - begun)))

    async def _list(self) -> None:
        resource = await self._client.served(self.resource)
        if resource is not None:
            seen: set[str] = set()
            async for page in self._client.list_pages(resource, namespace=self._namespace):
                self._send(self.cache.apply_page(page.items or (), seen))
                await asyncio.sleep(0)
            self._send(self.cache.remove_missing(seen))
        self.synced.set()

    def _send(self, changes: list[Change]) -> None:
        if changes:
            self._sink(changes)
