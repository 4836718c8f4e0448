"""A patch of a pod as a patch of what the pod is made of: its owner's template, or the document that is created anew.

Lists of a pod and of its template may differ: the API server and webhooks add tolerations, volumes, containers. So an
element is looked up by its name, or by its value, before its index is used. A part that is not there yet is added as a
whole: JSON patch adds nothing to a list that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stowplan.diagnosis.patches import found_at, pointer, with_parents
from stowplan.diagnosis.patches import segments as segments_of
from stowplan.diagnosis.remedy import Operation

# Admission computes these from the class, and refuses a pod that says otherwise.
COMPUTED = ("/spec/priority", "/spec/preemptionPolicy")


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
        one = _applicable(each, document)
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


def _applicable(operation: Operation, document: Mapping[str, Any]) -> Operation:
    """Return the operation as it applies to a document that may lack what it is about."""
    if operation.op == "remove":
        return operation
    whole = with_parents(operation, document)
    is_new = whole.op == "replace" and found_at(document, segments_of(whole.path)) is None
    return Operation("add", whole.path, whole.value) if is_new else whole


def for_template(
    operations: Iterable[Operation], pod: Mapping[str, Any], owner: Mapping[str, Any] | None
) -> tuple[Operation, ...] | None:
    """Return the operations on a pod as operations on the template of its owner; None if the template lacks the part.

    Without the owner's document the template is taken to be like the pod, without what is added to pods. Tests in the
    patch make sure of it: the API server refuses the patch if the template is different, and nothing is lost.
    """
    template, known = found_at(owner, ("spec", "template")), True
    if template is None:
        template, known = _as_template(pod), False
    found = []
    for each in without_computed(operations):
        path = _path_in(template, pod, segments_of(each.path))
        if path is None:
            return None
        found.append(Operation(each.op, pointer("spec", "template", *path), each.value))
    document = {"spec": {"template": template}}
    if owner is not None and known:
        return completed(found, owner)
    whole = completed(found, document)
    return (*dict.fromkeys(_tests(whole, document)), *whole)


def _tests(operations: Iterable[Operation], document: Mapping[str, Any]) -> Iterator[Operation]:
    """Yield what must hold for a document that is only presumed: parts are missing, elements of lists have a name."""
    for each in operations:
        segments = segments_of(each.path)
        whole = isinstance(each.value, Mapping | list) and segments[-1] != "-"
        if each.op == "add" and whole and found_at(document, segments) is None:
            yield Operation("test", each.path)  # for null: there is nothing
        for end in range(1, len(segments) + 1):
            inside = isinstance(found_at(document, segments[: end - 1]), list | tuple)
            element = found_at(document, segments[:end]) if inside else None
            if isinstance(element, Mapping) and "name" in element:
                yield Operation("test", pointer(*segments[:end], "name"), str(element["name"]))


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
_SECONDS = 300  # that admission gives these by default
_FOR_DAEMONS = tuple(
    f"node.kubernetes.io/{each}"
    for each in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable", "network-unavailable")
)


def _as_template(pod: Mapping[str, Any]) -> dict[str, Any]:
    spec = dict(pod.get("spec") or {})
    owners = found_at(pod, ("metadata", "ownerReferences")) or ()
    of_daemon_set = any(found_at(each, ("kind",)) == "DaemonSet" for each in owners)
    kept = [each for each in spec.get("tolerations") or () if not _is_added(each, of_daemon_set)]
    spec["tolerations"] = kept or None
    return {"metadata": {"labels": found_at(pod, ("metadata", "labels"))}, "spec": spec}


def _is_added(toleration: Mapping[str, Any], of_daemon_set: bool) -> bool:
    """True for a toleration that admission, or the controller of DaemonSets, adds to pods."""
    key, effect = toleration.get("key"), toleration.get("effect")
    if toleration.get("operator") != "Exists":
        return False
    if key in _TOLERATED and effect == "NoExecute":
        return toleration.get("tolerationSeconds") in (None, _SECONDS)
    return of_daemon_set and key in _FOR_DAEMONS and effect == "NoSchedule"
