"""What is checked before pods are explained: a dump without a cluster, a namespace or a manifest that is misspelt.

An answer such as "no pod is pending" would be true of each of these, and wrong for who asked.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from stowplan.apps import cluster_objects
from stowplan.apps.explain import what_if
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import Namespace

CUTOFF = 0.6  # how alike a misspelt name must be


def has_cluster(objects: Iterable[Object], files: Sequence[Path]) -> None:
    """Refuse files that have neither nodes nor pods."""
    if not any(isinstance(each, Node | Pod) for each in objects):
        remedy = "write a dump with kubectl get -A -o yaml nodes,pods,namespaces,…; docs/explain.md has the whole line"
        raise ConfigError("found no nodes and no pods", file=", ".join(map(str, files)), remedy=remedy)


def namespace_exists(namespace: str, objects: Iterable[Object]) -> None:
    """Refuse a namespace that is not there. Without the right to see namespaces, or in a dump of none, all may be."""
    listed: set[str] = set()
    used: set[str] = set()
    for each in objects:
        (listed if isinstance(each, Namespace) else used).add(
            each.name if isinstance(each, Namespace) else each.namespace
        )
    if not listed or namespace in listed | used:
        return
    near = difflib.get_close_matches(namespace, sorted(listed), 1, CUTOFF)
    remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(listed)[:5])}"
    raise ConfigError(f"there is no namespace {namespace}", path="-n", remedy=remedy)


def manifests(
    names: Sequence[str], asked: Sequence[str] = what_if.ASKED, remedy: str = what_if.EXPLAINED
) -> list[tuple[str, dict[str, Any]]]:
    """Return the documents of manifests. A misspelt kind is answered with the nearest one.

    asked, remedy   the kinds of which one must be there, and what is said if there is none
    """
    if not all(name.strip() for name in names):
        raise ConfigError("found an empty name", path="-f", remedy="name a file, a folder, or - for standard input")
    try:
        return what_if.read(names, asked, remedy)
    except ConfigError as error:
        found = error.problem.removeprefix("found ")
        near = difflib.get_close_matches(found, asked, 1, CUTOFF)
        if found == error.problem or not near:
            raise
        remedy = f"did you mean {near[0]}? {error.remedy}"
        raise ConfigError(error.problem, path=error.path, file=error.file, remedy=remedy) from None


def templates(files: Sequence[Path], flag: str = "--node-templates") -> dict[str, Node]:
    """Return the nodes that could be added. Each file must have one. `flag`: the one that names the files."""
    found: dict[str, Node] = {}
    for file in files:
        nodes = {each.name: each for each in cluster_objects.from_files([file])[0] if isinstance(each, Node)}
        if not nodes:
            raise ConfigError("found no Node", file=str(file), remedy=f"{flag} needs nodes that could be added")
        found |= nodes
    return found
