"""How a value is divided among owners: by the recorded types for built-in kinds, by the schema for custom resources."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from stowplan.embedded.documents import Document
from stowplan.embedded.schema import builtin_types
from stowplan.embedded.schema.builtin_types import Field

OBJECT, KEYED, SET, LEAF = "object", "keyed list", "set", "leaf"
_METADATA = "meta.v1.ObjectMeta"


class FieldShape(Protocol):
    """`kind` is OBJECT (owned field by field), KEYED (a list, item by item), SET (value by value) or LEAF."""

    @property
    def kind(self) -> str: ...
    @property
    def keys(self) -> tuple[str, ...]: ...
    def field(self, name: str) -> FieldShape: ...
    def item(self) -> FieldShape: ...
    def declares(self, name: str) -> bool: ...
    def default(self, key: str) -> Any: ...


class BuiltinShape(msgspec.Struct, frozen=True):
    """A value of a recorded type, for instance "[]core.v1.Container" that is owned as a map by name."""

    type: str
    owned: str = ""
    keys: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        if self.type.startswith("[]"):
            return {"map": KEYED, "set": SET}.get(self.owned, LEAF)
        if self.owned == "atomic":
            return LEAF
        whole = self.type == "any" or self.type.startswith("{}") or bool(builtin_types.fields(self.type))
        return OBJECT if whole else LEAF

    def field(self, name: str) -> FieldShape:
        if self.type.startswith("{}"):
            return BuiltinShape(self.type[2:])
        found = builtin_types.fields(self.type).get(name)
        return _of_field(found) if found is not None else BuiltinShape("any")

    def item(self) -> FieldShape:
        return BuiltinShape(self.type[2:])

    def declares(self, name: str) -> bool:
        return name in builtin_types.fields(self.type)

    def default(self, key: str) -> Any:
        found = builtin_types.fields(self.type[2:]).get(key)
        return None if found is None or found.default is builtin_types.MISSING else found.default


def _of_field(field: Field) -> FieldShape:
    return BuiltinShape(field.type, field.owned, field.keys)


class CustomShape(msgspec.Struct, frozen=True):
    """A value of a structural schema; `top` for the whole object, whose metadata is of a built-in type."""

    schema: Document
    top: bool = False

    @property
    def kind(self) -> str:
        if self.schema.get("type") == "array":
            return {"map": KEYED, "set": SET}.get(self.schema.get("x-kubernetes-list-type", ""), LEAF)
        whole = self.schema.get("type", "object") == "object" and self.schema.get("x-kubernetes-map-type") != "atomic"
        return OBJECT if whole else LEAF

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.schema.get("x-kubernetes-list-map-keys", ()))

    def field(self, name: str) -> FieldShape:
        if self.top and name == "metadata":
            return BuiltinShape(_METADATA)
        found = (self.schema.get("properties") or {}).get(name, self.schema.get("additionalProperties"))
        return CustomShape(found) if isinstance(found, dict) else BuiltinShape("any")

    def item(self) -> FieldShape:
        found = self.schema.get("items")
        return CustomShape(found) if isinstance(found, dict) else BuiltinShape("any")

    def declares(self, name: str) -> bool:
        return (self.top and name == "metadata") or name in (self.schema.get("properties") or {})

    def default(self, key: str) -> Any:
        items = self.schema.get("items")
        properties = items.get("properties") if isinstance(items, dict) else None
        return ((properties or {}).get(key) or {}).get("default")
