"""Which kinds may be followed: each is listed, and watched for a moment, before anything is judged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import cast

from stowplan.kube.client import Client, ObjectPage
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import RefusedError
from stowplan.objects.errors import ConfigError

NEEDED = ("Pod", "Node")
FORBIDDEN = (401, 403)


async def readable(client: Client, wanted: Iterable[ApiResource]) -> tuple[list[ApiResource], list[str]]:
    """Return the kinds that may be followed, and the names of the others. Pods and nodes must be among the first."""
    listed = list(wanted)
    refusals = await asyncio.gather(*(_refusal(client, each) for each in listed))
    found, unseen = list[ApiResource](), list[str]()
    for resource, refusal in zip(listed, refusals, strict=True):
        if refusal is None:
            found.append(resource)
        elif resource.kind in NEEDED:
            remedy = "deploy/shadow.yaml has the rights that shadow needs"
            raise ConfigError(f"{resource.plural} cannot be listed and watched: {refusal}", remedy=remedy)
        else:
            unseen.append(f"{resource.plural}.{resource.group}" if resource.group else resource.plural)
    return found, unseen


async def _refusal(client: Client, wanted: ApiResource) -> str | None:
    """Return why a kind may not be followed; None if it may, or if it is not served."""
    try:
        resource = await client.served(wanted)
        if resource is None:
            return None
        version = ""
        listed = cast("AsyncGenerator[ObjectPage, None]", client.list_pages(resource, limit=1))
        async with aclosing(listed) as pages:
            async for page in pages:
                version = page.metadata.resource_version
                break
        async with client.watch(resource, version, seconds=1):
            return None
    except RefusedError as error:
        return error.message if error.status in FORBIDDEN else None
