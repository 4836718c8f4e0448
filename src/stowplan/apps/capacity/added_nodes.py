"""Nodes that would be added, and what takes room on each of them before any other pod: the pods of DaemonSets.

The controller of DaemonSets makes them, for one node of the template. Whether they fit there is asked elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from stowplan.apps.explain.admission import Admission
from stowplan.apps.explain.snapshot import Snapshot
from stowplan.apps.explain.sources import ObjectSource
from stowplan.diagnosis import patches
from stowplan.diagnosis.node_templates import document_of, new_node
from stowplan.diagnosis.remedy import AddNodes
from stowplan.objects import kinds
from stowplan.objects.errors import ConfigError
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

DAEMON_SET = "DaemonSet"


class AddedNodes:
    """Nodes like a template, as many as are asked for. `taken`: names of nodes that exist."""

    def __init__(self, name: str, template: Node, taken: Collection[str]) -> None:
        self.name, self._taken = name, taken
        self._document = new_node(document_of(template))

    @property
    def first(self) -> Node:
        return self.made(1)[0]

    def made(self, number: int) -> list[Node]:
        found = patches.added_nodes(AddNodes(number, self.name, self._document), self._taken)
        return [kinds.convert(Node, each) for each in found]


class DaemonSets:
    """The DaemonSets of a cluster. `warn` is told of those that an API server would refuse."""

    def __init__(self, snapshot: Snapshot, source: ObjectSource, warn: Callable[[str], None]) -> None:
        self._others = [each for each in snapshot.objects.values() if not isinstance(each, Node | Pod)]
        self._source, self._warn = source, warn
        self._sets = [each for kind, each in source.workloads("") if kind == DAEMON_SET]

    def pods_on(self, node: Node) -> list[Pod]:
        """Return the pods that their controller makes for this node."""
        ranges = [item for each in sorted({_namespace(each) for each in self._sets})
                  for item in self._source.limit_ranges(each)]  # fmt: skip
        admission = Admission([*self._others, node], ranges, time.time())
        return [pod for each in self._sets for pod in self._pods(each, admission)]

    def _pods(self, document: Mapping[str, Any], admission: Admission) -> Iterator[Pod]:
        try:
            found = admission.submit(dict(document), "", _namespace(document))
        except ConfigError as error:
            self._warn(f"left out: {error}")
            return
        yield from () if found is None else found.pods


def _namespace(document: Mapping[str, Any]) -> str:
    return str((document.get("metadata") or {}).get("namespace") or "default")


def owner_key(pod: Pod) -> str:
    """The DaemonSet of a pod."""
    owner = pod.controller()
    return pod.key if owner is None else f"{pod.namespace}/{owner.name}"
