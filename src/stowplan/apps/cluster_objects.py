"""The objects of a cluster: listed from its API server, or read from files of `kubectl get -o yaml`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.manifests import documents
from stowplan.kube import credentials, event_loop, unreadable
from stowplan.kube.client import Client
from stowplan.kube.resources import RESOURCES, ApiResource
from stowplan.kube.transport import Transport
from stowplan.objects import kinds
from stowplan.objects.errors import ConfigError, StowplanError
from stowplan.objects.in_part import read_in_part
from stowplan.objects.meta import Object

Problem: TypeAlias = Callable[[str], None]  # gets what is told of an object that is skipped


def from_files(
    paths: Iterable[str | Path], brought: Mapping[str, ApiResource] | None = None, on_problem: Problem = lambda _: None
) -> tuple[list[Object], Counter[str]]:
    """Return the objects in the files, and the number of objects of each kind that is not used.

    `brought`: what plugins bring. An object of theirs that cannot be read is skipped; another one is an error.
    """
    return from_documents(documents(paths), brought, on_problem)


def from_documents(
    pairs: Iterable[tuple[str, Mapping[str, Any]]],
    brought: Mapping[str, ApiResource] | None = None,
    on_problem: Problem = lambda _: None,
) -> tuple[list[Object], Counter[str]]:
    """The same of documents, each with the name of its file."""
    found: list[Object] = []
    skipped: Counter[str] = Counter()
    for file, document in pairs:
        resource = next((each for each in (brought or {}).values() if each.matches(document)), None)
        if resource is not None:
            found += _readable(resource, [msgspec.json.encode(document, enc_hook=str)], on_problem)
            continue
        kind = kinds.name_of(document)
        if kind not in kinds.KINDS:
            skipped[kind] += 1
            continue
        try:
            found.append(kinds.convert(kinds.KINDS[kind], document))
        except ConfigError as error:
            raise error.located(file) from None
    return found, skipped


def from_cluster(
    wanted_kinds: Iterable[str],
    *,
    kubeconfig: str = "",
    context: str = "",
    brought: Mapping[str, ApiResource] | None = None,
    on_problem: Problem = lambda _: None,
) -> tuple[list[Object], str]:
    """Return all objects of these kinds, each kind at one resource version, and the namespace of the context.

    `brought`: what plugins bring. What counts instead of an object that cannot be read is what counts for a scheduler,
    too (`kube/unreadable.py`).
    """
    known = {**RESOURCES, **(brought or {})}
    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        return runner.run(_list([known[kind] for kind in sorted(wanted_kinds)], kubeconfig, context, on_problem))


async def _list(
    wanted: list[ApiResource], kubeconfig: str, context: str, on_problem: Problem
) -> tuple[list[Object], str]:
    access = credentials.load(kubeconfig or None, context or None)
    client = Client(Transport(access))
    try:
        lists = await asyncio.gather(*(list_kind(client, each, on_problem) for each in wanted))
    finally:
        await client.close()
    return [each for found in lists for each in found], access.namespace


async def list_kind(client: Client, wanted: ApiResource, on_problem: Problem) -> list[Object]:
    """Return all objects of a kind; none if the server does not serve it."""
    resource = await client.served(wanted)
    found: list[Object] = []
    if resource is not None:
        async for page in client.list_pages(resource):
            found += _readable(resource, map(bytes, page.items or ()), on_problem)
    return found


def _readable(resource: ApiResource, documents: Iterable[bytes], on_problem: Problem) -> Iterator[Object]:
    for document in documents:
        try:
            yield resource.decode(document)
        except StowplanError as error:
            instead = unreadable.substitute(resource, document, None)
            on_problem(resource.unreadable(error, read_in_part(Object, document).key, instead.so))
            if instead.counts is not None:
                yield instead.counts
