"""How many devices of a class each node has, and how many of them are in use: for scores of extended resources."""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Ints
from stowplan.columns.devices.devices import Devices
from stowplan.columns.devices.pools import PooledDevice
from stowplan.columns.devices.slices import sees
from stowplan.columns.nodes.views import Nodes
from stowplan.objects.devices import DeviceClass
from stowplan.objects.nodes import Node
from stowplan.plugins.nodes.default.device_claims.device_expressions import DeviceExpressions

_expressions = DeviceExpressions()


def counted(nodes: Nodes, resource: str) -> tuple[Ints, Ints] | None:
    """Return the numbers of devices that stand for a resource on nodes that have none of it in their status, and how
    many of these are in use; None if no class stands for it.
    """
    devices = nodes.cluster.state.devices
    found = devices.classes.current().of(resource)
    if found is None:
        return None
    devices.catch_up()
    totals, in_use = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    for at in (nodes.allocatable[resource] == 0).nonzero()[0].tolist():
        totals[at], in_use[at] = on_node(nodes[at].node, found, devices)
    return totals, in_use


def on_node(node: Node, device_class: DeviceClass, devices: Devices) -> tuple[int, int]:
    """Return how many devices of a class a node has, and how many of these are in use."""
    total = in_use = 0
    for found in (*devices.slices.on_node(node.name), *devices.slices.shared.values()):
        by_device = found.spec.per_device_node_selection
        if not by_device and not sees(node, found.spec):
            continue
        for device in found.spec.devices:
            if by_device and not sees(node, device):
                continue
            pooled = PooledDevice(found, device, 0, True)
            if _belongs(pooled, device_class):
                total += 1
                in_use += devices.in_use.is_used(pooled.id)
    return total, in_use


def _belongs(pooled: PooledDevice, device_class: DeviceClass) -> bool:
    return all(
        _expressions("" if each.cel is None else each.cel.expression).matches(
            pooled.slice.spec.driver, pooled.device, pooled.alike
        )
        is True
        for each in device_class.spec.selectors
    )
