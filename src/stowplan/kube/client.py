"""Lists, watches and single objects of a kind. Documents stay JSON until a caller decodes them.

Requests for a single object return a `Response` whatever its status: the caller must check it. Lists and watches raise
`RefusedError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec

from stowplan.kube.action_requests import MERGE_PATCH, ActionRequest
from stowplan.kube.connection import Stream
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import RefusedError, Response, UnreachableError, is_text, read_status
from stowplan.kube.transport import TIMEOUT, Transport
from stowplan.objects import json_text

MAX_EVENT = 32 << 20  # bytes; etcd takes objects of 1.5 MB by default
MAX_SILENCE = 150.0  # seconds without data until a watch counts as broken; a server sends a bookmark each minute
encode = msgspec.json.encode
T = TypeVar("T")


class ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ObjectPage(msgspec.Struct):
    """One page of a list."""

    kind: str = ""
    items: list[msgspec.Raw] | None = None
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


class WatchEvent(msgspec.Struct):
    """ADDED, MODIFIED, DELETED, BOOKMARK or ERROR. The object of an ERROR is a Status."""

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
    """The events of a watch, in batches as they arrive."""

    def __init__(self, stream: Stream, silence: float) -> None:
        self._stream, self._silence = stream, silence
        self._rest = b""

    async def batches(self) -> AsyncIterator[list[WatchEvent]]:
        """Lists of events until the server ends the watch. Raises `UnreachableError` if the connection breaks."""
        while data := await self._stream.read(self._silence):
            *lines, self._rest = (self._rest + data).split(b"\n")
            if len(self._rest) > MAX_EVENT:
                raise UnreachableError(f"watch: an event is larger than {MAX_EVENT >> 20} MiB")
            if lines:
                if not all(map(is_text, lines)):
                    raise UnreachableError("watch: an event was damaged on its way: it is not UTF-8 text")
                yield _events(lines)


class Client:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        transport.expects_objects = True

    # -- lists and watches

    async def list_pages(
        self,
        resource: ApiResource,
        *,
        namespace: str = "",
        limit: int = 500,
        labels: str = "",
        fields: str | None = None,
    ) -> AsyncIterator[ObjectPage]:
        """The pages of a list, `limit` objects at a time (0: all at once), all as of one resource version."""
        params = _selection(resource, labels, fields)
        if limit:
            params["limit"] = str(limit)
        path = resource.collection(namespace)
        coming: asyncio.Task[ObjectPage] | None = asyncio.ensure_future(self._page(path, params))
        try:
            while coming is not None:
                page, coming = await coming, None
                if page.metadata.continue_:  # the server makes the next page while this one is read
                    params = {**params, "continue": page.metadata.continue_}
                    coming = asyncio.ensure_future(self._page(path, params))
                yield page
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    async def _page(self, path: str, params: Mapping[str, str]) -> ObjectPage:
        page = _decoded(_page, await self.transport.request("GET", path, params=params), path)
        if page.kind == "Status":
            raise UnreachableError(f"GET {path}: found a Status, expected a list")
        return page

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
        silence: float = MAX_SILENCE,
    ) -> AsyncIterator[WatchStream]:
        """Watch the changes after a resource version, for `seconds` or until the connection breaks."""
        params = _selection(resource, labels, fields)
        params |= {"watch": "1", "resourceVersion": resource_version, "timeoutSeconds": str(seconds)}
        if bookmarks:
            params["allowWatchBookmarks"] = "true"
        async with self.transport.stream(resource.collection(namespace), params) as stream:
            yield WatchStream(stream, silence)

    # -- single objects

    async def get(self, resource: ApiResource, key: str, *, until: float | None = None) -> Response:
        return await self.transport.request("GET", resource.path(key), until=until)

    async def create(
        self,
        resource: ApiResource,
        namespace: str,
        body: Mapping[str, object],
        *,
        until: float | None = None,
    ) -> Response:
        return await self.transport.request("POST", resource.collection(namespace), body=encode(body), until=until)

    async def put(
        self, resource: ApiResource, key: str, body: Mapping[str, object], *, timeout: float = TIMEOUT
    ) -> Response:
        """Replace an object. The body must be a whole document, not one with dropped fields."""
        return await self.transport.request("PUT", resource.path(key), body=encode(body), timeout=timeout)

    async def patch(
        self,
        resource: ApiResource,
        key: str,
        body: Mapping[str, object],
        *,
        subresource: str = "",
        content_type: str = MERGE_PATCH,
        until: float | None = None,
    ) -> Response:
        path = resource.path(key, subresource)
        return await self.transport.request("PATCH", path, body=encode(body), content_type=content_type, until=until)

    async def delete(self, resource: ApiResource, key: str, *, until: float | None = None) -> Response:
        return await self.transport.request("DELETE", resource.path(key), until=until)

    async def send(self, request: ActionRequest, *, until: float | None = None) -> Response:
        """Send a request of `action_requests`."""
        body = b"" if request.body is None else encode(request.body)
        return await self.transport.request(
            request.method, request.path, body=body, content_type=request.content_type, until=until
        )

    async def post(self, path: str, body: bytes, *, until: float | None = None) -> Response:
        """Send a request of `prepared_requests`."""
        return await self.transport.request("POST", path, body=body, until=until)

    # -- discovery

    async def served(self, resource: ApiResource) -> ApiResource | None:
        """The resource at the first of its versions that the server serves; None if it serves none of them."""
        if resource.always_served:
            return resource
        for version in resource.versions or await self._versions(resource.group):
            candidate = resource.at(version)
            if resource.plural in await self._names(candidate):
                return candidate
        return None

    async def has_status(self, resource: ApiResource) -> bool:
        """True unless the server has these objects, at this version, without a status that can be written by itself."""
        names = await self._names(resource)
        return resource.plural not in names or f"{resource.plural}/status" in names

    async def _names(self, resource: ApiResource) -> set[str]:
        """What the server has in the group and version of a resource."""
        response = await self.transport.request("GET", resource.root)
        if response.status == 404:
            return set()
        return {each.name for each in _decoded(_resource_list, response, resource.root).resources}

    async def _versions(self, group: str) -> list[str]:
        """The versions of a group, the preferred one first."""
        path = f"/apis/{group}"
        response = await self.transport.request("GET", path)
        return [] if response.status == 404 else [each.version for each in _decoded(_group, response, path).versions]

    async def close(self) -> None:
        await self.transport.close()


def _decoded(decoder: msgspec.json.Decoder[T], response: Response, path: str) -> T:
    body = response.checked(f"GET {path}").body
    try:
        return _decoded_somehow(decoder, body)
    except Exception as error:
        raise UnreachableError(f"GET {path}: the response cannot be read: {error}") from None


def _decoded_somehow(decoder: msgspec.json.Decoder[T], document: bytes) -> T:
    """One object of a page or of a watch must not make the others unreadable (`json_text`)."""
    try:
        return decoder.decode(document)
    except Exception:
        return decoder.decode(json_text.readable(document))


def _events(lines: list[bytes]) -> list[WatchEvent]:
    try:
        return [_decoded_somehow(_event, line) for line in lines if line]
    except Exception as error:
        raise UnreachableError(f"watch: an event cannot be read: {error}") from None


def _selection(resource: ApiResource, labels: str, fields: str | None) -> dict[str, str]:
    """`labels` are selected besides those of the resource, `fields` instead of them."""
    selected = ",".join(filter(None, (resource.labels, labels)))
    resolved = {"labelSelector": selected, "fieldSelector": resource.fields if fields is None else fields}
    return {name: value for name, value in resolved.items() if value}


def failure_of(event: WatchEvent) -> RefusedError:
    """The error in an ERROR event."""
    status = read_status(event.object)
    return RefusedError("watch", status.code or 500, status.message or status.reason)
