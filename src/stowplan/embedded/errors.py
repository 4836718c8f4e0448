"""Errors of the API, in the form and the words of a Kubernetes API server: a Status with code, reason and details.

    raise errors.not_found(PODS, "web-0")

Each function makes one kind of error. The HTTP server turns an `ApiError` into its response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec


class ResourceNames(Protocol):
    """The names of a resource that error messages use."""

    @property
    def group(self) -> str: ...
    @property
    def plural(self) -> str: ...
    @property
    def kind(self) -> str: ...


class StatusCause(msgspec.Struct, frozen=True):
    """One invalid field: its path, a message, and a reason of the API."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


class ApiError(Exception):
    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    @property
    def is_transient(self) -> bool:
        """True if another try soon succeeds, or is not needed: somebody was faster, or the namespace goes."""
        causes = (self.details or {}).get("causes", ())
        return self.reason in ("AlreadyExists", "Conflict") or any(
            cause.get("reason") == "NamespaceTerminating" for cause in causes
        )

    def status(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
        }  # fmt: skip
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        return body | {"code": self.code}


def success(code: int = 200, details: dict[str, Any] | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return body | ({"details": details} if details else {"code": code})


def required(field: str, more: str = "") -> StatusCause:
    return StatusCause(field, f"Required value: {more}" if more else "Required value", "FieldValueRequired")


def invalid_value(field: str, value: Any, why: str) -> StatusCause:
    return StatusCause(field, f"Invalid value: {_shown(value)}: {why}")


def forbidden_field(field: str, why: str) -> StatusCause:
    return StatusCause(field, f"Forbidden: {why}", "FieldValueForbidden")


def unsupported(field: str, value: Any, choices: Sequence[str]) -> StatusCause:
    known = ", ".join(f'"{choice}"' for choice in choices)
    message = f"Unsupported value: {_shown(value)}: supported values: {known}"
    return StatusCause(field, message, "FieldValueNotSupported")


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _about(resource: ResourceNames, name: str) -> dict[str, Any]:
    group = {"group": resource.group} if resource.group else {}
    return ({"name": name} if name else {}) | group | {"kind": resource.plural}


def qualified(resource: ResourceNames) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def not_found(resource: ResourceNames, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{qualified(resource)} "{name}" not found', _about(resource, name))


def no_such_resource() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: ResourceNames, name: str) -> ApiError:
    message = f'{qualified(resource)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _about(resource, name))


def conflict(resource: ResourceNames, name: str, why: str = "") -> ApiError:
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {qualified(resource)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _about(resource, name))


def apply_conflict(message: str, conflicts: Sequence[tuple[str, str]]) -> ApiError:
    """409 of server-side apply: for each conflict what is said of it, and its field."""
    causes = [{"reason": "FieldManagerConflict", "message": said, "field": field} for said, field in conflicts]
    return ApiError(409, "Conflict", message, {"causes": causes})


def invalid(resource: ResourceNames, name: str, causes: Sequence[StatusCause]) -> ApiError:
    """422. The details name the kind, not the plural."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    said = [f"{cause.field}: {cause.message}" for cause in causes]
    text = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    details = _about(resource, name) | {"kind": resource.kind}
    details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {text}', details)


def bad_patch(why: str) -> ApiError:
    cause = {"reason": "FieldValueInvalid", "message": why, "field": "patch"}
    return ApiError(422, "Invalid", f' "" is invalid: patch: {why}', {"causes": [cause]})


def unprocessable() -> ApiError:
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(resource: ResourceNames, name: str, why: str, causes: list[dict[str, str]] | None = None) -> ApiError:
    details = _about(resource, name) | ({"causes": causes} if causes else {})
    return ApiError(403, "Forbidden", f'{qualified(resource)} "{name}" is forbidden: {why}', details)


def no_containers(what: str) -> ApiError:
    """A request for what only running containers have."""
    return ApiError(400, "BadRequest", f"no containers run here, so {what}: the kubelets are simulated")


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def not_acceptable() -> ApiError:
    known = "application/json, application/yaml, application/json;stream=watch"
    return ApiError(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {known}", {})


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def too_large(limit: int) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def unsupported_media(*accepted: str) -> ApiError:
    known = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {known}"
    return ApiError(415, "UnsupportedMediaType", message)


def too_many_requests(message: str, causes: list[dict[str, str]]) -> ApiError:
    return ApiError(429, "TooManyRequests", message, {"causes": causes} if causes else {})


def version_too_large(wanted: int, current: int) -> ApiError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return ApiError(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})
