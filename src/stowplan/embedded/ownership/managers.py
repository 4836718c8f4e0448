"""`metadata.managedFields`: who owns which fields, before and after a write.

A write makes its manager the owner of what it changed, and nobody the owner of what it removed. An apply makes its
manager the owner of what it applies; it conflicts with the others that own what it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from stowplan.embedded.documents import Document
from stowplan.embedded.ownership.comparison import Comparison
from stowplan.embedded.ownership.field_paths import Path, Paths, as_tree, from_tree, shown

APPLY, UPDATE = "Apply", "Update"
_METADATA = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
    "resourceVersion",
)  # fmt: skip
_NOBODYS: frozenset[Path] = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in _METADATA)}
)


class Manager(msgspec.Struct, frozen=True, order=True):
    name: str
    operation: str
    api_version: str
    subresource: str = ""

    def shown(self) -> str:
        """As in the messages of the API server."""
        text = msgspec.json.encode(self.name).decode()
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


Owners: TypeAlias = Mapping[Manager, Paths]


class Conflict(msgspec.Struct, frozen=True):
    manager: Manager
    path: Path


def owned(paths: Paths, *, subresource: str = "", has_status: bool = False) -> Paths:
    """The paths that can have an owner: not what the server sets, and the status only through its subresource."""
    kept = paths - _NOBODYS
    if subresource == "status":
        return frozenset(path for path in kept if path[0] == "f:status")
    return frozenset(path for path in kept if path[0] != "f:status") if has_status else kept


def read(entries: Any) -> dict[Manager, Paths]:
    """The owners that `managedFields` names. Raises ValueError for entries that are none."""
    found: dict[Manager, Paths] = {}
    for entry in entries:
        try:
            texts = [entry.get(key, "") for key in ("manager", "operation", "apiVersion", "subresource")]
            tree = entry.get("fieldsV1", {})
        except AttributeError:
            raise ValueError("an entry is no object") from None
        if not all(isinstance(text, str) for text in texts) or texts[1] not in (APPLY, UPDATE):
            raise ValueError("an entry has no manager or operation")
        found[Manager(*texts)] = from_tree(tree)
    return found


def written(owners: Owners, before: Iterable[Document], now: str) -> list[Document]:
    """`managedFields` of these owners. Who owns what he owned before keeps his time."""
    known = {}
    for each in before:
        manager = Manager(*(each.get(key, "") for key in ("manager", "operation", "apiVersion", "subresource")))
        known[manager] = each
    entries = []
    for manager, paths in owners.items():
        if not paths:
            continue
        tree, old = as_tree(paths), known.get(manager)
        same = old is not None and old.get("fieldsV1") == tree
        entry: Document = {
            "manager": manager.name, "operation": manager.operation, "apiVersion": manager.api_version,
            "fieldsType": "FieldsV1", "fieldsV1": tree,
        }  # fmt: skip
        entry |= {"subresource": manager.subresource} if manager.subresource else {}
        time = old.get("time") if same and old is not None else now
        entries.append(entry | ({"time": time} if time else {}))
    return sorted(entries, key=_order)


def _order(entry: Document) -> tuple[str, ...]:
    return tuple(str(entry.get(key, "")) for key in ("operation", "time", "manager", "apiVersion", "subresource"))


def after_update(owners: Owners, manager: Manager, found: Comparison) -> dict[Manager, Paths]:
    """The owners after a manager changed fields: it owns them, and those who did no longer do."""
    lost = found.changed | found.removed
    after = {each: paths - lost for each, paths in owners.items() if each != manager}
    after[manager] = (owners.get(manager, frozenset()) | found.changed) - found.removed
    return {each: paths for each, paths in after.items() if paths}


def after_apply(owners: Owners, manager: Manager, applied: Paths, found: Comparison) -> dict[Manager, Paths]:
    """The owners after a manager applied fields; what it changed belongs to nobody else."""
    lost = found.changed | found.removed
    after = {each: paths - lost for each, paths in owners.items() if each != manager}
    return {each: paths for each, paths in {**after, manager: applied}.items() if paths}


def conflicts(owners: Owners, manager: Manager, found: Comparison) -> list[Conflict]:
    """What other managers own of what a manager wants to change, in the order of messages."""
    others = sorted(each for each in owners if each != manager)
    return [Conflict(each, path) for each in others for path in sorted(owners[each] & found.changed)]


def message(found: list[Conflict]) -> str:
    """What the API server says of conflicts."""
    if len(found) == 1:
        (only,) = found
        return f"Apply failed with 1 conflict: conflict with {only.manager.shown()}: {shown(only.path)}"
    lines = []
    for manager in sorted({each.manager for each in found}):
        lines.append(f"conflicts with {manager.shown()}:")
        lines += [f"- {shown(each.path)}" for each in found if each.manager == manager]
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
