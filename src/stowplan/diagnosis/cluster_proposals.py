"""Changes of the cluster that may help pods that wait: more nodes, uncordoned nodes, taints off, freed room."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from stowplan.diagnosis import node_templates
from stowplan.diagnosis.edits import Edit
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.proposals import Proposal, proposal
from stowplan.diagnosis.rehearsing import Rehearsing
from stowplan.diagnosis.rejections import rejections
from stowplan.diagnosis.remedies import budgets, more_nodes
from stowplan.diagnosis.remedies.free_room import may_go
from stowplan.diagnosis.remedy import DeleteObject, Operation, PatchObject
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.taints import HARD_EFFECTS, tolerated
from stowplan.plugins.nodes.default.node_unschedulable import CORDONED

FREE_ROOM = "free-room"
MOST_TEMPLATES = 6
MOST_NODES = 500  # that are added
MOST_DELETED = 200  # pods among which the fewest are searched
_OF_THE_NODE = "node.kubernetes.io/"  # taints that say how a node is just now
_ZONE = "topology.kubernetes.io/zone"


class ClusterProposals:
    """`needed`: how many pods must get a node. `templates`: nodes that could be added, by name."""

    def __init__(self, trying: Rehearsing, needed: int, templates: Mapping[str, Node], pool_label: str) -> None:
        self._trying, self._needed, self._templates, self._pool_label = trying, needed, templates, pool_label
        self._nodes = [node for node in trying.state.table.nodes if node is not None]

    def all(self) -> Iterator[Proposal]:
        yield from self._cordoned()
        yield from self._tainted()
        yield from self._more_nodes()
        yield from self._freed()

    def _for_each(self, code: str, text: str, operations: Mapping[str, tuple[Operation, ...]]) -> Iterator[Proposal]:
        def make(names: tuple[Any, ...]) -> Edit:
            changes = tuple(PatchObject("Node", name, operations[name]) for name in names)
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            return Edit(code, text.format(f"node{'s' if len(names) > 1 else ''} {shown}"), changes, len(names))

        if operations:
            yield Proposal(make, tuple(operations))

    def _cordoned(self) -> Iterator[Proposal]:
        operations = {}
        for node in self._nodes:
            if node.spec.unschedulable:
                places = [at for at, taint in enumerate(node.spec.taints) if taint.key == CORDONED.key]
                removed = (Operation("remove", pointer("spec", "taints", at)) for at in reversed(places))
                operations[node.name] = (Operation("remove", "/spec/unschedulable"), *removed)
        yield from self._for_each("uncordon", "uncordon {}", operations)

    def _tainted(self) -> Iterator[Proposal]:
        operations = {}
        for node in self._nodes:
            places = [
                at
                for at, taint in enumerate(node.spec.taints)
                if taint.effect in HARD_EFFECTS
                and not taint.key.startswith(_OF_THE_NODE)
                and any(not tolerated(taint, pod.tolerations) for pod in self._trying.waiting)
            ]
            if places:
                removed = (Operation("remove", pointer("spec", "taints", at)) for at in reversed(places))
                operations[node.name] = tuple(removed)
        yield from self._for_each("remove-taint", "remove the taints that members do not tolerate from {}", operations)

    # -- more nodes

    def _more_nodes(self) -> Iterator[Proposal]:
        most = min(2 * self._needed + 2, MOST_NODES)
        for each in node_templates.templates(self._templates, self._kinds()[:MOST_TEMPLATES], self._pool_label):
            yield proposal(more_nodes.adding(most, each))

    def _kinds(self) -> list[Node]:
        """One node of each pool, zone and size, those of which there are most first."""
        found: dict[tuple[object, ...], list[Node]] = {}
        for node in self._nodes:
            taints = tuple((each.key, each.value, each.effect) for each in node.spec.taints)
            size = tuple(sorted(node.status.allocatable.items()))
            kind = (node.labels.get(self._pool_label), node.labels.get(_ZONE), size, taints)
            found.setdefault(kind, []).append(node)
        return [first for first, *_ in sorted(found.values(), key=len, reverse=True)]

    # -- room that is freed

    def _freed(self) -> Iterator[Proposal]:
        placed = [each.pod for each in self._trying.state.pods.values() if each.pod.key not in self._trying.members]
        pods = [pod for pod in placed if may_go(pod)]
        self._trying.uids |= {pod.key: pod.uid for pod in pods}
        protected = {pod.uid for pod in budgets.violated(pods, self._trying.state)}
        yield from self._deletions([pod for pod in pods if pod.uid not in protected])
        if protected:
            yield from self._deletions(pods)

    def _deletions(self, pods: list[Pod]) -> Iterator[Proposal]:
        cheapest = tuple(self._cheapest({pod.uid for pod in pods}))[:MOST_DELETED]
        if cheapest:
            yield Proposal(_deleting, cheapest)
        if len(pods) > MOST_DELETED:
            pods = self._in_the_way(pods)
        pods = sorted(pods, key=lambda pod: (pod.priority, -sum(pod.request.values()), pod.key))
        if pods:
            yield Proposal(_deleting, tuple(pod.key for pod in pods[:MOST_DELETED]))

    def _cheapest(self, allowed: Container[str]) -> Iterator[str]:
        """Pods that make room for one pod each, on the nodes where the fewest have to go."""
        pod = max(self._trying.waiting, key=lambda each: sum(each.request.values()))
        state, profile = self._trying.state, self._trying.profiles.get(pod.scheduler_name)
        if profile is None:
            return
        found = rejections(pod, state, profile)
        resources = {enabled.name for enabled in profile.needs_free_filters}
        closed = found.outside()
        for name, each in found.filters.items():
            if name not in resources:
                closed |= each.rows
        choices = []
        for name in found.nodes.where(~closed).names:
            gone = self._freeing(pod, state.table.row_of[name], allowed)
            if gone:
                choices.append(gone)
        for gone in sorted(choices, key=len)[: self._needed]:
            yield from gone

    def _freeing(self, pod: Pod, row: int, allowed: Container[str]) -> list[str]:
        """The pods of a node without which there is room for this pod, the most helpful first; none if that fails."""
        state = self._trying.state
        table, there = state.table, [each.pod for uid, each in state.pods_on[row].items() if uid in allowed]
        short = {
            name: amount - int(table.allocatable[name][row] - table.requested[name][row])
            for name, amount in pod.request.items()
            if name in table.allocatable
        }
        short = {name: amount for name, amount in short.items() if amount > 0}

        def helps(other: Pod) -> float:
            return sum(min(other.request.get(name, 0) / amount, 1.0) for name, amount in short.items())

        gone: list[str] = []
        for other in sorted(there, key=lambda each: (-helps(each), each.priority, each.key)):
            if not short:
                break
            gone.append(other.key)
            left = {name: amount - other.request.get(name, 0) for name, amount in short.items()}
            short = {name: amount for name, amount in left.items() if amount > 0}
        return [] if short else gone

    def _in_the_way(self, pods: list[Pod]) -> list[Pod]:
        """Those on nodes where members would be, if none of the pods were there."""
        used = set((self._trying.where([_deleting(tuple(pod.key for pod in pods))]) or {}).values())
        return [pod for pod in pods if pod.node_name in used]


def _deleting(keys: tuple[Any, ...]) -> Edit:
    shown = ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
    return Edit(FREE_ROOM, f"delete {shown}", tuple(DeleteObject("Pod", key) for key in keys), len(keys))
