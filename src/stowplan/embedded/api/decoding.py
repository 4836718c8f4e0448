"""From what a client sent to a document that fits its kind, or to a refusal."""

from __future__ import annotations

from typing import Any, TypeAlias

from stowplan.embedded.api import versions
from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.errors import ApiError, bad_request
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.schema import typed
from stowplan.embedded.schema.custom_resources import Definitions

Document: TypeAlias = dict[str, Any]
_METADATA = "meta.v1.ObjectMeta"


def document(resource: ServedResource, raw: Any, asked: RequestOptions, definitions: Definitions) -> Document:
    """In its stored form, shaped and pruned; custom resources with their defaults. `raw` has no nulls any more."""
    if not isinstance(raw, dict):
        raise unrecognized(resource, "json: cannot unmarshal into an object")
    _check_kind(resource, raw)
    shaped = _custom(resource, raw, asked, definitions) if resource.custom else _known(resource, raw, asked)
    shaped["apiVersion"], shaped["kind"] = resource.api_version, resource.kind
    metadata = shaped.setdefault("metadata", {})
    for name in ("managedFields", "selfLink"):
        metadata.pop(name, None)
    for name in ("labels", "annotations", "ownerReferences", "finalizers"):
        if name in metadata and not metadata[name]:
            del metadata[name]
    return versions.stored(resource, shaped)


def unrecognized(resource: ServedResource, why: str) -> ApiError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {resource.kind}): couldn't get version/kind; "
        f"json parse error: {why}"
    )


def _check_kind(resource: ServedResource, raw: Document) -> None:
    kind, version = raw.get("kind"), raw.get("apiVersion")
    if resource.custom and not kind:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): Object 'Kind' is missing"
        )
    for value in (kind, version):
        if value is not None and not isinstance(value, str):
            raise unrecognized(resource, "apiVersion and kind must be strings")
    if kind and kind != resource.kind:
        name = f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        raise bad_request(f"{name}: unknown conversion")
    if version and version != resource.api_version:
        name = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        raise bad_request(f'{name}: no kind "{resource.kind}" is registered for version "{version}"')


def _known(resource: ServedResource, raw: Document, asked: RequestOptions) -> Document:
    try:
        shaped = typed.shaped(resource.type, raw)
    except typed.WrongTypeError as error:
        raise (asked.bad_patch(str(error)) if asked.patch else mishandled(resource, str(error))) from None
    if asked.validation != "Ignore":
        asked.found_unknown(resource.kind, resource.version, list(typed.unknown(raw, shaped)))
    return shaped


def mishandled(resource: ServedResource, why: str) -> ApiError:
    return bad_request(f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}')


def _custom(resource: ServedResource, raw: Document, asked: RequestOptions, definitions: Definitions) -> Document:
    try:
        metadata = typed.shaped(_METADATA, raw.get("metadata", {}))
    except typed.WrongTypeError as error:
        raise mishandled(resource, str(error)) from None
    structure = definitions.structure(resource)
    pruned = structure.pruned(raw)
    asked.found_unknown(resource.kind, resource.version, list(typed.unknown(raw, {**pruned, "metadata": metadata})))
    return structure.defaulted({**pruned, "metadata": metadata})
