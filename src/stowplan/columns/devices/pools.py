"""The pools that a node sees, in the order in which kube-scheduler tries their devices.

A slice counts for a node if it is for the node, or one of its devices is, or if it has counters. Of each pool the
newest generation among the slices that count is used. A pool is

    ignored      if slices of a newer generation exist that the node does not see: the driver is replacing the pool
    incomplete   if slices of its generation are missing
    invalid      if it is complete, and a name is used twice, or a device consumes counters that nobody defines

Devices of incomplete and of invalid pools cannot be allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from stowplan.columns.devices.slices import PoolId, Slices, sees
from stowplan.objects.nodes import Node
from stowplan.objects.quantity import nanos
from stowplan.objects.resource_slices import CounterSet, Device, ResourceSlice

DeviceId: TypeAlias = tuple[str, str, str]  # the driver, the pool, the device
CounterAmounts: TypeAlias = dict[tuple[str, str], int]  # nano-units by counter set and counter


_encode = msgspec.json.Encoder(enc_hook=str, order="deterministic").encode


class PooledDevice:
    """A device of a pool.

    pool        the place of its pool among the node's pools
    selected    False if the slice selects nodes by device, and this device is for other nodes
    counters    what it consumes
    alike       the same for devices of which nothing but their names and pools tells them apart; `unattributed`: and
                their attributes
    """

    __slots__ = ("alike", "counters", "device", "id", "pool", "selected", "slice", "unattributed")

    def __init__(self, found: ResourceSlice, device: Device, pool: int, selected: bool) -> None:
        self.slice, self.device, self.pool, self.selected = found, device, pool, selected
        self.id: DeviceId = (found.spec.driver, found.spec.pool.name, device.name)
        self.counters = consumption(device) if device.consumes_counters else {}
        facts = (device.allow_multiple_allocations, device.capacity, device.consumes_counters, device.taints)
        self.unattributed = _encode((found.spec.driver, selected, *facts))
        self.alike = self.unattributed + _encode(device.attributes)


class DevicePool:
    """One pool as a node sees it. `slices` are those with devices that it sees, `others` the rest of the generation."""

    __slots__ = ("counters", "id", "incomplete", "invalid", "others", "slices")

    def __init__(self, pool: PoolId, visible: Sequence[ResourceSlice], every: Sequence[ResourceSlice]) -> None:
        self.id = pool
        self.slices = sorted(visible, key=lambda found: found.name)
        seen = {found.name for found in visible}
        self.others = [found for found in every if found.name not in seen]
        self.incomplete = len(every) != visible[0].spec.pool.resource_slice_count
        sets = [each for found in every for each in found.spec.shared_counters]
        self.counters = _amounts(sets)
        self.invalid = not self.incomplete and _is_invalid(visible, every, sets)

    @property
    def usable(self) -> bool:
        return not self.incomplete and not self.invalid

    @property
    def order(self) -> tuple[bool, PoolId]:
        """Pools with devices that must be prepared before a pod is bound come last."""
        return any(device.binding_conditions for found in self.slices for device in found.spec.devices), self.id

    def __str__(self) -> str:
        return "/".join(self.id)


class NodeDevices:
    """The devices that one node sees. `devices` are those of usable pools, in the order in which they are tried."""

    __slots__ = ("any_invalid", "broken", "devices", "node", "pools")

    def __init__(self, node: Node, pools: Sequence[DevicePool]) -> None:
        self.node = node
        self.pools = sorted(pools, key=lambda pool: pool.order)
        self.broken = next((pool for pool in self.pools if not pool.usable), None)
        self.any_invalid = any(pool.invalid for pool in self.pools)
        self.devices = tuple(_devices(node, self.pools))


def devices_of(node: Node, slices: Slices, foreign: Mapping[PoolId, DevicePool]) -> NodeDevices:
    """Gather the pools that a node sees. `foreign`: what is `unusable_abroad` of pools with counters."""
    visible: dict[PoolId, list[ResourceSlice]] = {}
    for found in (*slices.on_node(node.name), *slices.shared.values()):
        if _is_for(node, found):
            visible.setdefault(found.pool_id, []).append(found)
    for pool, of_pool in visible.items():
        names = {found.name for found in of_pool}
        of_pool += [found for found in slices.counters_of(pool) if found.name not in names]
    pools = [_pool(pool, of_pool, slices) for pool, of_pool in visible.items()]
    pools += [found for pool, found in foreign.items() if pool not in visible]
    return NodeDevices(node, [pool for pool in pools if pool is not None])


def unusable_abroad(pool: PoolId, slices: Slices) -> DevicePool | None:
    """Return a pool as nodes see it for which it has no devices, if it is incomplete or invalid to them.

    Slices with counters are for all nodes, whatever they say. So nodes without devices of the pool see it, too.
    """
    counters = list(slices.counters_of(pool))
    found = _pool(pool, counters, slices) if counters else None
    return None if found is None or found.usable else found


def _pool(pool: PoolId, visible: list[ResourceSlice], slices: Slices) -> DevicePool | None:
    """Return a pool; None if it is being replaced."""
    newest = max(found.spec.pool.generation for found in visible)
    visible = [found for found in visible if found.spec.pool.generation == newest]
    about = visible[0].spec.pool
    if len(visible) == about.resource_slice_count:
        return DevicePool(pool, visible, visible)
    every = list(slices.of_pool(pool))
    if any(found.spec.pool.generation > about.generation for found in every):
        return None
    return DevicePool(pool, visible, [found for found in every if found.spec.pool.generation == about.generation])


def _is_for(node: Node, found: ResourceSlice) -> bool:
    spec = found.spec
    if sees(node, spec):
        return True
    return spec.per_device_node_selection and any(sees(node, device) for device in spec.devices)


def _devices(node: Node, pools: Sequence[DevicePool]) -> Iterator[PooledDevice]:
    for place, pool in enumerate(pools):
        if not pool.usable:
            continue
        for found in pool.slices:
            by_device = found.spec.per_device_node_selection
            for device in found.spec.devices:
                yield PooledDevice(found, device, place, not by_device or sees(node, device))


def _is_invalid(visible: Iterable[ResourceSlice], every: Iterable[ResourceSlice], sets: Sequence[CounterSet]) -> bool:
    """Counters are checked in all slices, names of devices in those that the node sees."""
    defined = {each.name: each.counters.keys() for each in sets}
    names = [device.name for found in visible for device in found.spec.devices]
    if len(defined) < len(sets) or len(set(names)) < len(names):
        return True
    devices = [device for found in every for device in found.spec.devices]
    nothing: frozenset[str] = frozenset()
    return any(
        used.counter_set not in defined or not used.counters.keys() <= defined.get(used.counter_set, nothing)
        for device in devices
        for used in device.consumes_counters
    )


def _amounts(sets: Iterable[CounterSet]) -> CounterAmounts:
    return {(each.name, name): nanos(counter.value) for each in sets for name, counter in each.counters.items()}


def consumption(device: Device) -> CounterAmounts:
    """Return which counters a device consumes."""
    found: CounterAmounts = {}
    for used in device.consumes_counters:
        for name, counter in used.counters.items():
            place = (used.counter_set, name)
            found[place] = found.get(place, 0) + nanos(counter.value)
    return found
