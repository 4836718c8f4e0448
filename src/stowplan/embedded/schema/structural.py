"""The structural schema of a custom resource: unknown fields are pruned, defaults filled in, the rest is validated.

Structural schemas are OpenAPI 3.0, which takes its keywords from JSON Schema draft 4. `nullable` and
`x-kubernetes-int-or-string` are translated for the validation library, and its errors into the words of the API server.
CEL rules (`x-kubernetes-validations`) are not evaluated: a client that installs one gets a warning.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, invalid_value, required, unsupported

_PRESERVE, _EMBEDDED = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_LIST, _KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
_OBJECT_FIELDS = ("apiVersion", "kind", "metadata")
_CHILDREN = ("items", "additionalProperties", "not")
_MANY = ("allOf", "anyOf", "oneOf")
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}


class StructuralSchema:
    """`openAPIV3Schema` of one version of a CustomResourceDefinition."""

    def __init__(self, schema: Document) -> None:
        self._schema = schema
        self._validator: Any = None

    @property
    def schema(self) -> Document:
        return self._schema

    def pruned(self, document: Document) -> Document:
        kept: Document = _pruned(document, self._schema, whole=True)
        return kept

    def defaulted(self, document: Document) -> Document:
        filled = copy.deepcopy(document)
        _fill(filled, self._schema)
        return filled

    def causes(self, document: Document) -> list[StatusCause]:
        """The invalid fields of a document."""
        if self._validator is None:
            import jsonschema  # imported late, since it is slow and only custom resources need it

            formats = jsonschema.FormatChecker(formats=())
            formats.checks("date-time", ValueError)(_is_date_time)
            self._validator = jsonschema.Draft4Validator(_translated(self._schema), format_checker=formats)
        checked = {key: value for key, value in document.items() if key not in _OBJECT_FIELDS}
        found = [cause for error in self._validator.iter_errors(checked) for cause in _causes(error)]
        return found or list(_duplicates(checked, self._schema, ""))


def has_rules(schema: Any) -> bool:
    """True if a schema contains CEL rules."""
    if isinstance(schema, dict):
        return "x-kubernetes-validations" in schema or any(has_rules(value) for value in schema.values())
    return isinstance(schema, list) and any(has_rules(value) for value in schema)


def _pruned(value: Any, schema: Document, *, whole: bool = False) -> Any:
    if isinstance(value, list):
        items = schema.get("items")
        return [_pruned(item, items) for item in value] if isinstance(items, dict) else value
    if not isinstance(value, dict):
        return value
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    kept: Document = {}
    for key, found in value.items():
        if (whole or schema.get(_EMBEDDED)) and key in _OBJECT_FIELDS:
            kept[key] = found
        elif key in properties:
            kept[key] = _pruned(found, properties[key])
        elif isinstance(others, dict):
            kept[key] = _pruned(found, others)
        elif others is True or schema.get(_PRESERVE):
            kept[key] = found
    return kept


def _fill(value: Any, schema: Document) -> None:
    """Fill in defaults, in place."""
    if isinstance(value, dict):
        for key, below in (schema.get("properties") or {}).items():
            if key not in value and "default" in below:
                value[key] = copy.deepcopy(below["default"])
            if key in value:
                _fill(value[key], below)
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            for key in value.keys() - (schema.get("properties") or {}).keys():
                _fill(value[key], others)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in value:
            _fill(item, schema["items"])


def _is_date_time(value: Any) -> bool:
    """True if a text is a time with an offset from UTC. A value that is not a text has no format to check."""
    return not isinstance(value, str) or ("T" in value and datetime.fromisoformat(value).tzinfo is not None)


def _duplicates(value: Any, schema: Document, path: str) -> Iterator[StatusCause]:
    """Duplicate items of a set or of a list with keys, in a document that is otherwise valid."""
    if isinstance(value, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, found in value.items():
            below = properties.get(key, others)
            if isinstance(below, dict):
                yield from _duplicates(found, below, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        seen: set[str] = set()
        for index, item in enumerate(value):
            identity = _identity(item, schema)
            if identity in seen:
                yield StatusCause(f"{path}[{index}]", f"Duplicate value: {identity}", "FieldValueDuplicate")
            if identity is not None:
                seen.add(identity)
            yield from _duplicates(item, schema["items"], f"{path}[{index}]")


def _identity(item: Any, schema: Document) -> str | None:
    """The part of an item that must be unique in its list, as JSON; None if items may repeat."""
    kind = schema.get(_LIST)
    if kind == "map" and isinstance(item, dict):
        item = {key: item.get(key) for key in schema.get(_KEYS, ())}
    return json.dumps(item, separators=(",", ":"), sort_keys=True) if kind in ("map", "set") else None


def _translated(schema: Any) -> Any:
    """The schema in the keywords of JSON Schema."""
    if not isinstance(schema, dict):
        return schema
    result = {key: value for key, value in schema.items() if not key.startswith("x-") and key not in ("default",)}
    for key in _CHILDREN:
        if isinstance(result.get(key), dict):
            result[key] = _translated(result[key])
    for key in _MANY:
        if isinstance(result.get(key), list):
            result[key] = [_translated(each) for each in result[key]]
    if isinstance(result.get("properties"), dict):
        result["properties"] = {key: _translated(value) for key, value in result["properties"].items()}
    if schema.get(_INT_OR_STRING):
        result["type"] = ["integer", "string"]
    if result.pop("nullable", False) and "type" in result:
        result["type"] = [*([result["type"]] if isinstance(result["type"], str) else result["type"]), "null"]
    if not result.get("required"):
        result.pop("required", None)  # draft 4 requires at least one entry
    return result


def _causes(error: Any) -> Iterator[StatusCause]:
    path, keyword, expected, found = _path(error.absolute_path), error.validator, error.validator_value, error.instance
    body = f"{path} in body"
    match keyword:
        case "required":
            missing = str(error.message).split("'")[1]
            yield required(f"{path}.{missing}" if path else missing)
        case "type":
            name = _TYPES.get(type(found), "null")
            kind = expected if isinstance(expected, str) else ",".join(expected)
            yield StatusCause(path, f'Invalid value: "{name}": {body} must be of type {kind}: "{name}"', _BAD_TYPE)
        case "enum":
            yield unsupported(path, found, [str(value) for value in expected])
        case "format":
            field = path.rpartition(".")[2]  # the API server names only the last part of the path here
            yield invalid_value(path, found, f"{field} in body must be of type {expected}: {json.dumps(found)}")
        case "maxLength":
            yield StatusCause(path, f"Too long: may not be more than {expected} bytes", "FieldValueTooLong")
        case "maxItems":
            yield StatusCause(path, f"Too many: {len(found)}: must have at most {expected} items", "FieldValueTooMany")
        case _:
            yield invalid_value(path, len(found) if keyword in _COUNTING else found, _message(body, error))


_BAD_TYPE = "FieldValueTypeInvalid"
_COUNTING = ("minItems", "minProperties", "maxProperties")


def _message(body: str, error: Any) -> str:
    expected, schema = error.validator_value, error.schema
    messages = {
        "minimum": f"should be greater than {'' if schema.get('exclusiveMinimum') else 'or equal to '}{expected}",
        "maximum": f"should be less than {'' if schema.get('exclusiveMaximum') else 'or equal to '}{expected}",
        "minLength": f"should be at least {expected} chars long",
        "minItems": f"should have at least {expected} items",
        "pattern": f"should match '{expected}'",
        "multipleOf": f"should be a multiple of {expected}",
        "uniqueItems": "shouldn't contain duplicates",
    }
    known = messages.get(error.validator)
    return f"{body} {known}" if known else f"{body} must validate: {error.message}"


def _path(parts: Iterable[Any]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
