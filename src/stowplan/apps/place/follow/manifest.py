"""The workload: the objects of a manifest, with the marks of the follower that made them, and how to bring one back.

An object that the follower creates carries two labels and an annotation:

    app.kubernetes.io/managed-by: stowplan-follow
    stowplan.io/follower: NAMESPACE.PLACEMENT (or --name)   only objects with this label are changed or deleted
    stowplan.io/applied-fields: {"spec": {"replicas": 0}}   the fields of the manifest, to remove those it loses later

It is brought back by a merge patch with the fields of the manifest. Fields that the manifest leaves out and others
set (the number of replicas, by an autoscaler) stay as they are. Lists are taken as a whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded import manifests
from stowplan.objects import quantity
from stowplan.objects.errors import ConfigError

Document: TypeAlias = dict[str, Any]

MANAGED_BY, FOLLOWER, FIELDS = "app.kubernetes.io/managed-by", "stowplan.io/follower", "stowplan.io/applied-fields"
PROGRAM = "stowplan-follow"
FIRST = ("CustomResourceDefinition", "Namespace")  # created first, and deleted last
_OF_THE_SERVER = (
    "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "ownerReferences",
)  # fmt: skip
LONGEST_LABEL = 63
QUANTITIES = ("requests", "limits", "hard")  # fields with amounts of resources


class WorkloadManifest(msgspec.Struct, frozen=True):
    """The objects, in the order in which they are created, and a digest of them."""

    objects: tuple[Document, ...]
    digest: str


def read(files: Sequence[Path]) -> WorkloadManifest:
    """Read manifests from files or folders. Raises ConfigError if they cannot be used."""
    found: dict[tuple[str, ...], Document] = {}
    for file in files:
        if not file.exists():
            raise ConfigError("no such file", file=str(file))
        for where, document in manifests.documents([file]):
            key = _identity(document, where)
            if key in found:
                raise ConfigError(f"{key[1]} {key[-1]} is there twice", file=where)
            found[key] = _cleaned(document)
    if not found:
        raise ConfigError(
            "found no objects", file=", ".join(map(str, files)), remedy="expected the workload's manifests"
        )
    objects = tuple(sorted(found.values(), key=_rank))
    return WorkloadManifest(objects, hashlib.sha256(msgspec.json.encode(objects, order="sorted")).hexdigest())


def fingerprint(files: Sequence[Path]) -> str:
    """Return a digest of the files as they are now, to see whether they must be read again."""
    digest = hashlib.sha256()
    for file in files:
        for each in sorted(file.iterdir()) if file.is_dir() else (file,):
            with suppress(OSError):
                digest.update(str(each).encode() + b"\0" + each.read_bytes())
    return digest.hexdigest()


def _identity(document: Document, file: str) -> tuple[str, ...]:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not document.get("apiVersion") or not isinstance(name, str) or not name:
        missing = "metadata.name" if document.get("apiVersion") else "apiVersion"
        raise ConfigError("found nothing", path=f"{document['kind']}: {missing}", file=file)
    return str(document["apiVersion"]), document["kind"], str((metadata or {}).get("namespace", "")), name


def _cleaned(document: Document) -> Document:
    """The document without what a server or a controller sets, and without nulls."""
    metadata = {key: value for key, value in document["metadata"].items() if key not in _OF_THE_SERVER}
    kept = {key: value for key, value in document.items() if key != "status"}
    cleaned: Document = _without_nulls({**kept, "metadata": metadata})
    return cleaned


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _rank(document: Document) -> int:
    return FIRST.index(document["kind"]) if document["kind"] in FIRST else len(FIRST)


# -- marks


def label_value(name: str) -> str:
    """Return a name as the value of a label: one that is too long is cut, and ends with a digest."""
    if len(name) <= LONGEST_LABEL:
        return name
    return f"{name[: LONGEST_LABEL - 13]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def selector(follower: str) -> str:
    """Return the label selector for the objects that a follower has made."""
    return f"{MANAGED_BY}={PROGRAM},{FOLLOWER}={follower}"


def is_ours(live: Document, follower: str) -> bool:
    labels = live["metadata"].get("labels") or {}
    return labels.get(MANAGED_BY) == PROGRAM and labels.get(FOLLOWER) == follower


def marked(document: Document, follower: str, namespace: str) -> Document:
    """Return the document as it is created: with our marks, and (unless "") with its namespace."""
    metadata = document["metadata"]
    labels = {**metadata.get("labels", {}), MANAGED_BY: PROGRAM, FOLLOWER: follower}
    fields = msgspec.json.encode(_fields({**document, "metadata": {**metadata, "labels": labels}}), order="sorted")
    annotations = {**metadata.get("annotations", {}), FIELDS: fields.decode()}
    within = {"namespace": namespace} if namespace else {}
    return {**document, "metadata": {**metadata, **within, "labels": labels, "annotations": annotations}}


def _fields(value: Any) -> Any:
    """Return the names of all fields, without their values."""
    return {key: _fields(each) for key, each in value.items()} if isinstance(value, dict) else 0


# -- bringing back


def patch_for(live: Document, wanted: Document) -> Document | None:
    """Return the merge patch that makes the live object as it is wanted (`marked`); None if it is so already."""
    removed = _removed(_applied_fields(live), wanted, live)
    if not removed and _covers(live, wanted):
        return None
    patch: Document = _merged(wanted, removed)
    return patch


def _applied_fields(live: Document) -> Any:
    text = (live["metadata"].get("annotations") or {}).get(FIELDS, "{}")
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}


def _removed(applied: Any, wanted: Any, live: Any) -> Document:
    """Return nulls for the fields that an earlier manifest had, this one does not have, and the object still has."""
    if not (isinstance(applied, dict) and isinstance(wanted, dict) and isinstance(live, dict)):
        return {}
    found: Document = {}
    for key, below in applied.items():
        if key not in wanted:
            if key in live:
                found[key] = None
        elif nested := _removed(below, wanted[key], live.get(key)):
            found[key] = nested
    return found


def _covers(live: Any, wanted: Any) -> bool:
    """True if the object has all wanted fields, with their values; it may have more."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(
            key in live and (_covers(live[key], value) or (key in QUANTITIES and _same_amounts(live[key], value)))
            for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(live, list)
            and len(live) == len(wanted)
            and all(_covers(one, another) for one, another in zip(live, wanted, strict=True))
        )
    return bool(live == wanted)


def _same_amounts(live: Any, wanted: Any) -> bool:
    """True if the amounts are the same in other words: servers write 1 for 1000m."""
    try:
        return all(quantity.nanos(str(live[name])) == quantity.nanos(str(wanted[name])) for name in wanted)
    except (ValueError, TypeError, KeyError):
        return False


def _merged(wanted: Any, removed: Any) -> Any:
    if not (isinstance(wanted, dict) and isinstance(removed, dict)):
        return removed
    return {**wanted, **{key: _merged(wanted.get(key), value) for key, value in removed.items()}}


def kinds_of(objects: Iterable[Document]) -> list[tuple[str, str, str]]:
    """Return the apiVersion, kind and namespace ("" if the manifest has none) of objects, each once."""
    return list(dict.fromkeys((each["apiVersion"], each["kind"], _namespace(each)) for each in objects))


def _namespace(document: Document) -> str:
    return str(document["metadata"].get("namespace", ""))
