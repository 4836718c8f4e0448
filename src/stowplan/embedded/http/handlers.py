"""Finds the verb that a request means, carries it out, and forms the response. No I/O: the server runs the watches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from stowplan.embedded.api import patching, versions
from stowplan.embedded.api.listing import ListPage
from stowplan.embedded.api.request_options import DeleteOptions, RequestOptions
from stowplan.embedded.api.server_side_apply import ServerSideApply
from stowplan.embedded.api.strategic_merge import strategic_merge
from stowplan.embedded.api.subresources import Subresources
from stowplan.embedded.api.token_requests import TokenRequests
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.authorization.access_request import AccessRequest
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import (
    ApiError,
    bad_patch,
    bad_request,
    invalid,
    invalid_value,
    method_not_allowed,
    no_containers,
    unsupported_media,
)
from stowplan.embedded.http import discovery, openapi, requests, responses
from stowplan.embedded.http.access_control import AccessControl, access_to
from stowplan.embedded.http.reads import Reader, encoded, joined
from stowplan.embedded.http.requests import Request, RequestTarget, ResponseFormat
from stowplan.embedded.http.responses import ApiResponse
from stowplan.embedded.http.reviews import Reviewer
from stowplan.embedded.http.watches import EmbeddedWatch
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.schema import typed

JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC_PATCH, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
_SUBRESOURCE_METHODS = {
    "status": ("GET", "PUT", "PATCH"), "scale": ("GET", "PUT", "PATCH"), "binding": ("POST",), "eviction": ("POST",),
    "finalize": ("PUT",), "token": ("POST",),
}  # fmt: skip
_DEPRECATED = {"endpoints": ("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",)}
_HEALTH = ("/healthz", "/livez", "/readyz")


class Handlers:
    """Answers requests. `clock` gives their time, in seconds since 1970; without `access` everything is allowed."""

    def __init__(
        self, api: Api, clock: Callable[[], float], address: str = "", access: AccessControl | None = None
    ) -> None:
        self.api = api
        self.address = address
        self.access = access or access_to(api.store, b"", enforced=False)
        self.now = clock
        self._reviewer = Reviewer(self.access)
        self._token_requests = TokenRequests(api, self.access.authenticator.accounts)
        self._subresources = Subresources(api)
        self._server_side_apply = ServerSideApply(api)
        self._reader = Reader(api, self._subresources, clock)

    def answer(self, request: Request) -> ApiResponse | tuple[EmbeddedWatch, bytes]:
        """The response; for a watch, the watch and its first bytes. Raises `ApiError` if the request is refused."""
        now = self.now()
        target = requests.parse_path(request.path, self.api.catalogue)
        if target is None:
            return self._non_resource(request)
        form = requests.negotiated(request.accept)
        if request.method == "HEAD":
            request.method = "GET"
        self._check_method(target, request.method)
        options = _request_options(request, now)
        options.user = request.user
        options.warnings += _DEPRECATED.get(target.resource.collection, ())
        if request.method == "GET" and not target.name and requests.bool_parameter(request.query, "watch"):
            return self._reader.watch(target, request, form)
        reads = request.method == "GET"
        answer = self._reader.read(target, request, form) if reads else self._write(target, request, form, options)
        answer.warnings = options.warnings
        return answer

    # -- non-resource paths

    def _non_resource(self, request: Request) -> ApiResponse:
        if request.path.startswith("/openapi/v3"):
            _check_read_only(request)
            found = openapi.answer(request.path, self.api.catalogue, self.api.definitions)
            return responses.of(found) if found is not None else responses.text("404 page not found\n", 404)
        if request.path == "/openapi/v2":
            _check_read_only(request)
            return openapi.second_version(request.accept)
        if request.path.startswith(tuple(f"{path}/" for path in _HEALTH)) or request.path in _HEALTH:
            return responses.text("ok")
        if request.path.startswith(f"/apis/{discovery.METRICS}/{discovery.METRICS_VERSION}/"):
            raise no_containers("nothing is measured")
        form = requests.negotiated(request.accept)
        found = discovery.answer(request.path, self.api.catalogue, form.kind, self.address)
        if found is None:
            return responses.text("404 page not found\n", 404)
        _check_read_only(request)
        answer = responses.of(found, ResponseFormat(form.media))
        if found.get("kind") == discovery.AGGREGATED:
            answer.media = f"application/json;g=apidiscovery.k8s.io;v=v2;as={discovery.AGGREGATED}"
        return answer

    def _check_method(self, target: RequestTarget, method: str) -> None:
        if target.subresource:
            allowed = method in _SUBRESOURCE_METHODS[target.subresource]
        elif target.name:
            allowed = method != "POST" and _VERBS.get(method) in target.resource.verbs
        elif method == "POST":
            allowed = "create" in target.resource.verbs and (bool(target.namespace) or not target.resource.namespaced)
        elif method == "DELETE":
            allowed = "deletecollection" in target.resource.verbs and (
                bool(target.namespace) or not target.resource.namespaced
            )
        else:
            allowed = method == "GET" and "list" in target.resource.verbs
        if not allowed:
            raise method_not_allowed()

    # -- writing

    def _write(
        self, target: RequestTarget, request: Request, form: ResponseFormat, options: RequestOptions
    ) -> ApiResponse:
        match request.method:
            case "POST":
                return self._post(target, request, form, options)
            case "PUT":
                return self._put(target, requests.body_of(request), form, options)
            case "PATCH":
                return self._patch(target, request, form, options)
            case _:
                return self._delete(target, request, form, options)

    def _post(
        self, target: RequestTarget, request: Request, form: ResponseFormat, options: RequestOptions
    ) -> ApiResponse:
        raw = requests.body_of(request)
        if target.subresource == "binding":
            bound = self._subresources.bind(target.resource, target.namespace, target.name, raw, options)
            return responses.of(bound, form, 201)
        if target.subresource == "eviction":
            evicted = self._subresources.evict(target.resource, target.namespace, target.name, raw, options)
            return responses.of(evicted, form, 201)
        if target.subresource == "token":
            issued = self._token_requests.issue(target.resource, target.namespace, target.name, raw, options)
            return responses.of(issued, form, 201)
        if target.resource.verbs == ("create",):
            review = self._reviewer.answer(target.resource, target.namespace, raw, request.user, options.now)
            return responses.of(review, form, 201)
        document = self.api.create(target.resource, target.namespace, raw, options)
        return self._result(target, document, form, request, options, 201)

    def _put(self, target: RequestTarget, raw: Any, form: ResponseFormat, options: RequestOptions) -> ApiResponse:
        if target.subresource == "scale":
            return responses.of(
                self._subresources.rescale(target.resource, target.namespace, target.name, raw, options), form
            )
        if target.subresource == "finalize":
            document = self._subresources.finalize(target.resource, target.name, raw, options)
        else:
            document = self.api.update(target.resource, target.namespace, target.name, raw, options, target.subresource)
        return responses.of_object(target.resource, document, form)

    def _patch(
        self, target: RequestTarget, request: Request, form: ResponseFormat, options: RequestOptions
    ) -> ApiResponse:
        if request.content_type == APPLY and target.subresource in ("", "status"):
            return self._apply(target, request, form, options)
        patch = _read_patch(target.resource, request)
        if target.subresource == "scale":
            old = self._subresources.scale(target.resource, target.namespace, target.name)
            type_name = "autoscaling.v1.Scale"
        else:
            old = versions.as_served(target.resource, self.api.get(target.resource, target.namespace, target.name))
            type_name = target.resource.type
        new = _patched(old, patch, request.content_type, type_name)
        options.patch = _as_go(patch) if request.content_type == STRATEGIC_PATCH else msgspec.json.encode(new).decode()
        if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
            raise bad_patch("Invalid value: the result is no object with metadata")
        if new["metadata"].get("uid") != old["metadata"].get("uid"):
            cause = invalid_value("metadata.uid", new["metadata"].get("uid"), "field is immutable")
            raise invalid(target.resource, target.name, [cause])
        return self._put(target, typed.without_nulls(new), form, options)

    def _apply(
        self, target: RequestTarget, request: Request, form: ResponseFormat, options: RequestOptions
    ) -> ApiResponse:
        if not request.query.get("fieldManager"):
            cause = {"reason": "FieldValueRequired", "field": "fieldManager"}
            said = "Required value: is required for apply patch"
            details = {"group": "meta.k8s.io", "kind": "PatchOptions", "causes": [{**cause, "message": said}]}
            message = f'PatchOptions.meta.k8s.io "" is invalid: fieldManager: {said}'
            raise ApiError(422, "Invalid", message, details)
        resource, key = target.resource, target.resource.key(target.namespace, target.name)
        if not target.subresource and self.api.store.stored(resource.collection, key) is None:
            creation = AccessRequest("create", resource.group, resource.plural, "", target.name, target.namespace)
            self.access.check(request.user, creation)
        document, new = self._server_side_apply.apply(
            target.resource, target.namespace, target.name, requests.apply_body(request.body), options,
            force=requests.bool_parameter(request.query, "force"), subresource=target.subresource,
        )  # fmt: skip
        return responses.of_object(target.resource, document, form, 201 if new else 200)

    def _delete(
        self, target: RequestTarget, request: Request, form: ResponseFormat, options: RequestOptions
    ) -> ApiResponse:
        delete_options = requests.delete_options(request)
        options.dry_run = options.dry_run or bool(delete_options.dry_run)
        if target.name:
            found, is_object = self.api.delete(target.resource, target.namespace, target.name, delete_options, options)
            return responses.of_object(target.resource, found, form) if is_object else responses.of(found, form)
        return self._delete_collection(target, request, delete_options, options)

    def _delete_collection(
        self, target: RequestTarget, request: Request, delete_options: DeleteOptions, options: RequestOptions
    ) -> ApiResponse:
        """Delete what is there now, and return it. A list that was begun earlier cannot be continued here."""
        wanted, lister = requests.list_options(request.query, target), self._reader.lister
        if wanted.token:
            raise bad_request("continue is not supported here: without it, the next objects are deleted")
        lister.check_version(wanted.version)
        found = lister.matching(target.resource, wanted)[: wanted.limit if wanted.limit > 0 else None]
        page = ListPage(found, self.api.store.version)
        for stored in found:
            metadata = stored.document["metadata"]
            self.api.delete(target.resource, target.namespace, metadata["name"], delete_options, options)
        return ApiResponse(200, joined(target.resource, page))

    def _result(
        self,
        target: RequestTarget,
        document: Document,
        form: ResponseFormat,
        request: Request,
        options: RequestOptions,
        status: int,
    ) -> ApiResponse:
        if form.kind == "Table":
            version = {"resourceVersion": document["metadata"].get("resourceVersion", "")}
            return responses.of(self._reader.table(target.resource, [document], request, version), form, status)
        if form.kind or form.media != requests.JSON or options.dry_run:
            return responses.of_object(target.resource, document, form, status)
        key = target.resource.key(document["metadata"].get("namespace", ""), document["metadata"]["name"])
        stored = self.api.store.stored(target.resource.collection, key)
        if stored is None:
            return responses.of_object(target.resource, document, form, status)
        return ApiResponse(status, encoded(target.resource, stored))


def _check_read_only(request: Request) -> None:
    if request.method not in ("GET", "HEAD"):
        raise method_not_allowed()


def _request_options(request: Request, now: float) -> RequestOptions:
    validation = request.query.get("fieldValidation") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        known = '"", "Ignore", "Warn", "Strict"'
        raise bad_request(f'fieldValidation: Unsupported value: "{validation}": supported values: {known}')
    dry = request.query.get("dryRun", "")
    if dry not in ("", "All"):
        raise bad_request(f'dryRun: Unsupported value: "{dry}": supported values: "All"')
    return RequestOptions(now, validation, dry == "All", manager=requests.field_manager(request))


def _read_patch(resource: ServedResource, request: Request) -> Any:
    kind = request.content_type
    known = (JSON_PATCH, MERGE_PATCH) if resource.custom else (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)
    if kind not in known:
        raise unsupported_media(*known)
    patch = requests.json_body(request.body, "error decoding patch: ")
    if kind != JSON_PATCH and not isinstance(patch, dict):
        raise bad_request("error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}")
    return patch


def _as_go(value: Any) -> str:
    """A value as Go prints it, since Kubernetes prints patches so."""
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
