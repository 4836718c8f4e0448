"""A client that does not think: binds the pods of a namespace to one node after the other, as fast as it is answered.

    python -m benchmarks.live.floor --kubeconfig FILE --namespace NAME [--events]

With `--events` each binding is followed by its event, as a scheduler would have to write it that keeps no queue. No
scheduler on this machine can be much faster. When all is done it waits to be ended: its figures are read from outside.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from stowplan.kube import credentials, event_loop
from stowplan.kube.action_requests import ActionRequest
from stowplan.kube.client import Client
from stowplan.kube.resources import EVENTS, PODS, RESOURCES, ApiResource
from stowplan.kube.transport import Transport

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
@click.option("--events", is_flag=True, help="Write an event after each binding.")
def main(kubeconfig: str, namespace: str, events: bool) -> None:
    """Bind all pods of a namespace without a thought."""
    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        runner.run(bind_all(kubeconfig, namespace, events))


async def bind_all(kubeconfig: str, namespace: str, events: bool) -> None:
    client = Client(Transport(credentials.load(kubeconfig), connections=AT_ONCE))
    nodes = [meta.name for meta in await listed(client, RESOURCES["Node"])]
    pairs = zip(await listed(client, PODS, namespace), itertools.cycle(nodes), strict=False)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work(client, namespace, pairs, events))
    await asyncio.Event().wait()


async def work(client: Client, namespace: str, pairs: Iterator[tuple[_Meta, str]], events: bool) -> None:
    for pod, node in pairs:
        path = PODS.path(f"{namespace}/{pod.name}", "binding")
        answer = await client.send(ActionRequest("POST", path, binding(pod, namespace, node)))
        answer.checked("binding")
        if events:
            (await client.create(EVENTS, namespace, event(pod, namespace, node))).checked("event")


async def listed(client: Client, resource: ApiResource, namespace: str = "") -> list[_Meta]:
    pages = client.list_pages(resource, namespace=namespace)
    return [_object.decode(item).metadata async for page in pages for item in page.items or ()]


def binding(pod: _Meta, namespace: str, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod.name, "namespace": namespace, "uid": pod.uid},
        "target": {"kind": "Node", "name": node},
    }


def event(pod: _Meta, namespace: str, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{pod.name}.{pod.uid}", "namespace": namespace},
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": CONTROLLER,
        "reportingInstance": CONTROLLER,
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "note": f"Successfully assigned {namespace}/{pod.name} to {node}",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": pod.name, "uid": pod.uid},
    }


if __name__ == "__main__":
    main()
