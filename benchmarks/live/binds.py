"""When pods are bound, as a watch of the benchmark sees it: the same for every measured program.

A watch costs the server a little. Only two names of each event are decoded. A server that is short of CPU ends watches
that it cannot feed in time; this one then continues where it was, and counts how often.
"""

from __future__ import annotations

import asyncio
import time

import msgspec

from benchmarks.live.cluster import Batch, ClusterError
from stowplan.kube.client import Client, WatchEvent, WatchStream, failure_of
from stowplan.kube.resources import PODS
from stowplan.kube.responses import UnreachableError

STALLED = 120.0  # seconds without a bind until a run is given up
LONGEST = 3600  # seconds that a watch may take


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


_pod = msgspec.json.Decoder(_Pod)


class Binds:
    """The times (monotonic) of the first and the last bind of a batch that a list of this version has."""

    def __init__(self, client: Client, batch: Batch, version: str) -> None:
        self.first = self.last = 0.0
        self.reopened = 0
        self.open = asyncio.Event()
        self._client, self._batch, self._version = client, batch, version
        self._bound: set[str] = set()

    async def follow(self) -> None:
        """Until all are bound; an error if that does not seem to happen any more."""
        self.last = time.monotonic()
        try:
            while not self._done:
                await self._follow_once()
                if time.monotonic() - self.last > STALLED:
                    raise ClusterError(f"{self._state}, and none for {STALLED:g} s")
                self.reopened += not self._done
        except UnreachableError as error:
            raise ClusterError(f"{self._state}, and then: {error}") from None
        finally:
            self.open.set()  # do not wait for what cannot be opened

    async def _follow_once(self) -> None:
        async with self._client.watch(
            PODS, self._version, namespace=self._batch.namespace, fields="", bookmarks=False, seconds=LONGEST,
            silence=STALLED,
        ) as watch:  # fmt: skip
            self.open.set()
            await self._read(watch)

    async def _read(self, watch: WatchStream) -> None:
        async for events in watch.batches():
            now, before = time.monotonic(), len(self._bound)
            for event in events:
                self._take(event)
            if len(self._bound) > before:
                self.first, self.last = self.first or now, now
            if self._done:
                return

    def _take(self, event: WatchEvent) -> None:
        if event.type == "ERROR":
            raise failure_of(event)
        pod = _pod.decode(event.object)
        self._version = pod.metadata.resource_version
        if pod.spec.node_name:
            self._bound.add(pod.metadata.name)

    @property
    def _done(self) -> bool:
        return len(self._bound) == self._batch.count

    @property
    def _state(self) -> str:
        return f"{len(self._bound)} of {self._batch.count} pods are bound"
