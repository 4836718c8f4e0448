"""Decodes the body of a request into a document of its kind, or refuses it."""

from __future__ import annotations

from typing import Any

from stowplan.embedded.api import versions
from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError, bad_request
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.schema import typed
from stowplan.embedded.schema.custom_resources import Definitions

_METADATA = "meta.v1.ObjectMeta"


def decoded(resource: ServedResource, raw: Any, options: RequestOptions, definitions: Definitions) -> Document:
    """The document in its stored form: types checked, unknown fields dropped, custom resources defaulted.

    `raw` has no nulls.
    """
    if not isinstance(raw, dict):
        raise unrecognized(resource, "json: cannot unmarshal into an object")
    _check_kind(resource, raw)
    decoded = _custom(resource, raw, options, definitions) if resource.custom else _builtin(resource, raw, options)
    decoded["apiVersion"], decoded["kind"] = resource.api_version, resource.kind
    metadata = decoded.setdefault("metadata", {})
    for name in ("managedFields", "selfLink"):
        metadata.pop(name, None)
    for name in ("labels", "annotations", "ownerReferences", "finalizers"):
        if name in metadata and not metadata[name]:
            del metadata[name]
    return versions.as_stored(resource, decoded)


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


def _builtin(resource: ServedResource, raw: Document, options: RequestOptions) -> Document:
    try:
        decoded = typed.decoded(resource.type, raw)
    except typed.WrongTypeError as error:
        raise (options.bad_patch(str(error)) if options.patch else cannot_be_handled(resource, str(error))) from None
    if options.validation != "Ignore":
        options.report_unknown(resource.kind, resource.version, list(typed.unknown(raw, decoded)))
    return decoded


def cannot_be_handled(resource: ServedResource, why: str) -> ApiError:
    return bad_request(f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}')


def _custom(resource: ServedResource, raw: Document, options: RequestOptions, definitions: Definitions) -> Document:
    try:
        metadata = typed.decoded(_METADATA, raw.get("metadata", {}))
    except typed.WrongTypeError as error:
        raise cannot_be_handled(resource, str(error)) from None
    version = definitions.version_of(resource)
    pruned = version.pruned(raw)
    options.report_unknown(resource.kind, resource.version, list(typed.unknown(raw, {**pruned, "metadata": metadata})))
    return version.defaulted({**pruned, "metadata": metadata})
