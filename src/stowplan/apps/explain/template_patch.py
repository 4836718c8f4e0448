"""A patch of a pod as a patch of what the pod is made of: its owner's template, or the document that is created anew.

Lists of a pod and of its template may differ: the API server and webhooks add tolerations, volumes, containers. So an
element is looked up by its name, or by its value, before its index is used. A part that is not there yet is added as a
whole: JSON patch adds nothing to a list that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stowplan.diagnosis.remedy import Operation

# Admission computes these from the class, and refuses a pod that says otherwise.
COMPUTED = ("/spec/priority", "/spec/preemptionPolicy")


def parts(path: str) -> list[str]:
    """Return the segments of a JSON pointer."""
    return [each.replace("~1", "/").replace("~0", "~") for each in path.split("/")[1:]]


def pointer(segments: Iterable[str]) -> str:
    return "".join(f"/{each.replace('~', '~0').replace('/', '~1')}" for each in segments)


def found_at(document: Any, segments: Iterable[str]) -> Any:
    """Return the value at a path; None if there is none."""
    for each in segments:
        if isinstance(document, Mapping):
            document = document.get(each)
        elif isinstance(document, list | tuple) and each.isdecimal() and int(each) < len(document):
            document = document[int(each)]
        else:
            return None
    return document


def without_computed(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """Leave out what admission computes."""
    return tuple(each for each in operations if each.path not in COMPUTED)


def completed(operations: Iterable[Operation], document: Mapping[str, Any] | None) -> tuple[Operation, ...]:
    """Return operations that can be applied to the document: they add the parts that are missing on the way.

    Several additions below one missing part become one. Without a document they stay as they are.
    """
    if document is None:
        return tuple(operations)
    found: list[Operation] = []
    grown: dict[str, int] = {}  # where an addition of a missing part is, by its path
    for each in operations:
        one = _with_parents(each, document)
        at = grown.get(one.path)
        if at is not None:
            found[at] = Operation("add", one.path, _merged(found[at].value, one.value))
            continue
        if one.path != each.path:
            grown[one.path] = len(found)
        found.append(one)
    return tuple(found)


def _merged(before: Any, value: Any) -> Any:
    if isinstance(before, dict) and isinstance(value, dict):
        return before | {key: _merged(before[key], each) if key in before else each for key, each in value.items()}
    return [*before, *value] if isinstance(before, list) and isinstance(value, list) else value


def _with_parents(operation: Operation, document: Mapping[str, Any]) -> Operation:
    segments = parts(operation.path)
    if operation.op == "remove":
        return operation
    for end in range(1, len(segments)):
        if found_at(document, segments[:end]) is None:
            value = operation.value
            for each in reversed(segments[end:]):
                value = [value] if each in ("-", "0") else {each: value}
            return Operation("add", pointer(segments[:end]), value)
    replaces = operation.op == "replace" and found_at(document, segments) is None
    return Operation("add", operation.path, operation.value) if replaces else operation


def for_template(
    operations: Iterable[Operation], pod: Mapping[str, Any], owner: Mapping[str, Any] | None
) -> tuple[Operation, ...] | None:
    """Return the operations on a pod as operations on the template of its owner; None if the template lacks the part.

    Without the owner's document the template is taken to be like the pod, without what the API server adds.
    """
    template = found_at(owner, ("spec", "template"))
    if template is None:
        template, owner = _as_template(pod), None
    found = []
    for each in without_computed(operations):
        path = _path_in(template, pod, parts(each.path))
        if path is None:
            return None
        found.append(Operation(each.op, pointer(("spec", "template", *path)), each.value))
    return completed(found, owner or {"spec": {"template": template}})


def _path_in(template: Any, pod: Any, segments: list[str]) -> list[str] | None:
    """Return the path in the template of what is at a path of the pod; None if it is not in the template."""
    path: list[str] = []
    for segment in segments:
        inner = found_at(pod, (segment,))
        if isinstance(template, list | tuple) and segment != "-":
            at = _position(template, inner, int(segment) if segment.isdecimal() else -1)
            if at is None:
                return None
            segment = str(at)
        path.append(segment)
        template, pod = found_at(template, (segment,)), inner
    return path


def _position(elements: list[Any] | tuple[Any, ...], wanted: Any, index: int) -> int | None:
    name = wanted.get("name") if isinstance(wanted, Mapping) else None
    if name:
        return next((at for at, each in enumerate(elements) if found_at(each, ("name",)) == name), None)
    if wanted in elements:
        return index if 0 <= index < len(elements) and elements[index] == wanted else elements.index(wanted)
    return index if 0 <= index < len(elements) else None


_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def _as_template(pod: Mapping[str, Any]) -> dict[str, Any]:
    spec = dict(pod.get("spec") or {})
    kept = [each for each in spec.get("tolerations") or () if each.get("key") not in _TOLERATED]
    spec["tolerations"] = kept or None
    return {"metadata": {"labels": found_at(pod, ("metadata", "labels"))}, "spec": spec}
