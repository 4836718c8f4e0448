"""The nodes that an embedded cluster begins with: a number of them, manifests, or copies of manifests."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from stowplan.apps.explain.answers import document_of
from stowplan.apps.up import command as up
from stowplan.objects.errors import ConfigError
from stowplan.objects.nodes import Node
from stowplan.testing import cluster_picture

Manifest: TypeAlias = str | Path | Mapping[str, Any]
Nodes: TypeAlias = int | str | Path | Iterable[Manifest | Node] | Mapping[str, int] | Mapping[Path, int]

HOSTNAME = "kubernetes.io/hostname"
REMEDY = "give a number, a list of manifests, or {manifest: number of copies}"


def documents(given: Nodes, beside: Path) -> Iterator[dict[str, Any]]:
    """Yield the documents of the nodes; relative paths start at `beside`."""
    if isinstance(given, int):
        for number in range(given):
            yield _complete(up.node(f"node-{number}", f"zone-{'abc'[number % 3]}", cpu="4", memory="16Gi"))
    elif isinstance(given, str | Path):
        yield from cluster_picture.documents(given, beside)
    elif isinstance(given, Mapping):
        for manifest, count in given.items():
            yield from _copies(manifest, count, beside)
    else:
        for each in given:
            yield from [_of_value(each)] if isinstance(each, Node) else cluster_picture.documents(each, beside)


def _complete(document: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", **document}


def _of_value(node: Node) -> dict[str, Any]:
    """Return the document of an `a_node(…)`."""
    document = _complete(document_of(node))
    del document["metadata"]["uid"]  # the server gives it one
    document["status"].setdefault("capacity", document["status"]["allocatable"])
    return document


def _copies(manifest: str | Path, count: int, beside: Path) -> Iterator[dict[str, Any]]:
    """Yield copies of a node, named after it: large-0, large-1, …"""
    if not isinstance(manifest, str | Path) or not isinstance(count, int):
        raise ConfigError(f"found nodes={{{manifest!r}: {count!r}}}", remedy=REMEDY)
    for template in cluster_picture.documents(manifest, beside):
        for number in range(count):
            document = copy.deepcopy(template)
            metadata = document.setdefault("metadata", {})
            metadata["name"] = f"{metadata.get('name', 'node')}-{number}"
            metadata.setdefault("labels", {})[HOSTNAME] = metadata["name"]
            yield document
