"""Nodes: allocatable resources, labels, taints, images."""

from __future__ import annotations

from stowplan.objects.meta import ApiValue, Object
from stowplan.objects.quantity import Quantity
from stowplan.objects.taints import Taint


class NodeSpec(ApiValue, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(ApiValue, frozen=True):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeCondition(ApiValue, frozen=True):
    type: str = ""
    status: str = ""


class NodeStatus(ApiValue, frozen=True):
    allocatable: dict[str, Quantity] = {}
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()


class Node(Object, frozen=True):
    """A node. Fields have the names of the API, in snake case.

    node.labels.get("zone"), node.spec.unschedulable, node.status.allocatable["cpu"]
    """

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.spec.taints
