"""Paths, query parameters, headers and bodies of requests.

/api/v1/namespaces/shop/pods/web-0/binding      group "", version v1, namespace shop, pods, web-0, binding
Accept: application/json;as=Table;v=v1;g=meta.k8s.io, application/json
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.api.listing import ListOptions
from stowplan.embedded.api.request_options import DeleteOptions
from stowplan.embedded.authorization.users import ADMIN, ApiUser
from stowplan.embedded.errors import (
    ApiError,
    bad_request,
    no_containers,
    no_such_resource,
    not_acceptable,
    unsupported_media,
)
from stowplan.embedded.http import protobuf
from stowplan.embedded.resources import ResourceCatalogue, ServedResource
from stowplan.embedded.schema import typed
from stowplan.objects import bounded_yaml
from stowplan.objects.errors import ConfigError

Query: TypeAlias = Mapping[str, str]

JSON, YAML = "application/json", "application/yaml"
_LONGEST_MANAGER = 128
_OF_CONTAINERS = {
    "log": "there are no logs", "exec": "nothing can be executed in one", "attach": "nothing can be attached to",
    "portforward": "no port can be forwarded", "ephemeralcontainers": "none can be debugged",
    "resize": "none can be resized",
}  # fmt: skip


class Request(msgspec.Struct):
    """One request. `content_type` has no parameters."""

    method: str
    path: str
    query: Query = msgspec.field(default_factory=dict)
    accept: str = ""
    content_type: str = ""
    body: bytes = b""
    user_agent: str = ""
    user: ApiUser = ADMIN


class RequestTarget(msgspec.Struct, frozen=True):
    """The resource that a path names: an object, or a collection if there is no name."""

    resource: ServedResource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_path(path: str, catalogue: ResourceCatalogue) -> RequestTarget | None:
    """The target of a path; None if it is not the path of a resource. Raises 404 for a resource that is not served."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if not catalogue.serves(group, version):
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and catalogue.find(group, version, rest[2]) is not None:
        namespace, rest = rest[1], rest[2:]
    resource = catalogue.find(group, version, rest[0])
    if resource is None or len(rest) > 3 or not all(rest) or (namespace and not resource.namespaced):
        raise no_such_resource()
    name, subresource = (*rest[1:], "", "")[:2]
    if name and resource.namespaced and not namespace:
        raise no_such_resource()
    if resource.collection == "pods" and subresource in _OF_CONTAINERS:
        raise no_containers(_OF_CONTAINERS[subresource])
    if subresource and subresource not in resource.subresources:
        raise no_such_resource()
    return RequestTarget(resource, namespace, name, subresource)


class ResponseFormat(msgspec.Struct, frozen=True):
    """The format of the response.

    `kind` is "", "Table", "PartialObjectMetadata" or another kind that the client requests.
    """

    media: str = JSON
    kind: str = ""
    group: str = ""


@lru_cache(maxsize=256)
def negotiated(accept: str) -> ResponseFormat:
    """The first acceptable format that the server supports. Raises 406 if there is none."""
    for choice in (accept or "*/*").split(","):
        media, *more = (part.strip() for part in choice.split(";"))
        parameters = dict(part.split("=", 1) for part in more if "=" in part)
        kind = parameters.get("as", "")
        if media in (YAML, "application/x-yaml", "text/yaml") and not kind:
            return ResponseFormat(YAML)
        if media in (JSON, "*/*", "application/*"):
            group = parameters.get("g", "")
            if kind == "Table" and parameters.get("v", "v1") != "v1":
                continue
            return ResponseFormat(JSON, kind.removesuffix("List") if group == "meta.k8s.io" else kind, group)
    raise not_acceptable()


def bool_parameter(query: Query, name: str) -> bool:
    """True for any value but "false" and "0", as in Kubernetes."""
    return query.get(name, "false") not in ("false", "0")


def int_parameter(query: Query, name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    try:
        found = int(text)
    except ValueError:
        found = 1 << 64
    if abs(found) >= 1 << 63 or not text.isascii() or "_" in text or " " in text:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return found


def list_options(query: Query, target: RequestTarget) -> ListOptions:
    return ListOptions(
        target.namespace,
        query.get("labelSelector", ""),
        query.get("fieldSelector", ""),
        int_parameter(query, "limit") or 0,
        query.get("continue", ""),
        query.get("resourceVersion", ""),
    )


def body_of(request: Request) -> Any:
    """The body as plain values.

    Raises 415 for a media type that is not supported, 400 for a body that cannot be parsed.
    """
    if request.content_type in (YAML, "application/x-yaml"):
        return _yaml(request.body)
    if request.content_type == protobuf.MEDIA:
        return _protobuf(request.body)
    if request.content_type not in (JSON, ""):
        raise unsupported_media(JSON, YAML, protobuf.MEDIA)
    found = json_body(request.body, "couldn't get version/kind; json parse error: ")
    return typed.without_nulls(found) if b"null" in request.body else found


def json_body(body: bytes, prefix: str) -> Any:
    try:
        found = msgspec.json.decode(body)
        msgspec.json.encode(found)  # numbers beyond 64 bits can be decoded, but not encoded
        return found
    except (msgspec.DecodeError, UnicodeDecodeError, OverflowError) as error:
        why = "unexpected end of JSON input (<empty>)" if not body else str(error)
        raise bad_request(f"{prefix}{why}") from None


def apply_body(body: bytes) -> Any:
    """The configuration of a server-side apply: YAML, which kubectl sends as JSON."""
    return typed.without_nulls(json_body(body, "")) if body.startswith(b"{") and _is_json(body) else _yaml(body)


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def field_manager(request: Request) -> str:
    """Who writes: what the client says, or the name of its program."""
    given = request.query.get("fieldManager", "")
    if len(given.encode()) > _LONGEST_MANAGER or not given.isprintable():
        why = f"Too long: may not be more than {_LONGEST_MANAGER} bytes" if given.isprintable() else "Invalid value"
        raise ApiError(422, "Invalid", f'PatchOptions.meta.k8s.io "" is invalid: fieldManager: {why}', {})
    name = given or request.user_agent.partition("/")[0][:_LONGEST_MANAGER] or "unknown"
    return name if name.isprintable() else "unknown"


def _protobuf(body: bytes) -> Any:
    try:
        return protobuf.decode(body)
    except protobuf.MalformedError as error:
        raise bad_request(str(error)) from None


def _yaml(body: bytes) -> Any:
    try:
        return typed.without_nulls(bounded_yaml.load(body, unique_keys=False))
    except ConfigError as error:
        raise bad_request(f"error converting YAML to JSON: yaml: {error}") from None


def delete_options(request: Request) -> DeleteOptions:
    """The options of a DELETE, from the body or the query."""
    found = DeleteOptions()
    if request.body:
        raw = body_of(request)
        try:
            found = msgspec.convert({} if raw is None else raw, DeleteOptions)
        except msgspec.ValidationError as error:
            raise bad_request(f"DeleteOptions: {error}") from None
    query = request.query
    seconds = int_parameter(query, "gracePeriodSeconds")
    if found.grace_period_seconds is None:
        found.grace_period_seconds = seconds
    found.propagation_policy = found.propagation_policy or query.get("propagationPolicy") or None
    if found.orphan_dependents is None and "orphanDependents" in query:
        found.orphan_dependents = bool_parameter(query, "orphanDependents")
    return found
