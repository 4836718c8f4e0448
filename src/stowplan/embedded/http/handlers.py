"""Requests become answers: which verb a method means at a target, and how the result is shown. No I/O; watches are
begun here and carried on by the server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.api import patching, versions
from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.api.strategic_merge import strategic_merge
from stowplan.embedded.api.subresources import Subresources
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.errors import (
    ApiError,
    bad_patch,
    bad_request,
    invalid,
    method_not_allowed,
    unsupported_media,
    wrong,
)
from stowplan.embedded.http import discovery, openapi, requests, responses, reviews
from stowplan.embedded.http.reads import Reader, encoded, joined
from stowplan.embedded.http.requests import Form, Request, RequestTarget
from stowplan.embedded.http.responses import ApiResponse
from stowplan.embedded.http.watches import EmbeddedWatch
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.schema import typed

Document: TypeAlias = dict[str, Any]

JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC_PATCH, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
_SUBRESOURCE_METHODS = {
    "status": ("GET", "PUT", "PATCH"), "scale": ("GET", "PUT", "PATCH"), "binding": ("POST",), "eviction": ("POST",),
    "finalize": ("PUT",),
}  # fmt: skip
_HEALTH = ("/healthz", "/livez", "/readyz")


class Handlers:
    def __init__(self, api: Api, clock: Callable[[], float], address: str = "") -> None:
        self.api = api
        self.address = address
        self.token: str | None = None
        self._clock = clock
        self._subresources = Subresources(api)
        self._reading = Reader(api, self._subresources, clock)

    def answer(self, request: Request) -> ApiResponse | tuple[EmbeddedWatch, bytes]:
        """An answer; or, for a watch, the watch and what is to be sent first. ApiError for a refusal."""
        now = self._clock()
        at = requests.target(request.path, self.api.catalogue)
        if at is None:
            return self._general(request)
        form = requests.form(request.accept)
        if request.method == "HEAD":
            request.method = "GET"
        self._check_method(at, request.method)
        asked = _asked(request, now)
        if request.method == "GET":
            if requests.flag(request.query, "watch"):
                return self._reading.watch(at, request, form)
            return self._reading.read(at, request, form)
        answer = self._write(at, request, form, asked)
        answer.warnings = asked.warnings
        return answer

    # -- what is no resource

    def _general(self, request: Request) -> ApiResponse:
        if request.path.startswith("/openapi/v3"):
            requests_only_get(request)
            found = openapi.answer(request.path, self.api.catalogue, self.api.definitions)
            return responses.of(found) if found is not None else responses.text("404 page not found\n", 404)
        if request.path == "/openapi/v2":
            requests_only_get(request)
            return openapi.second_version(request.accept)
        if request.path.split("/")[1] in [path[1:] for path in _HEALTH]:
            return responses.text("ok")
        form = requests.form(request.accept)
        found = discovery.answer(request.path, self.api.catalogue, form.kind, self.address)
        if found is None:
            return responses.text("404 page not found\n", 404)
        requests_only_get(request)
        answer = responses.of(found, Form(form.media))
        if found.get("kind") == discovery.AGGREGATED:
            answer.media = f"application/json;g=apidiscovery.k8s.io;v=v2;as={discovery.AGGREGATED}"
        return answer

    def _check_method(self, at: RequestTarget, method: str) -> None:
        if at.subresource:
            allowed = method in _SUBRESOURCE_METHODS[at.subresource]
        elif at.name:
            allowed = method != "POST" and _VERBS.get(method) in at.resource.verbs
        elif method == "POST":
            allowed = "create" in at.resource.verbs and (bool(at.namespace) or not at.resource.namespaced)
        elif method == "DELETE":
            allowed = "deletecollection" in at.resource.verbs and (bool(at.namespace) or not at.resource.namespaced)
        else:
            allowed = method == "GET" and "list" in at.resource.verbs
        if not allowed:
            raise method_not_allowed()

    # -- writing

    def _write(self, at: RequestTarget, request: Request, form: Form, asked: RequestOptions) -> ApiResponse:
        match request.method:
            case "POST":
                return self._post(at, request, form, asked)
            case "PUT":
                return self._put(at, requests.parsed(request), form, asked)
            case "PATCH":
                return self._patch(at, request, form, asked)
            case _:
                return self._delete(at, request, form, asked)

    def _post(self, at: RequestTarget, request: Request, form: Form, asked: RequestOptions) -> ApiResponse:
        raw = requests.parsed(request)
        if at.subresource == "binding":
            bound = self._subresources.bind(at.resource, at.namespace, at.name, raw, asked)
            return responses.of(bound, form, 201)
        if at.subresource == "eviction":
            evicted = self._subresources.evict(at.resource, at.namespace, at.name, raw, asked)
            return responses.of(evicted, form, 201)
        if at.resource.verbs == ("create",):
            return responses.of(reviews.answer(at.resource, raw, self.token), form, 201)
        document = self.api.create(at.resource, at.namespace, raw, asked)
        return self._result(at, document, form, request, asked, 201)

    def _put(self, at: RequestTarget, raw: Any, form: Form, asked: RequestOptions) -> ApiResponse:
        if at.subresource == "scale":
            return responses.of(self._subresources.rescale(at.resource, at.namespace, at.name, raw, asked), form)
        if at.subresource == "finalize":
            document = self._subresources.finalize(at.resource, at.name, raw, asked)
        else:
            document = self.api.update(at.resource, at.namespace, at.name, raw, asked, at.subresource)
        return responses.shown(at.resource, document, form)

    def _patch(self, at: RequestTarget, request: Request, form: Form, asked: RequestOptions) -> ApiResponse:
        patch = _read_patch(at.resource, request)
        if at.subresource == "scale":
            old = self._subresources.scale(at.resource, at.namespace, at.name)
            type_name = "autoscaling.v1.Scale"
        else:
            old = versions.shown(at.resource, self.api.get(at.resource, at.namespace, at.name))
            type_name = at.resource.type
        new = _patched(old, patch, request.content_type, type_name)
        asked.patch = _as_go(patch) if request.content_type == STRATEGIC_PATCH else msgspec.json.encode(new).decode()
        if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
            raise bad_patch("Invalid value: the result is no object with metadata")
        if new["metadata"].get("uid") != old["metadata"].get("uid"):
            cause = wrong("metadata.uid", new["metadata"].get("uid"), "field is immutable")
            raise invalid(at.resource, at.name, [cause])
        return self._put(at, typed.tidy(new), form, asked)

    def _delete(self, at: RequestTarget, request: Request, form: Form, asked: RequestOptions) -> ApiResponse:
        options = requests.delete_options(request)
        asked.dry_run = asked.dry_run or bool(options.dry_run)
        if at.name:
            told, whole = self.api.delete(at.resource, at.namespace, at.name, options, asked)
            return responses.shown(at.resource, told, form) if whole else responses.of(told, form)
        page = self._reading.lister.page(at.resource, requests.wanted(request.query, at))
        for stored in page.items:
            metadata = stored.document["metadata"]
            self.api.delete(at.resource, metadata.get("namespace", ""), metadata["name"], options, asked)
        return ApiResponse(200, joined(at.resource, page))

    def _result(
        self, at: RequestTarget, document: Document, form: Form, request: Request, asked: RequestOptions, status: int
    ) -> ApiResponse:
        if form.kind == "Table":
            version = {"resourceVersion": document["metadata"].get("resourceVersion", "")}
            return responses.of(self._reading.table(at.resource, [document], request, version), form, status)
        if form.kind or form.media != requests.JSON or asked.dry_run:
            return responses.shown(at.resource, document, form, status)
        key = at.resource.key(document["metadata"].get("namespace", ""), document["metadata"]["name"])
        stored = self.api.store.stored(at.resource.collection, key)
        if stored is None:
            return responses.shown(at.resource, document, form, status)
        return ApiResponse(status, encoded(at.resource, stored))


def requests_only_get(request: Request) -> None:
    if request.method not in ("GET", "HEAD"):
        raise method_not_allowed()


def _asked(request: Request, now: float) -> RequestOptions:
    validation = request.query.get("fieldValidation") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        known = '"", "Ignore", "Warn", "Strict"'
        raise bad_request(f'fieldValidation: Unsupported value: "{validation}": supported values: {known}')
    dry = request.query.get("dryRun", "")
    if dry not in ("", "All"):
        raise bad_request(f'dryRun: Unsupported value: "{dry}": supported values: "All"')
    return RequestOptions(now, validation, dry == "All")


def _read_patch(resource: ServedResource, request: Request) -> Any:
    kind = request.content_type
    known = (JSON_PATCH, MERGE_PATCH) if resource.custom else (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)
    if kind == APPLY:
        raise ApiError(415, "UnsupportedMediaType", "server-side apply is not served by the embedded cluster; "
                       f"accepted media types include: {', '.join(known)}")  # fmt: skip
    if kind not in known:
        raise unsupported_media(*known)
    patch = requests.json_of(request.body, "error decoding patch: ")
    if kind != JSON_PATCH and not isinstance(patch, dict):
        raise bad_request("error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}")
    return patch


def _as_go(value: Any) -> str:
    """As Go prints it, since Kubernetes shows patches so."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_as_go(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_as_go, value))}]"
    return {True: "true", False: "false", None: "<nil>"}.get(value) or str(value) if not value else str(value)


def _patched(old: Document, patch: Any, kind: str, type_name: str) -> Any:
    if kind == JSON_PATCH:
        return patching.json_patch(old, patch)
    if kind == MERGE_PATCH:
        return patching.merge(old, patch)
    try:
        return strategic_merge(old, patch, type_name)
    except (AttributeError, TypeError, KeyError, ValueError):
        raise bad_patch("Invalid value: the patch does not fit the object") from None
