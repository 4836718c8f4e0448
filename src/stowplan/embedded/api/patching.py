"""JSON patches (RFC 6902) and merge patches (RFC 7386). The patched document is a new one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from stowplan.embedded.errors import bad_request, unprocessable

MAX_OPERATIONS = 10_000


def merge(document: Any, patch: Any) -> Any:
    """Apply a merge patch: objects are merged, null removes a field, any other value replaces it."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def json_patch(document: Any, operations: Any) -> Any:
    """Apply a JSON patch. Raises 422 for an operation that does not fit the document, 400 for an unknown one."""
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise bad_request("error decoding patch: json: cannot unmarshal into Go value of type []handlers.jsonPatchOp")
    if len(operations) > MAX_OPERATIONS:
        raise bad_request(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}")
    patched = copy.deepcopy(document)
    try:
        for operation in operations:
            patched = _OPERATIONS[operation["op"]](patched, operation)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        raise unprocessable() from None
    return patched


def _steps(pointer: Any) -> list[str]:
    if pointer == "":
        return []
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        raise ValueError(pointer)
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]


def _value(document: Any, steps: list[str]) -> Any:
    for step in steps:
        document = document[_index(document, step)] if isinstance(document, list) else document[step]
    return document


def _index(items: list[Any], step: str, *, end: bool = False) -> int:
    """The index of an item. The index after the last item is valid only for an addition."""
    if end and step == "-":
        return len(items)
    number = int(step)
    if not 0 <= number < len(items) + end:
        raise IndexError(step)
    return number


def _add(document: Any, operation: dict[str, Any]) -> Any:
    return _put(document, _steps(operation["path"]), operation["value"])


def _put(document: Any, steps: list[str], value: Any) -> Any:
    if not steps:
        return value
    parent = _value(document, steps[:-1])
    if isinstance(parent, list):
        parent.insert(_index(parent, steps[-1], end=True), value)
    elif isinstance(parent, dict):
        parent[steps[-1]] = value
    else:
        raise TypeError(steps)
    return document


def _remove(document: Any, operation: dict[str, Any]) -> Any:
    steps = _steps(operation["path"])
    parent = _value(document, steps[:-1])
    del parent[_index(parent, steps[-1]) if isinstance(parent, list) else steps[-1]]
    return document


def _replace(document: Any, operation: dict[str, Any]) -> Any:
    """Replace a field. As in Kubernetes, a field that is missing is added."""
    steps, value = _steps(operation["path"]), operation["value"]
    if not steps:
        return value
    parent = _value(document, steps[:-1])
    if isinstance(parent, list):
        parent[_index(parent, steps[-1])] = value
    else:
        parent[steps[-1]] = value
    return document


def _move(document: Any, operation: dict[str, Any]) -> Any:
    value = _value(document, _steps(operation["from"]))
    document = _remove(document, {"path": operation["from"]})
    return _put(document, _steps(operation["path"]), value)


def _copy(document: Any, operation: dict[str, Any]) -> Any:
    value = copy.deepcopy(_value(document, _steps(operation["from"])))
    return _put(document, _steps(operation["path"]), value)


def _test(document: Any, operation: dict[str, Any]) -> Any:
    try:
        found = _value(document, _steps(operation["path"]))
    except KeyError:
        found = None
    if found != operation.get("value"):
        raise ValueError("test failed")
    return document


_OPERATIONS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "add": _add, "remove": _remove, "replace": _replace, "move": _move, "copy": _copy, "test": _test,
}  # fmt: skip
