"""The fit of a driver with its executors: the nodes where all of them have room, and a node for each executor.

The executors do not exist yet. The profile's filters evaluate one example executor; how many executors fit on a node is
arithmetic then. The driver takes room on its own node only, so all nodes are evaluated at once: what fits in the
cluster, minus what fits on this node, plus what fits on this node with the driver.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.evaluation import passing
from stowplan.objects.meta import ObjectMeta
from stowplan.objects.pod_parts import Affinity, Container, NodeAffinity, PodSpec, ResourceRequirements
from stowplan.objects.pods import Pod
from stowplan.objects.quantity import Quantity
from stowplan.objects.spark import Executors
from stowplan.plugins.nodes.resource_reservation import packing
from stowplan.plugins.nodes.resource_reservation.packing import Room, Strategy


class ApplicationFit:
    def __init__(self, strategy: Strategy, zone_label: str, gpus: Sequence[str]) -> None:
        """`zone_label`: the label of the one zone for all pods of an application; empty for any zone."""
        self._strategy, self._zone, self._gpus = strategy, zone_label, tuple(gpus)

    # -- nodes for the driver

    def fitting(self, driver: Pod, needs: Executors, where: Bools, cluster: Cluster) -> Bools:
        """Return the nodes where the driver leaves enough room for its executors, which may use the nodes `where`."""
        return self._fitting(room_for_driver(cluster, driver, needs), driver, needs, where, cluster.nodes)

    def _fitting(self, room: Room, driver: Pod, needs: Executors, where: Bools, nodes: Nodes) -> Bools:
        enough: Bools = self._beside(room, driver, needs, where, nodes) >= needs.least
        return enough

    def _beside(self, room: Room, driver: Pod, needs: Executors, where: Bools, nodes: Nodes) -> Ints:
        """Return how many executors fit, for each node with the driver on it."""
        fits = np.minimum(packing.capacities(room, needs.amounts, where), needs.least)
        beside = np.minimum(packing.capacities(packing.less(room, _own(driver)), needs.amounts, where), needs.least)
        return self._in_zone(fits, nodes) - fits + beside

    def most_beside(self, driver: Pod, needs: Executors, where: Bools, cluster: Cluster) -> int | None:
        """Return how many executors fit with the driver on the best node for that; None if no node fits the driver."""
        room = room_for_driver(cluster, driver, needs)
        own = packing.capacities(room, _own(driver), passing(alone(driver), cluster)) > 0
        if not own.any():
            return None
        return min(int(self._beside(room, driver, needs, where, cluster.nodes)[own].max()), needs.least)

    def most(self, driver: Pod, needs: Executors, where: Bools, cluster: Cluster) -> int:
        """Return how many executors fit without the driver."""
        fits = packing.capacities(room_for_driver(cluster, driver, needs), needs.amounts, where)
        return min(int(fits.sum()), needs.least)

    def _in_zone(self, fits: Ints, nodes: Nodes) -> Ints:
        """Return how many executors fit in each node's zone, or in the cluster."""
        if not self._zone:
            return np.full(len(nodes), fits.sum(), np.int64)
        zones = nodes.label(self._zone)
        sums = np.zeros(zones.size, np.int64)
        np.add.at(sums, zones.codes, fits)
        return sums[zones.codes]

    # -- nodes for the executors

    def packed(self, needs: Executors, driver: Pod, at: int, where: Bools, cluster: Cluster) -> Ints | None:
        """Return how many executors each node gets, with the driver on the node at this place; None: no room."""
        return self._packed(room_for_driver(cluster, driver, needs), needs, at, where, cluster.nodes)

    def _packed(self, room: Room, needs: Executors, at: int, where: Bools, nodes: Nodes) -> Ints | None:
        if self._zone:
            zones = nodes.label(self._zone).codes
            where = where & (zones == zones[at])
        fits = packing.capacities(room, needs.amounts, where)
        later = self.unneeded(needs.amounts, nodes)
        return packing.pack(self._strategy, fits, needs.least, packing.in_order(room), later)

    def unneeded(self, amounts: dict[str, int], nodes: Nodes) -> Bools:
        """Return the nodes with GPUs, if these amounts have none."""
        found = np.zeros(len(nodes), np.bool_)
        for resource in self._gpus if not any(amounts.get(each) for each in self._gpus) else ():
            found |= nodes.allocatable[resource] > 0
        return found

    def room_after(self, room: Room, driver: Pod, needs: Executors, cluster: Cluster) -> Room | None:
        """Return the room that is left with this application; None if the application does not fit."""
        nodes, where = cluster.nodes, passing(executor(driver, needs), cluster)
        own = packing.capacities(room, _own(driver), passing(alone(driver), cluster)) > 0
        open_ = own & self._fitting(room, driver, needs, where, nodes)
        later = self.unneeded(driver.request, nodes)
        order = packing.in_order(room)
        for at in [*order[(open_ & ~later)[order]], *order[(open_ & later)[order]]][:1]:
            driven = np.zeros(len(nodes), np.int64)
            driven[at] = 1
            room = packing.less(room, _own(driver), driven)
            given = self._packed(room, needs, int(at), where, nodes)
            return None if given is None else packing.less(room, needs.amounts, given)
        return None


def room_of(nodes: Nodes, *members: Pod | Executors) -> dict[str, Ints]:
    """Return what is free on each node of the resources that these need."""
    wanted = {"pods", "cpu", "memory"}
    for each in members:
        wanted |= set(each.request if isinstance(each, Pod) else each.amounts)
    return {resource: nodes.free[resource] for resource in wanted}


def room_for_driver(cluster: Cluster, driver: Pod, needs: Executors) -> dict[str, Ints]:
    """Return what is free on each node for the driver and its executors: not the room of pods nominated there."""
    room, nominated = room_of(cluster.nodes, driver, needs), cluster.state.nominated_pods
    if not nominated:
        return room
    room = {resource: left.copy() for resource, left in room.items()}
    for name, pods in nominated.by_node.items():
        at = cluster.nodes.position(name)
        for other in pods.values() if at is not None else ():
            owner = nominated.owner_of.get(other.uid, other)
            if owner.uid != driver.uid and other.priority >= driver.priority and other.uid not in cluster.state.pods:
                for resource, amount in {"pods": 1, **other.request}.items():
                    if resource in room:
                        room[resource][at] -= amount
    return room


def executor(driver: Pod, needs: Executors) -> Pod:
    """Return an example executor: it may use the driver's nodes, and has no labels.

    It has the driver's uid: room that is set aside for the driver and its executors is for this one.
    """
    asked = {resource: Quantity(text) for resource, text in needs.resources.items()}
    affinity = Affinity(node_affinity=NodeAffinity(required=driver.spec.affinity.node_affinity.required))
    spec = PodSpec(
        containers=(Container(resources=ResourceRequirements(requests=asked)),),
        node_selector=driver.spec.node_selector,
        affinity=affinity,
        tolerations=driver.spec.tolerations,
        priority=driver.spec.priority,
        scheduler_name=driver.spec.scheduler_name,
    )
    return Pod(metadata=ObjectMeta(f"executor of {driver.name}", driver.namespace, driver.uid), spec=spec)


def alone(driver: Pod) -> Pod:
    """Return the driver as a plain pod, without labels and annotations about executors."""
    metadata = ObjectMeta(driver.name, driver.namespace, driver.uid)
    return Pod(metadata=metadata, spec=msgspec.structs.replace(driver.spec, scheduling_group=None))


def _own(driver: Pod) -> dict[str, int]:
    return {"pods": 1, **driver.request}
