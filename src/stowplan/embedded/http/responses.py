"""Answers: a status, a body in the form that was asked for, and warnings as headers."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import yaml

from stowplan.embedded.api import versions
from stowplan.embedded.errors import ApiError
from stowplan.embedded.http.requests import JSON, YAML, Form
from stowplan.embedded.resources import ServedResource

Document: TypeAlias = dict[str, Any]


class ApiResponse(msgspec.Struct):
    status: int
    body: bytes
    media: str = JSON
    warnings: list[str] = msgspec.field(default_factory=list)


def of(document: Any, form: Form = Form(), status: int = 200) -> ApiResponse:  # noqa: B008
    """Anything that can be said in JSON."""
    if form.media == YAML:
        return ApiResponse(status, yaml.safe_dump(document, default_flow_style=False).encode(), YAML)
    return ApiResponse(status, msgspec.json.encode(document))


def shown(resource: ServedResource, document: Document, form: Form, status: int = 200) -> ApiResponse:
    """A stored document, as its resource shows it."""
    if form.kind == "PartialObjectMetadata":
        return of(partial(document), form, status)
    return of(versions.shown(resource, document), form, status)


def partial(document: Document) -> Document:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": document["metadata"]}


def refusal(error: ApiError) -> ApiResponse:
    return of(error.status(), status=error.code)


def text(body: str, status: int = 200) -> ApiResponse:
    return ApiResponse(status, body.encode(), "text/plain; charset=utf-8")
