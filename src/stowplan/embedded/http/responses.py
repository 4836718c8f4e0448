"""Responses: a status code, a body in the requested format, and warnings as headers."""

from __future__ import annotations

from typing import Any

import msgspec

from stowplan.embedded.api import versions
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError
from stowplan.embedded.http.requests import JSON, YAML, ResponseFormat
from stowplan.embedded.resources import ServedResource
from stowplan.objects import yaml_text


class ApiResponse(msgspec.Struct):
    status: int
    body: bytes
    media: str = JSON
    warnings: list[str] = msgspec.field(default_factory=list)


def of(document: Any, form: ResponseFormat = ResponseFormat(), status: int = 200) -> ApiResponse:  # noqa: B008
    """The response with a document, or with any other value that JSON can hold."""
    if form.media == YAML:
        return ApiResponse(status, yaml_text.dump(document, sort_keys=True).encode(), YAML)
    return ApiResponse(status, msgspec.json.encode(document))


def of_object(resource: ServedResource, document: Document, form: ResponseFormat, status: int = 200) -> ApiResponse:
    """The response with a stored document, converted to the version of the resource."""
    if form.kind == "PartialObjectMetadata":
        return of(partial(document), form, status)
    return of(versions.as_served(resource, document), form, status)


def partial(document: Document) -> Document:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": document["metadata"]}


def refusal(error: ApiError) -> ApiResponse:
    return of(error.status(), status=error.code)


def text(body: str, status: int = 200) -> ApiResponse:
    return ApiResponse(status, body.encode(), "text/plain; charset=utf-8")
