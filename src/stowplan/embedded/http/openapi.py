"""OpenAPI v3, as far as kubectl needs it: that the server validates fields, and which fields there are.

The fields come from the recorded schema, with descriptions of our own; those of custom resources come from their
definitions.
kubectl knows the patch strategies of built-in kinds itself, so they are left out.
"""

from __future__ import annotations

from stowplan.embedded.documents import Document
from stowplan.embedded.http import responses
from stowplan.embedded.http.responses import ApiResponse
from stowplan.embedded.resources import ResourceCatalogue, ServedResource
from stowplan.embedded.schema import builtin_types, descriptions
from stowplan.embedded.schema.custom_resources import Definitions

_PLAIN: dict[str, Document] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "boolean": {"type": "boolean"},
    "number": {"type": "number"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "any": {"type": "object"},
}
# Types that kubectl calls by their names.
_NAMED: dict[str, tuple[str, Document]] = {
    "quantity": ("resource.Quantity", {"oneOf": [{"type": "string"}, {"type": "number"}]}),
    "int|string": (
        "intstr.IntOrString",
        {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    ),
    "fields": ("meta.v1.FieldsV1", {"type": "object"}),
}
_FIELDS_V1 = ("meta.v1.ManagedFieldsEntry", "fieldsV1")
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string"}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]
_METADATA = "meta.v1.ObjectMeta"
# kubectl requests the first spelling, which is not a valid media type; the API server answers with the second.
ASKED_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
ANSWERED_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def answer(path: str, catalogue: ResourceCatalogue, definitions: Definitions) -> Document | None:
    """The response for /openapi/v3 and the paths below it; None for any other path."""
    parts = path.strip("/").split("/")[2:]
    if not parts:
        roots = {resource.root.strip("/"): resource for resource in catalogue}
        return {"paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}"} for root in roots}}
    group, version = (parts[1], parts[2]) if parts[0] == "apis" and len(parts) == 3 else ("", parts[-1])
    if len(parts) not in (2, 3) or not catalogue.serves(group, version):
        return None
    return _document(catalogue.served(group, version), definitions)


def second_version(accept: str) -> ApiResponse:
    """OpenAPI v2 without definitions.

    kubectl requests it to look up the items of a `kind: List`, and leaves items without a definition to the server.
    """
    if ASKED_V2 in accept:
        return ApiResponse(200, b"\x0a\x032.0", ANSWERED_V2)  # the field "swagger": version 2.0
    about = {"title": "Kubernetes", "version": builtin_types.version()}
    return responses.of({"swagger": "2.0", "info": about, "paths": {}, "definitions": {}})


def _document(resources: list[ServedResource], definitions: Definitions) -> Document:
    paths: Document = {}
    schemas: dict[str, Document] = {}
    for resource in resources:
        name = _schema_name(resource)
        paths |= _paths(resource, name)
        if resource.custom:
            schemas[name] = _custom(definitions.version_of(resource).schema)
            _collect(_METADATA, schemas)
        else:
            _collect(resource.type, schemas)
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        schemas[name] = {**schemas[name], "x-kubernetes-group-version-kind": [kind]}
    about = {"title": "Kubernetes", "version": builtin_types.version()}
    return {"openapi": "3.0.0", "info": about, "paths": paths, "components": {"schemas": schemas}}


def _schema_name(resource: ServedResource) -> str:
    return f"custom.{resource.group}.{resource.version}.{resource.kind}" if resource.custom else resource.type


def _paths(resource: ServedResource, name: str) -> Document:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    body = {"schema": {"$ref": f"#/components/schemas/{name}"}}
    media = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
    answered = {"200": {"description": "OK", "content": {"application/json": body}}}
    create: Document = {
        "parameters": _PARAMETERS, "requestBody": {"content": {"application/json": body}}, "responses": answered,
        "x-kubernetes-action": "post", "x-kubernetes-group-version-kind": kind,
    }  # fmt: skip
    patch = {
        **create,
        "requestBody": {"content": {each: {"schema": {"type": "object"}} for each in media}},
        "x-kubernetes-action": "patch",
    }
    collection = resource.path("{namespace}" if resource.namespaced else "")
    if "patch" not in resource.verbs:
        return {collection: {"post": create}}
    return {collection: {"post": create}, f"{collection}/{{name}}": {"patch": patch}}


def _collect(type_name: str, schemas: dict[str, Document]) -> None:
    """Add a type and all types that it refers to."""
    if type_name in schemas:
        return
    schemas[type_name] = {}
    fields = builtin_types.fields(type_name)
    properties = {
        name: _described(
            _written("fields" if (type_name, name) == _FIELDS_V1 else field.type, schemas),
            descriptions.of_field(type_name, name, field.type),
        )
        for name, field in fields.items()
    }
    required = [name for name, field in fields.items() if field.required]
    found = _described({"type": "object", "properties": properties}, descriptions.about(type_name))
    schemas[type_name] = found | ({"required": required} if required else {})


def _described(schema: Document, description: str) -> Document:
    return {"description": description, **schema} if description else schema


def _written(kind: str, schemas: dict[str, Document]) -> Document:
    if kind.startswith("[]"):
        return {"type": "array", "items": _written(kind[2:], schemas)}
    if kind.startswith("{}"):
        return {"type": "object", "additionalProperties": _written(kind[2:], schemas)}
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _NAMED:
        name, schema = _NAMED[kind]
        schemas[name] = schema
        return _reference(name)
    _collect(kind, schemas)
    return _reference(kind)


def _reference(name: str) -> Document:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}]}


def _custom(found: Document) -> Document:
    properties = {"apiVersion": _PLAIN["string"], "kind": _PLAIN["string"], **(found.get("properties") or {})}
    return {**found, "type": "object", "properties": {**properties, "metadata": _reference(_METADATA)}}
