"""Nodes that could be added: the caller's templates, and nodes like existing ones. Each has a name of its own.

Nodes of a pool may differ in zone, size or taints: each sort is a template. What the caller gives keeps its name; a
pool or a node of the same name is told apart from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stowplan.diagnosis.patches import HOSTNAME
from stowplan.objects.nodes import Node

_OF_THE_NODE = "node.kubernetes.io/"  # taints that say how a node is just now


@dataclass(frozen=True)
class NodeTemplate:
    """A node that could be added.

    name       what the names of new nodes begin with
    document   of a new node, without a name
    told       what texts call it; empty: its name
    """

    name: str
    document: dict[str, Any]
    told: str = ""


def document_of(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(node, enc_hook=str))
    return found


def templates(
    given: Mapping[str, Node],
    existing: Sequence[Node],
    pool_label: str,
    document: Callable[[Node], Mapping[str, Any]] = document_of,
) -> list[NodeTemplate]:
    """Return the caller's templates, then those of existing nodes: one for each of these nodes.

    document   of an existing node, as it is without changes that are tried
    """
    pools = Counter(pool for node in existing if (pool := node.labels.get(pool_label)))
    names = {*pools, *(node.name for node in existing)}
    own = [
        NodeTemplate(name, new_node(document_of(node)), f"the template {name}" if name in names else "")
        for name, node in given.items()
    ]
    named = ((node, *_names(node, pools, given, pool_label)) for node in existing)
    return [*own, *(NodeTemplate(name, new_node(document(node)), told) for node, name, told in named)]


def _names(node: Node, pools: Mapping[str, int], given: Container[str], pool_label: str) -> tuple[str, str]:
    """Return the name of a template like an existing node, and what texts call it: its pool, if that says enough."""
    pool = node.labels.get(pool_label)
    if pool and pools[pool] == 1 and pool not in given:
        return pool, ""
    told = f"the node {node.name}" if node.name in given or node.name in pools else node.name
    told += f" of pool {pool}" if pool else ""
    return node.name, "" if told == node.name else told


def new_node(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a new node like this: without a name, uncordoned, without passing taints."""
    labels = dict((node.get("metadata") or {}).get("labels") or {})
    if HOSTNAME in labels:
        labels[HOSTNAME] = ""
    spec, status = node.get("spec") or {}, node.get("status") or {}
    taints = [taint for taint in spec.get("taints") or () if not str(taint.get("key", "")).startswith(_OF_THE_NODE)]
    kept = {name: status[name] for name in ("allocatable", "capacity", "declaredFeatures") if name in status}
    kept.setdefault("capacity", kept.get("allocatable", {}))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"labels": labels} if labels else {},
        "spec": {"taints": taints} if taints else {},
        "status": kept,
    }
