"""Which kinds may be followed, which only listed, and which not even that: each is tried once.

deploy/read-only.yaml lets nobody watch. A kind that may only be listed is listed again and again (`polling`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import cast

from stowplan.kube.client import Client, ObjectPage
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import RefusedError
from stowplan.objects.errors import ConfigError

NEEDED = ("Pod", "Node")
FORBIDDEN = (401, 403)


@dataclass
class FollowableKinds:
    """`watched` and `listed` are kinds that can be read; `unseen` are the names of all others."""

    watched: list[ApiResource] = field(default_factory=list)
    listed: list[ApiResource] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)


async def followable(client: Client, wanted: Iterable[ApiResource]) -> FollowableKinds:
    """Try all kinds. Raises ConfigError if pods or nodes cannot be listed."""
    kinds, found = list(wanted), FollowableKinds()
    answers = await asyncio.gather(*(_tried(client, each) for each in kinds))
    for resource, (may_list, may_watch, refusal) in zip(kinds, answers, strict=True):
        if may_list:
            (found.watched if may_watch else found.listed).append(resource)
        elif resource.kind in NEEDED:
            remedy = "deploy/read-only.yaml has the rights that the pages need"
            raise ConfigError(f"{resource.plural} cannot be listed: {refusal}", remedy=remedy)
        else:
            found.unseen.append(f"{resource.plural}.{resource.group}" if resource.group else resource.plural)
    return found


async def _tried(client: Client, wanted: ApiResource) -> tuple[bool, bool, str]:
    """Return whether a kind may be listed and watched, and why not."""
    resource = await client.served(wanted)
    if resource is None:
        return True, True, ""  # it may be served later
    try:
        version = ""
        listed = cast("AsyncGenerator[ObjectPage, None]", client.list_pages(resource, limit=1))
        async with aclosing(listed) as pages:
            async for page in pages:
                version = page.metadata.resource_version
                break
    except RefusedError as error:
        if error.status not in FORBIDDEN:
            raise
        return False, False, error.message
    try:
        async with client.watch(resource, version, seconds=1):
            return True, True, ""
    except RefusedError as error:
        return True, error.status not in FORBIDDEN, error.message
