"""Reads the documents of a dump from an API server: whole kinds, page by page, with rights to list and no others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from stowplan.apps.explain.sources import FORBIDDEN, LEASE_NAMESPACE, LIMIT_RANGES, NEEDED, OWNERS, QUOTAS
from stowplan.kube import credentials
from stowplan.kube.client import Client
from stowplan.kube.resources import RESOURCES, ApiResource
from stowplan.kube.responses import RefusedError
from stowplan.kube.transport import Transport
from stowplan.objects import kinds
from stowplan.objects.errors import ConfigError, StowplanError
from stowplan.simulation.dump.contents import CONTENTS

Json = dict[str, Any]
_FURTHER = {"LimitRange": LIMIT_RANGES, "ResourceQuota": QUOTAS, **OWNERS}
LISTED = {kind: RESOURCES.get(kind) or _FURTHER[kind] for kind in CONTENTS}

NAMED = {ours: name for (name, _), ours in kinds.NAMESAKES.items()}  # the names that the API has for these kinds


class ClusterReader:
    """`unseen`: the resources that may not be read."""

    def __init__(self, kubeconfig: str = "", context: str = "", on_document: Callable[[], None] = lambda: None) -> None:
        self.unseen: list[str] = []
        self._kubeconfig, self._context, self._on_document = kubeconfig, context, on_document

    async def read(self, brought: Mapping[str, ApiResource]) -> list[Json]:
        """Return the documents of every kind that a dump has; those that plugins bring, too."""
        client = Client(Transport(credentials.load(self._kubeconfig or None, self._context or None)))
        try:
            found: list[Json] = []
            for resource in {**LISTED, **brought}.values():
                found += await self._of_kind(client, resource)
            return found
        finally:
            await client.close()

    async def _of_kind(self, client: Client, wanted: ApiResource) -> list[Json]:
        found: list[Json] = []
        try:
            resource = await client.served(msgspec.structs.replace(wanted, fields="", labels=""))
            if resource is None:
                return found
            kind = {"apiVersion": resource.root.removeprefix("/apis/").removeprefix("/api/")}
            kind["kind"] = NAMED.get(resource.kind) or resource.api_kind or resource.kind
            namespace = LEASE_NAMESPACE if resource.kind == "Lease" else ""
            async for page in client.list_pages(resource, namespace=namespace):
                for item in page.items or ():
                    found.append({**kind, **_readable(resource, bytes(item))})
                    self._on_document()
        except RefusedError as error:
            if error.status not in (*FORBIDDEN, 404):
                raise
            self._missed(wanted, error)
        return found

    def _missed(self, resource: ApiResource, error: RefusedError) -> None:
        if resource.kind in NEEDED:
            remedy = "deploy/read-only.yaml has the rights that dump needs"
            raise ConfigError(f"{resource.plural} cannot be listed: {error.message}", remedy=remedy)
        self.unseen.append(f"{resource.plural}.{resource.group}" if resource.group else resource.plural)


def _readable(resource: ApiResource, document: bytes) -> Json:
    found = kinds.decode_plain(document)
    if not isinstance(found, dict):
        raise StowplanError(f"the API server sent {resource.plural} that are no objects")
    return found
