"""CustomResourceDefinitions: names, versions and schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, invalid_value, required, unsupported
from stowplan.embedded.resources import BUILT_IN

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_GROUPS = frozenset(resource.group for resource in BUILT_IN)


def check(definition: Document) -> Iterator[StatusCause]:
    spec = definition["spec"]
    names = spec["names"]
    for name in ("group", "scope"):
        if not spec.get(name):
            yield required(f"spec.{name}")
    for name in ("plural", "kind"):
        if not names.get(name):
            yield required(f"spec.names.{name}")
    if definition["metadata"].get("name") != f"{names.get('plural')}.{spec.get('group')}":
        why = 'must be spec.names.plural+"."+spec.group'
        yield invalid_value("metadata.name", definition["metadata"].get("name", ""), why)
    if spec.get("group") in _GROUPS:
        yield invalid_value("spec.group", spec["group"], "this group is served by the cluster itself")
    if spec.get("scope") not in ("Cluster", "Namespaced", None, ""):
        yield unsupported("spec.scope", spec["scope"], ["Cluster", "Namespaced"])
    yield from _versions(spec.get("versions", []))
    if spec["conversion"]["strategy"] != "None":
        yield invalid_value(
            "spec.conversion.strategy", spec["conversion"]["strategy"], "the embedded cluster converts nothing"
        )


def _versions(versions: list[Document]) -> Iterator[StatusCause]:
    if not versions:
        yield required("spec.versions", "must have exactly one version marked as storage version")
    elif sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid_value("spec.versions", "…", "must have exactly one version marked as storage version")
    for index, version in enumerate(versions):
        field = f"spec.versions[{index}]"
        if not re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", version.get("name", "")):
            yield invalid_value(f"{field}.name", version.get("name", ""), "a DNS-1035 label is required")
        schema = version.get("schema", {}).get("openAPIV3Schema")
        if schema is None:
            yield required(f"{field}.schema.openAPIV3Schema")
        else:
            yield from _schema(schema, f"{field}.schema.openAPIV3Schema", root=True)


def _schema(schema: Any, path: str, *, root: bool = False) -> Iterator[StatusCause]:
    """Check a schema as far as the embedded cluster uses it:

    the form of every part, known types, patterns that compile.
    """
    if not isinstance(schema, dict):
        yield invalid_value(path, str(type(schema).__name__), "must be an object")
        return
    kind = schema.get("type")
    if kind not in _TYPES and not _may_lack_type(schema):
        yield unsupported(f"{path}.type", kind or "", _TYPES) if kind else required(f"{path}.type")
    if root and kind != "object":
        yield invalid_value(f"{path}.type", kind or "", "must be object at the root")
    if "pattern" in schema and not _compiles(schema["pattern"]):
        yield invalid_value(f"{path}.pattern", schema["pattern"], "must be a valid regular expression")
    yield from _value_types(schema, path)
    for name, below in (schema.get("properties") or {}).items() if isinstance(schema.get("properties"), dict) else ():
        yield from _schema(below, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if name in schema and schema[name] not in (True, False):
            yield from _schema(schema[name], f"{path}.{name}")


def _may_lack_type(schema: Document) -> bool:
    return bool(schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields"))


_VALUE_TYPES: dict[str, type | tuple[type, ...]] = {
    "properties": dict, "required": list, "enum": list, "allOf": list, "anyOf": list, "oneOf": list, "not": dict,
    "minimum": (int, float), "maximum": (int, float), "minLength": int, "maxLength": int, "minItems": int,
    "maxItems": int, "minProperties": int, "maxProperties": int, "pattern": str, "nullable": bool,
    "multipleOf": (int, float), "uniqueItems": bool, "exclusiveMinimum": bool, "exclusiveMaximum": bool, "format": str,
}  # fmt: skip


def _value_types(schema: Document, path: str) -> Iterator[StatusCause]:
    for name, expected in _VALUE_TYPES.items():
        if name in schema and not isinstance(schema[name], expected):
            yield invalid_value(f"{path}.{name}", str(schema[name]), "is of the wrong type")
    for name in ("allOf", "anyOf", "oneOf"):
        if isinstance(schema.get(name), list) and not all(isinstance(each, dict) for each in schema[name]):
            yield invalid_value(f"{path}.{name}", "…", "must be a list of objects")
    if schema.get("multipleOf") == 0:
        yield invalid_value(f"{path}.multipleOf", 0, "must be greater than 0")


def _compiles(pattern: Any) -> bool:
    try:
        re.compile(pattern)
    except (re.error, TypeError, RecursionError):
        return False
    return True


def check_update(definition: Document, old: Document) -> Iterator[StatusCause]:
    for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
        before, after = old["spec"], definition["spec"]
        for part in path:
            before, after = before.get(part, ""), after.get(part, "")
        if before != after:
            yield invalid_value(f"spec.{'.'.join(path)}", after, "field is immutable")
