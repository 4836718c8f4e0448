"""Kubernetes' verbs on kinds: lists in pages, watches, single objects. Documents stay JSON until they are read.

Single objects answer with a `Response` whatever its status: who writes must look at it. Lists and watches raise
`RefusedError`, since nobody can go on without them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from stowplan.kube.action_requests import MERGE_PATCH, ActionRequest
from stowplan.kube.connection import Stream
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import RefusedError, Response, UnreachableError, read_status
from stowplan.kube.transport import TIMEOUT, Transport

SILENCE = 150.0  # seconds; a server sends a bookmark each minute
encode = msgspec.json.encode
T = TypeVar("T")


class ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ObjectPage(msgspec.Struct):
    """Some of a list's documents."""

    items: list[msgspec.Raw] | None = None
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


class WatchEvent(msgspec.Struct):
    """ADDED, MODIFIED, DELETED, BOOKMARK or ERROR; an ERROR's object is a Status."""

    type: str
    object: msgspec.Raw


class _Names(msgspec.Struct):
    name: str


class _ResourceList(msgspec.Struct):
    resources: list[_Names] = []


class _Version(msgspec.Struct):
    version: str


class _Group(msgspec.Struct, rename="camel"):
    versions: list[_Version] = []


_page = msgspec.json.Decoder(ObjectPage)
_event = msgspec.json.Decoder(WatchEvent)
_resource_list = msgspec.json.Decoder(_ResourceList)
_group = msgspec.json.Decoder(_Group)


class WatchStream:
    """Events as they come: each turn gives all that have arrived."""

    def __init__(self, stream: Stream, silence: float) -> None:
        self._stream, self._silence = stream, silence
        self._rest = b""

    async def batches(self) -> AsyncIterator[list[WatchEvent]]:
        """Lists of events until the server ends the watch; `UnreachableError` if it broke, in mid-event or not."""
        while data := await self._stream.read(self._silence):
            *lines, self._rest = (self._rest + data).split(b"\n")
            if lines:
                yield _events(lines)


class Client:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    # -- many

    async def list_pages(
        self,
        resource: ApiResource,
        *,
        namespace: str = "",
        limit: int = 500,
        labels: str = "",
        fields: str | None = None,
    ) -> AsyncIterator[ObjectPage]:
        """The whole list, `limit` objects at a time (0: all at once), all pages as of one moment."""
        params = _selection(resource, labels, fields)
        if limit:
            params["limit"] = str(limit)
        path, going_on = resource.collection(namespace), True
        while going_on:
            page = _decoded(_page, await self.transport.request("GET", path, params=params), path)
            yield page
            params["continue"] = page.metadata.continue_
            going_on = bool(page.metadata.continue_)

    @asynccontextmanager
    async def watch(
        self,
        resource: ApiResource,
        resource_version: str,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str | None = None,
        bookmarks: bool = True,
        seconds: int = 300,
        silence: float = SILENCE,
    ) -> AsyncIterator[WatchStream]:
        """What happens after that version, for `seconds` or until the connection breaks."""
        params = _selection(resource, labels, fields)
        params |= {"watch": "1", "resourceVersion": resource_version, "timeoutSeconds": str(seconds)}
        if bookmarks:
            params["allowWatchBookmarks"] = "true"
        async with self.transport.stream(resource.collection(namespace), params) as stream:
            yield WatchStream(stream, silence)

    # -- one

    async def get(self, resource: ApiResource, key: str, *, until: float | None = None) -> Response:
        return await self.transport.request("GET", resource.path(key), until=until)

    async def create(
        self,
        resource: ApiResource,
        namespace: str,
        body: Any,
        *,
        until: float | None = None,
    ) -> Response:
        return await self.transport.request("POST", resource.collection(namespace), body=encode(body), until=until)

    async def put(self, resource: ApiResource, key: str, body: Any, *, timeout: float = TIMEOUT) -> Response:
        """A whole document; never one that we trimmed."""
        return await self.transport.request("PUT", resource.path(key), body=encode(body), timeout=timeout)

    async def patch(
        self,
        resource: ApiResource,
        key: str,
        body: Any,
        *,
        subresource: str = "",
        content_type: str = MERGE_PATCH,
        until: float | None = None,
    ) -> Response:
        path = resource.path(key, subresource)
        return await self.transport.request("PATCH", path, body=encode(body), content_type=content_type, until=until)

    async def send(self, request: ActionRequest, *, until: float | None = None) -> Response:
        """Send a request that is already put together."""
        body = b"" if request.body is None else encode(request.body)
        return await self.transport.request(
            request.method, request.path, body=body, content_type=request.content_type, until=until
        )

    # -- what there is

    async def served(self, resource: ApiResource) -> ApiResource | None:
        """The resource at the version that the server has of it; None if it has none that we read."""
        if resource.always_served:
            return resource
        for version in resource.versions or await self._versions(resource.group):
            candidate = resource.at(version)
            answer = await self.transport.request("GET", candidate.root)
            if answer.status == 404:
                continue
            names = _decoded(_resource_list, answer, candidate.root).resources
            if any(each.name == resource.plural for each in names):
                return candidate
        return None

    async def _versions(self, group: str) -> list[str]:
        """A group's versions, the server's favourite first."""
        path = f"/apis/{group}"
        answer = await self.transport.request("GET", path)
        return [] if answer.status == 404 else [each.version for each in _decoded(_group, answer, path).versions]

    async def close(self) -> None:
        await self.transport.close()


def _decoded(decoder: msgspec.json.Decoder[T], answer: Response, path: str) -> T:
    try:
        return decoder.decode(answer.checked(f"GET {path}").body)
    except msgspec.DecodeError as error:
        raise UnreachableError(f"GET {path}: the answer cannot be read: {error}") from None


def _events(lines: list[bytes]) -> list[WatchEvent]:
    try:
        return [_event.decode(line) for line in lines if line]
    except msgspec.DecodeError as error:
        raise UnreachableError(f"watch: an event cannot be read: {error}") from None


def _selection(resource: ApiResource, labels: str, fields: str | None) -> dict[str, str]:
    chosen = {"labelSelector": labels, "fieldSelector": resource.fields if fields is None else fields}
    return {name: value for name, value in chosen.items() if value}


def failure_of(event: WatchEvent) -> RefusedError:
    """What an ERROR event says."""
    status = read_status(event.object)
    return RefusedError("watch", status.code or 500, status.message or status.reason)
