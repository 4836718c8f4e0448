"""Objects of kinds that plugins bring, for tests: `an_object(TeamBudget, "web", spec={"max_pods": 3})`.

An API server ignores fields that it does not know; a test means every field that it writes. So a field that the type
does not have is an error here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect as types

from stowplan.framework.config.document import suggestion
from stowplan.objects import kinds
from stowplan.objects.meta import Object

Kind = TypeVar("Kind", bound=Object)

RECORDS = (types.StructType, types.DataclassType, types.TypedDictType)
LISTS = (types.ListType, types.SetType, types.FrozenSetType, types.VarTupleType, types.CollectionType)


def an_object(
    kind: type[Kind],
    name: str,
    *,
    namespace: str = "",
    spec: Any = None,
    status: Any = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    uid: str = "",
    **fields: Any,
) -> Kind:
    """Return an object of any kind, your own kinds included.

        pool = an_object(LicensePool, "cad", namespace="default", spec={"max_seats": 3})
        world.submit(pool, an_object(PriorityClass, "high", value=1000))

    Fields are written as in Python (max_seats) or as in a manifest (maxSeats), at any depth. `spec` and `status` are
    mappings, or values of the type's own classes. Other keywords are fields beside them. A field that the type does not
    have is a TypeError.
    """
    key = f"{namespace}/{name}".lstrip("/")
    given = {"spec": spec, "status": status, **fields}
    content = _spelled({field: value for field, value in given.items() if value is not None}, types.type_info(kind), "")
    metadata = {
        "name": name, "namespace": namespace, "uid": uid or f"uid-of-{key}",
        "labels": dict(labels or {}), "annotations": dict(annotations or {}),
    }  # fmt: skip
    return kinds.convert(kind, {**content, "metadata": metadata})


def _spelled(value: Any, kind: types.Type, path: str) -> Any:
    """Return a value with the fields' names of the API, for all Structs and dataclasses in it."""
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value, enc_hook=str)
    members = kind.types if isinstance(kind, types.UnionType) else (kind,)
    for each in members:
        if isinstance(each, RECORDS) and isinstance(value, Mapping):
            return _named(value, each, path)
        if isinstance(each, LISTS) and isinstance(value, list | tuple):
            return [_spelled(item, each.item_type, f"{path}[{i}]") for i, item in enumerate(value)]
        if isinstance(each, types.DictType) and isinstance(value, Mapping):
            return {key: _spelled(item, each.value_type, f"{path}.{key}") for key, item in value.items()}
    return value


def _named(value: Mapping[str, Any], record: Any, path: str) -> dict[str, Any]:
    fields = {name: field for field in record.fields for name in (field.name, field.encode_name)}
    found = {}
    for given, item in value.items():
        where = f"{path}.{given}".lstrip(".")
        if given not in fields:
            names = [field.encode_name for field in record.fields if path or field.name != "metadata"]
            remedy = suggestion(given, names) or f"it has {', '.join(names) or 'none'}"
            raise TypeError(f"{record.cls.__name__} has no field {given!r} (at {where}); {remedy}")
        field = fields[given]
        if field.encode_name in found:
            raise TypeError(f"{where} is given twice, as {field.name!r} and {field.encode_name!r}")
        found[field.encode_name] = _spelled(item, field.type, where)
    return found
