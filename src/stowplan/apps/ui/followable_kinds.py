"""Which kinds may be followed, which only listed, and which not even that: each is tried once.

deploy/read-only.yaml lets nobody watch. A kind that may only be listed is listed again and again (`polling`). Who may
not list the pods of all namespaces sees those of the namespaces where that is allowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import cast

from stowplan.kube.client import Client, ObjectPage
from stowplan.kube.resources import RESOURCES, ApiResource
from stowplan.kube.responses import RefusedError
from stowplan.objects.errors import ConfigError

POD, NEEDED = "Pod", ("Pod", "Node")
NAMESPACES = RESOURCES["Namespace"]
MOST_NAMESPACES = 200  # that are tried one by one
FORBIDDEN = (401, 403)


@dataclass
class FollowableKinds:
    """`watched` and `listed` are kinds that can be read; `unseen` are the names of all others.

    `namespaces`: where pods can be read, if not everywhere, and whether they may be watched there. `left_out`: the
    other namespaces.
    """

    watched: list[ApiResource] = field(default_factory=list)
    listed: list[ApiResource] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    namespaces: dict[str, bool] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


async def followable(client: Client, wanted: Iterable[ApiResource], own: str) -> FollowableKinds:
    """Try all kinds. Raises ConfigError if nodes, or pods anywhere, cannot be listed.

    `own`: the namespace of the context.
    """
    kinds, found = list(wanted), FollowableKinds()
    answers = await asyncio.gather(*(_tried(client, each) for each in kinds))
    for resource, (may_list, may_watch, refusal) in zip(kinds, answers, strict=True):
        if may_list:
            (found.watched if may_watch else found.listed).append(resource)
        elif resource.kind == POD and await _by_namespace(client, resource, own, found):
            continue
        elif resource.kind in NEEDED:
            remedy = "deploy/read-only.yaml has the rights that the pages need"
            raise ConfigError(f"{resource.plural} cannot be listed: {refusal}", remedy=remedy)
        else:
            found.unseen.append(f"{resource.plural}.{resource.group}" if resource.group else resource.plural)
    return found


async def _by_namespace(client: Client, pods: ApiResource, own: str, found: FollowableKinds) -> bool:
    """Try to read pods in each namespace. False if that is allowed nowhere."""
    names: list[str] = []
    try:
        async for page in client.list_pages(NAMESPACES):
            names += [NAMESPACES.decode(bytes(item)).name for item in page.items or ()]
    except RefusedError:
        names = [own]
    chosen = sorted(names, key=lambda name: name != own)[:MOST_NAMESPACES]
    answers = await asyncio.gather(*(_tried(client, pods, name) for name in chosen))
    for name, (may_list, may_watch, _) in zip(chosen, answers, strict=True):
        if may_list:
            found.namespaces[name] = may_watch
    found.left_out = sorted(set(names) - set(found.namespaces))
    return bool(found.namespaces)


async def _tried(client: Client, wanted: ApiResource, namespace: str = "") -> tuple[bool, bool, str]:
    """Return whether a kind may be listed and watched, and why not."""
    resource = await client.served(wanted)
    if resource is None:
        return True, True, ""  # it may be served later
    try:
        version = ""
        listed = cast("AsyncGenerator[ObjectPage, None]", client.list_pages(resource, namespace=namespace, limit=1))
        async with aclosing(listed) as pages:
            async for page in pages:
                version = page.metadata.resource_version
                break
    except RefusedError as error:
        if error.status not in FORBIDDEN:
            raise
        return False, False, error.message
    try:
        async with client.watch(resource, version, namespace=namespace, seconds=1):
            return True, True, ""
    except RefusedError as error:
        return True, error.status not in FORBIDDEN, error.message
