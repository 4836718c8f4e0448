"""A client that does not think: binds the pods of a namespace to one node after the other, as fast as it is answered.

    python -m benchmarks.live.floor --kubeconfig FILE --namespace NAME [--events]

With `--events` it writes an event for each binding, when all bindings are answered: a scheduler may keep events back
while pods wait, as ours does, so the floor has the same freedom. Bindings and events are written from the same prepared
bytes as ours. No scheduler on this machine can be much faster. When all is done it waits to be ended: its figures are
read from outside.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from datetime import UTC, datetime

import click
import msgspec

from stowplan.kube import credentials, event_loop, prepared_requests
from stowplan.kube.client import Client
from stowplan.kube.prepared_requests import Prepared
from stowplan.kube.resources import PODS, RESOURCES, ApiResource
from stowplan.kube.transport import Transport
from stowplan.objects.actions import Bind, PodRef, Record

AT_ONCE = 32
CONTROLLER = "floor"


class _Meta(msgspec.Struct):
    name: str
    uid: str


class _Object(msgspec.Struct):
    metadata: _Meta


_object = msgspec.json.Decoder(_Object)


@click.command()
@click.option("--kubeconfig", required=True)
@click.option("--namespace", required=True)
@click.option("--events", is_flag=True, help="Write an event for each binding, last.")
def main(kubeconfig: str, namespace: str, events: bool) -> None:
    """Bind all pods of a namespace without a thought."""
    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        runner.run(bind_all(kubeconfig, namespace, events))


async def bind_all(kubeconfig: str, namespace: str, events: bool) -> None:
    client = Client(Transport(credentials.load(kubeconfig), connections=AT_ONCE))
    nodes = [meta.name for meta in await listed(client, RESOURCES["Node"])]
    pods = [PodRef(namespace, meta.name, meta.uid) for meta in await listed(client, PODS, namespace)]
    pairs = list(zip(pods, itertools.cycle(nodes), strict=False))
    await write_all(client, (prepared_requests.binding(Bind(pod=pod, node_name=node)) for pod, node in pairs))
    if events:
        await write_all(client, (event(pod, node) for pod, node in pairs))
    await asyncio.Event().wait()


async def write_all(client: Client, requests: Iterable[Prepared | None]) -> None:
    waiting = iter(requests)

    async def work() -> None:
        for request in waiting:
            assert request is not None, "the benchmark's names need no escapes"
            (await client.post(*request)).checked("POST")

    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work())


async def listed(client: Client, resource: ApiResource, namespace: str = "") -> list[_Meta]:
    pages = client.list_pages(resource, namespace=namespace)
    return [_object.decode(item).metadata async for page in pages for item in page.items or ()]


def event(pod: PodRef, node: str) -> Prepared | None:
    record = Record(
        pod=pod,
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned {pod.namespace}/{pod.name} to {node}",
        reporting_controller=CONTROLLER,
    )
    return prepared_requests.event(record, name=f"{pod.name}.{pod.uid}", at=datetime.now(UTC), host=CONTROLLER)


if __name__ == "__main__":
    main()
