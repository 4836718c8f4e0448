"""GET: one object, a list, a table, or the start of a watch."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stowplan.embedded import tables
from stowplan.embedded.api import versions
from stowplan.embedded.api.listing import Lister, ListPage
from stowplan.embedded.api.subresources import Subresources
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.change_log import Stored
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError, bad_request
from stowplan.embedded.http import requests, responses
from stowplan.embedded.http.requests import Request, RequestTarget, ResponseFormat
from stowplan.embedded.http.responses import ApiResponse
from stowplan.embedded.http.watches import EmbeddedWatch, Encode
from stowplan.embedded.resources import ServedResource


class Reader:
    """`clock` gives the time for the ages in tables."""

    def __init__(self, api: Api, subresources: Subresources, clock: Callable[[], float]) -> None:
        self.api = api
        self.lister = Lister(api)
        self._subresources = subresources
        self._clock = clock

    def read(self, target: RequestTarget, request: Request, form: ResponseFormat) -> ApiResponse:
        if target.subresource == "scale":
            return responses.of(self._subresources.scale(target.resource, target.namespace, target.name), form)
        if target.name:
            document = self.api.get(target.resource, target.namespace, target.name)
            if form.kind == "Table":
                version = {"resourceVersion": document["metadata"]["resourceVersion"]}
                return responses.of(self.table(target.resource, [document], request, version))
            return responses.of_object(target.resource, document, form)
        return self._list(target, request, form)

    def _list(self, target: RequestTarget, request: Request, form: ResponseFormat) -> ApiResponse:
        page = self.lister.page(target.resource, requests.list_options(request.query, target))
        if form.kind == "Table":
            documents = [stored.document for stored in page.items]
            return responses.of(self.table(target.resource, documents, request, page.metadata()))
        if form.kind == "PartialObjectMetadata":
            items = [responses.partial(stored.document) for stored in page.items]
            kind = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            return responses.of({**kind, "metadata": page.metadata(), "items": items}, form)
        if form.media != requests.JSON:
            items = [versions.as_served(target.resource, stored.document) for stored in page.items]
            kind = {"kind": target.resource.list_name, "apiVersion": target.resource.api_version}
            return responses.of({**kind, "metadata": page.metadata(), "items": items}, form)
        return ApiResponse(200, joined(target.resource, page))

    def table(
        self, resource: ServedResource, documents: list[Document], request: Request, metadata: Document,
        *, headed: bool = True,
    ) -> Document:  # fmt: skip
        columns = self.api.definitions.version_of(resource).columns if resource.custom else None
        include = request.query.get("includeObject", "Metadata")
        if include not in ("None", "Metadata", "Object"):
            raise bad_request(f'invalid includeObject: "{include}": must be None, Metadata or Object')
        printer = tables.printer_for(resource.collection, columns)
        return tables.table(
            printer,
            documents,
            self._clock(),
            include,
            lambda document: versions.as_served(resource, document),
            metadata,
            headed=headed,
        )

    def watch(self, target: RequestTarget, request: Request, form: ResponseFormat) -> tuple[EmbeddedWatch, bytes]:
        options = requests.list_options(request.query, target)
        version = self.lister.check_version(options.version)
        initial = "sendInitialEvents" in request.query and requests.bool_parameter(request.query, "sendInitialEvents")
        self._check_initial(request)
        watch = EmbeddedWatch(
            self.api.store.collection(target.resource.collection),
            target.resource,
            target.namespace,
            self.lister.matcher(target.resource, options),
            self._watch_encoder(target.resource, request, form),
        )
        if version and not initial:
            watch.start_after(version)
            return watch, b""
        current = self.api.store.version
        first = watch.start_now(current, self.lister.matching(target.resource, options))
        if initial and requests.bool_parameter(request.query, "allowWatchBookmarks"):
            first += watch.bookmark(current, initial=True)
        return watch, first

    def _check_initial(self, request: Request) -> None:
        if "sendInitialEvents" in request.query and request.query.get("resourceVersionMatch") != "NotOlderThan":
            said = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            cause = {"reason": "FieldValueForbidden", "message": said, "field": "resourceVersionMatch"}
            details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause]}
            message = f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: {said}'
            raise ApiError(422, "Invalid", message, details)

    def _watch_encoder(self, resource: ServedResource, request: Request, form: ResponseFormat) -> Encode | None:
        """None if the events can be shared with other watches.

        The first row of a table has the headings, as in Kubernetes.
        """
        if form.kind == "PartialObjectMetadata":
            return lambda document: msgspec.json.encode(responses.partial(document))
        if form.kind != "Table":
            return None
        headed = [True]

        def encode(document: Document) -> bytes:
            version = {"resourceVersion": document["metadata"]["resourceVersion"]}
            table = self.table(resource, [document], request, version, headed=headed[0])
            headed[0] = False
            return msgspec.json.encode(table)

        return encode


def encoded(resource: ServedResource, stored: Stored) -> bytes:
    return stored.encoded(resource.api_version, lambda document: versions.encode(resource, document))


def joined(resource: ServedResource, page: ListPage) -> bytes:
    """A list of objects that are encoded already."""
    about = {"kind": resource.list_name, "apiVersion": resource.api_version, "metadata": page.metadata()}
    items = b",".join(encoded(resource, stored) for stored in page.items)
    return msgspec.json.encode(about)[:-1] + b',"items":[' + items + b"]}"
