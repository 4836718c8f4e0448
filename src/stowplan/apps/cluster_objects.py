"""The objects of a cluster: listed from its API server, or read from files of `kubectl get -o yaml`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from stowplan.embedded.manifests import documents
from stowplan.kube import credentials, event_loop
from stowplan.kube.client import Client
from stowplan.kube.resources import RESOURCES
from stowplan.kube.transport import Transport
from stowplan.objects import kinds
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object


def from_files(paths: Iterable[str | Path]) -> tuple[list[Object], Counter[str]]:
    """Return the objects in the files, and the number of objects of each kind that is not used."""
    found: list[Object] = []
    skipped: Counter[str] = Counter()
    for file, document in documents(paths):
        kind = kinds.name_of(document)
        if kind not in kinds.KINDS:
            skipped[kind] += 1
            continue
        try:
            found.append(kinds.convert(kinds.KINDS[kind], document))
        except ConfigError as error:
            raise error.located(file) from None
    return found, skipped


def from_cluster(wanted_kinds: Iterable[str], *, kubeconfig: str = "", context: str = "") -> tuple[list[Object], str]:
    """Return all objects of these kinds, each kind at one resource version, and the namespace of the context."""
    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        return runner.run(_list(sorted(wanted_kinds), kubeconfig, context))


async def _list(wanted_kinds: list[str], kubeconfig: str, context: str) -> tuple[list[Object], str]:
    access = credentials.load(kubeconfig or None, context or None)
    client = Client(Transport(access))
    try:
        lists = await asyncio.gather(*(_list_kind(client, kind) for kind in wanted_kinds))
    finally:
        await client.close()
    return [each for found in lists for each in found], access.namespace


async def _list_kind(client: Client, kind: str) -> list[Object]:
    resource = await client.served(RESOURCES[kind])
    found: list[Object] = []
    if resource is not None:
        async for page in client.list_pages(resource):
            found += [kinds.decode(resource.object_type, bytes(item)) for item in page.items or ()]
    return found
