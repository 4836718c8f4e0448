"""Nodes: what they offer, how they are labelled and tainted, which images they hold."""

from __future__ import annotations

import msgspec

from stowplan.objects.meta import Object
from stowplan.objects.quantity import Quantity
from stowplan.objects.taints import Taint


class _NodePart(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A piece of a node."""


class NodeSpec(_NodePart, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(_NodePart, frozen=True):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeCondition(_NodePart, frozen=True):
    type: str = ""
    status: str = ""


class NodeStatus(_NodePart, frozen=True):
    allocatable: dict[str, Quantity] = {}
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()


class Node(Object, frozen=True, rename="camel", omit_defaults=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.spec.taints
