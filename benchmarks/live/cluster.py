"""The cluster that everybody plays on: nodes that stay, pods that come and go with each run, events that are counted.

All through our own client, some requests at a time. Pods and events of the run before are deleted and seen to be gone
before the next one begins, so each contender finds the same empty cluster.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from benchmarks import object_templates
from benchmarks.workload import CreateNodes, Template
from stowplan.kube.client import Client
from stowplan.kube.resources import EVENTS, PODS, RESOURCES, ApiResource
from stowplan.kube.responses import Response

NODES, NAMESPACES = RESOURCES["Node"], RESOURCES["Namespace"]
AT_ONCE = 32
PATIENCE = 60.0  # seconds without a further event until the missing ones are called missing
LOOK_EVERY = 0.1  # seconds
CLEAR_WITHIN = 120.0
SCHEDULED = "Scheduled"


class ClusterError(RuntimeError):
    """The run cannot be counted; the text says why."""


@dataclass(frozen=True)
class Batch:
    """The pods of a run."""

    namespace: str
    templates: Sequence[Template]
    count: int


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    remaining_item_count: int = 0


class _Count(msgspec.Struct):
    items: list[msgspec.Raw] | None = None
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


class _Regarding(msgspec.Struct):
    name: str = ""


class _Event(msgspec.Struct):
    reason: str = ""
    regarding: _Regarding = msgspec.field(default_factory=_Regarding)


_count = msgspec.json.Decoder(_Count)
_event = msgspec.json.Decoder(_Event)


class LiveCluster:
    def __init__(self, client: Client) -> None:
        self.client = client
        self._nodes: tuple[CreateNodes, int] | None = None
        self._namespaces = {"default"}

    # -- what stays

    async def have_nodes(self, operation: CreateNodes, count: int) -> None:
        """So many nodes, no fewer than before: those there are stay."""
        made_by, there = self._nodes or (operation, 0)
        if made_by != operation or there > count:
            raise ClusterError("the workloads of one run share their nodes, and sizes grow")
        documents = object_templates.documents(object_templates.node_templates(operation), range(there, count))
        await in_parallel(documents, lambda document: self._post(NODES, "", document))
        self._nodes = operation, count

    async def have_namespace(self, name: str) -> None:
        if name not in self._namespaces:
            await self._post(NAMESPACES, "", msgspec.json.encode({"metadata": {"name": name}}))
            self._namespaces.add(name)

    # -- what comes and goes

    async def create_pods(self, batch: Batch) -> str:
        """All of the batch; the version of the list that has them, from which on to watch."""
        documents = object_templates.documents(batch.templates, range(batch.count))
        await in_parallel(documents, lambda document: self._post(PODS, batch.namespace, document))
        return await self.version(batch.namespace)

    async def version(self, namespace: str) -> str:
        """The version of the list of pods, from which on to watch."""
        return (await self._head(PODS, namespace)).metadata.resource_version

    async def clear(self) -> None:
        """No pods and no events, in no namespace of ours."""
        for namespace in sorted(self._namespaces):
            for resource in (PODS, EVENTS):
                await self._clear(resource, namespace)

    async def _clear(self, resource: ApiResource, namespace: str) -> None:
        deadline = time.monotonic() + CLEAR_WITHIN
        while await self.count(resource, namespace):
            if time.monotonic() > deadline:
                raise ClusterError(f"{resource.plural} of the run before are still there after {CLEAR_WITHIN:g} s")
            await self.client.transport.request(
                "DELETE", resource.collection(namespace), params={"gracePeriodSeconds": "0"}, timeout=CLEAR_WITHIN
            )

    async def _post(self, resource: ApiResource, namespace: str, document: bytes) -> Response:
        path = resource.collection(namespace)
        return (await self.client.transport.request("POST", path, body=document)).checked(f"POST {path}")

    # -- what is counted

    async def count(self, resource: ApiResource, namespace: str) -> int:
        """How many there are, without reading them."""
        head = await self._head(resource, namespace)
        return len(head.items or ()) + head.metadata.remaining_item_count

    async def _head(self, resource: ApiResource, namespace: str) -> _Count:
        path = resource.collection(namespace)
        answer = await self.client.transport.request("GET", path, params={"limit": "1"})
        return _count.decode(answer.checked(f"GET {path}").body)

    async def all_events(self, batch: Batch) -> float:
        """When (monotonic) each pod of the batch had its event; an error if one is missing and none comes any more."""
        best, deadline = 0, time.monotonic() + PATIENCE
        while True:
            there, now = await self.count(EVENTS, batch.namespace), time.monotonic()
            if there >= batch.count:
                there = len(await self._scheduled(batch))  # of others, FailedScheduling say, there may be any number
                if there >= batch.count:
                    return now
            if there > best:
                best, deadline = there, now + PATIENCE
            elif now > deadline:
                there = len(await self._scheduled(batch))
                raise ClusterError(f"{batch.count - there} of {batch.count} {SCHEDULED} events were not written")
            await asyncio.sleep(LOOK_EVERY)

    async def _scheduled(self, batch: Batch) -> set[str]:
        """The names of the pods that have such an event."""
        names = set()
        async for page in self.client.list_pages(EVENTS, namespace=batch.namespace, limit=5000):
            events = [_event.decode(item) for item in page.items or ()]
            names |= {event.regarding.name for event in events if event.reason == SCHEDULED}
        return names


async def in_parallel(items: Iterable[bytes], do: Callable[[bytes], Awaitable[Response]]) -> None:
    """`do` for each item, so many at a time, in order."""
    waiting = iter(items)

    async def work() -> None:
        for item in waiting:
            await do(item)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work())
