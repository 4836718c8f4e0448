"""Strategic merge patches: merge patches that merge lists item by item.

A list with the patch strategy "merge" is merged by the merge key of its items (containers by name), or as a set of
plain values (finalizers). The patch may contain directives: `$patch: delete` or `replace` in an object or item,
`$deleteFromPrimitiveList/…`, `$setElementOrder/…`, and `$retainKeys`.
"""

from __future__ import annotations

from typing import Any

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError, bad_patch
from stowplan.embedded.schema import builtin_types
from stowplan.embedded.schema.builtin_types import Field

_DELETE_VALUES, _ORDER, _RETAIN, _DIRECTIVE = "$deleteFromPrimitiveList/", "$setElementOrder/", "$retainKeys", "$patch"


def strategic_merge(document: Document, patch: Document, type_name: str) -> Document:
    """The patched document. Raises 422 if the patch does not fit it."""
    return _object(document, patch, type_name)


def _object(document: Document, patch: Document, type_name: str) -> Document:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_patch(f"Unknown patch type: {directive}")
    known, merged = builtin_types.fields(type_name), dict(document)
    if _RETAIN in patch:
        keep = patch[_RETAIN]
        if not isinstance(keep, list):
            raise bad_patch("$retainKeys must be a list")
        merged = {key: value for key, value in merged.items() if key in keep}
    for key, value in patch.items():
        if not key.startswith("$"):
            _field(merged, key, value, patch, known.get(key))
    _delete_values(merged, patch)
    return merged


def _field(merged: Document, key: str, value: Any, patch: Document, field: Field | None) -> None:
    old = merged.get(key)
    if value is None:
        merged.pop(key, None)
    elif isinstance(value, dict) and (old is None or isinstance(old, dict)):
        _object_field(merged, key, value, field)
    elif isinstance(value, list) and field and "merge" in field.strategy and isinstance(old, list | None):
        merged[key] = _list(old or [], value, field, patch.get(f"{_ORDER}{key}"))
    elif old is not None and isinstance(old, dict | list) and type(old) is not type(value):
        raise bad_patch(f"Invalid value: unable to merge {key}: {type(value).__name__} into {type(old).__name__}")
    else:
        merged[key] = value


def _object_field(merged: Document, key: str, value: Document, field: Field | None) -> None:
    below = "" if field is None else field.item if field.holds_many else field.type
    old = merged.get(key) or {}
    if value.get(_DIRECTIVE) == "delete":
        merged.pop(key, None)
    elif field is not None and field.type.startswith("{}") and builtin_types.fields(below):
        merged[key] = {**old, **{name: _object(old.get(name, {}), each, below) for name, each in value.items()}}
    else:
        merged[key] = _object(old, value, below)


def _list(old: list[Any], patch: list[Any], field: Field, order: Any) -> list[Any]:
    if not field.key:
        merged = old + [value for value in patch if value not in old]
    else:
        merged = _items(old, patch, field)
    return _ordered(merged, order, field.key) if isinstance(order, list) else merged


def _items(old: list[Any], patch: list[Any], field: Field) -> list[Any]:
    """Merge items by their key; new items are appended."""
    if any(not isinstance(item, dict) for item in (*old, *patch)):
        raise bad_patch(f"Invalid value: the items of a list that is merged by {field.key} must be objects")
    if any(item.get(_DIRECTIVE) == "replace" for item in patch):
        return [item for item in patch if _DIRECTIVE not in item]
    merged = list(old)
    for item in patch:
        if field.key not in item:
            if _DIRECTIVE in item:
                continue
            raise _without_key(item, field.key)
        positions = [position for position, other in enumerate(merged) if other.get(field.key) == item[field.key]]
        if item.get(_DIRECTIVE) == "delete":
            merged = [other for position, other in enumerate(merged) if position not in positions]
        elif positions:
            merged[positions[0]] = _object(merged[positions[0]], item, field.item)
        else:
            merged.append(_object({}, item, field.item))
    return merged


def _without_key(item: Document, key: str) -> ApiError:
    return bad_patch(f"Invalid value: map: {item} does not contain declared merge key: {key}")


def _ordered(merged: list[Any], order: list[Any], key: str) -> list[Any]:
    """The items in the order of the patch; an item that the patch does not name stays after its neighbour."""

    def name(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    names = [name(item) for item in order]
    ranked: list[tuple[int, int, Any]] = []
    last = -1
    for position, item in enumerate(merged):
        last = names.index(name(item)) if name(item) in names else last
        ranked.append((last, position, item))
    return [item for _, _, item in sorted(ranked, key=lambda each: each[:2])]


def _delete_values(merged: Document, patch: Document) -> None:
    for key, values in patch.items():
        if key.startswith(_DELETE_VALUES) and isinstance(values, list):
            field = key.removeprefix(_DELETE_VALUES)
            if isinstance(merged.get(field), list):
                merged[field] = [value for value in merged[field] if value not in values]
