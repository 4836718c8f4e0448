"""Finds the resource of a kind by asking the server: Deployment of apps/v1 is `deployments`, and namespaced.

An answer is remembered. A kind that is not served yet, because its definition was just created, is asked for again.
"""

from __future__ import annotations

import msgspec

from stowplan.kube.client import Client
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import UnreachableError
from stowplan.objects.meta import Object


class ServedKind(msgspec.Struct):
    """A row of discovery. The rows of subresources have a "/" in their names."""

    name: str
    kind: str
    namespaced: bool = True


class _ServedKinds(msgspec.Struct):
    resources: list[ServedKind] = []


_decoder = msgspec.json.Decoder(_ServedKinds)


class Discovery:
    """The resources of one server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._found: dict[tuple[str, str], ApiResource] = {}

    async def resource(self, api_version: str, kind: str, *, until: float | None = None) -> ApiResource | None:
        """The resource of a kind; None if the server does not serve it. Raises `WireError` if it does not answer."""
        if (api_version, kind) not in self._found:
            for found in await self._served(api_version, until):
                self._found[api_version, found.kind] = found
        return self._found.get((api_version, kind))

    def forget(self) -> None:
        """Ask again for everything: a definition may have changed."""
        self._found.clear()

    async def _served(self, api_version: str, until: float | None) -> list[ApiResource]:
        group, _, version = api_version.rpartition("/")
        root = f"/apis/{api_version}" if group else f"/api/{api_version}"
        response = await self._client.transport.request("GET", root, until=until)
        if response.status == 404:
            return []
        try:
            rows = _decoder.decode(response.checked(f"GET {root}").body).resources
        except msgspec.DecodeError as error:
            raise UnreachableError(f"GET {root}: the response cannot be read: {error}") from None
        return [
            ApiResource(row.kind, row.name, group, (version,), row.namespaced, own_type=Object)
            for row in rows
            if "/" not in row.name
        ]
