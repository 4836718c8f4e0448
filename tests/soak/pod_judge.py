"""Judges pods as the API server shows them: each is bound once, no node has too much, no group stays in part.

Changes of one resource come in the order in which they were made, so the sums per node are right at each moment, not
only at the end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec

from stowplan.objects import quantity
from tests.soak.workload import GROUP_LABEL

POISON = "poison"  # how the names of pods begin that need not fit


class Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    containers: list[dict[str, Any]] = []


class SeenPod(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: Spec = msgspec.field(default_factory=Spec)


@dataclass
class PodState:
    name: str
    created: float
    cpu: int
    group: str
    node: str = ""
    bound_at: float = 0.0


class PodJudge:
    """`offered`: milli-cpus and pods of each node. Times are those of the caller."""

    def __init__(self, offered: dict[str, tuple[int, int]]) -> None:
        self._offered = offered
        self._pods: dict[str, PodState] = {}  # by uid
        self._uids: dict[str, str] = {}  # by name
        self._cpu: Counter[str] = Counter()
        self._count: Counter[str] = Counter()
        self.bound = 0
        self.problems: list[str] = []
        self.waits: list[float] = []  # seconds from creation to binding

    # -- what is seen

    def listed(self, pods: list[SeenPod], now: float) -> None:
        """These pods are there, and no others."""
        there = {each.metadata.uid for each in pods}
        for uid in [uid for uid in self._pods if uid not in there]:
            self.gone(uid)
        for each in pods:
            self.seen(each, now)

    def seen(self, pod: SeenPod, now: float) -> None:
        """A pod was created, or changed."""
        uid, name = pod.metadata.uid, pod.metadata.name
        found = self._pods.get(uid)
        if found is None:
            cpu = sum(_cpu(each) for each in pod.spec.containers)
            found = self._pods[uid] = PodState(name, now, cpu, pod.metadata.labels.get(GROUP_LABEL, ""))
            self._uids[name] = uid
        if pod.spec.node_name == found.node:
            return
        if found.node:
            self.problems.append(f"pod {name} went from {found.node} to {pod.spec.node_name or 'none'}")
            return
        found.node, found.bound_at = pod.spec.node_name, now
        self.bound += 1
        self.waits.append(now - found.created)
        self._cpu[found.node] += found.cpu
        self._count[found.node] += 1
        self._check(found.node)

    def _check(self, node: str) -> None:
        cpu, pods = self._offered.get(node, (0, 0))
        if self._cpu[node] > cpu or self._count[node] > pods:
            self.problems.append(f"node {node} has {self._count[node]} pods with {self._cpu[node]}m cpu")

    def gone(self, uid: str) -> None:
        """A pod was deleted."""
        found = self._pods.pop(uid, None)
        if found is None:
            return
        if self._uids.get(found.name) == uid:
            del self._uids[found.name]
        if found.node:
            self._cpu[found.node] -= found.cpu
            self._count[found.node] -= 1

    # -- questions

    def is_bound(self, name: str) -> bool:
        found = self._pods.get(self._uids.get(name, ""))
        return found is not None and found.node != ""

    def unbound(self) -> list[str]:
        """Names of the pods that wait. Poison may wait for ever."""
        return [each.name for each in self._pods.values() if not each.node and not each.name.startswith(POISON)]

    def partial_groups(self) -> list[str]:
        """Groups of which a member is bound and another is not."""
        begun = {each.group for each in self._pods.values() if each.group and each.node}
        return sorted({each.group for each in self._pods.values() if each.group in begun and not each.node})

    def counts(self) -> tuple[int, int]:
        """How many pods there are, and how many of them are bound."""
        return len(self._pods), sum(self._count.values())


def _cpu(container: dict[str, Any]) -> int:
    return quantity.milli(container.get("resources", {}).get("requests", {}).get("cpu", "0"))
