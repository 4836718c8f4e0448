"""A driver and its executors as one company: where is there room for all of them, and where does each go?

The executors do not exist yet, so a pod that stands for them is shown to the profile's own filters once; how many of it
a node takes is then arithmetic. Placing the driver on a node costs room there and nowhere else, so all nodes are judged
at once: what fits in the cluster, less what fits on this node, plus what fits there beside the driver.
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
        """`zone_label`: all members of a company in one zone; empty for anywhere."""
        self._strategy, self._zone, self._gpus = strategy, zone_label, tuple(gpus)

    # -- where?

    def fitting(self, driver: Pod, needs: Executors, where: Bools, cluster: Cluster) -> Bools:
        """Nodes that can take the driver and leave room for its executors, which may go where `where` says."""
        return self._fitting(room_of(cluster.nodes, driver, needs), driver, needs, where, cluster.nodes)

    def _fitting(self, room: Room, driver: Pod, needs: Executors, where: Bools, nodes: Nodes) -> Bools:
        fits = np.minimum(packing.capacities(room, needs.amounts, where), needs.least)
        beside = np.minimum(packing.capacities(packing.less(room, _own(driver)), needs.amounts, where), needs.least)
        enough: Bools = self._in_zone(fits, nodes) - fits + beside >= needs.least
        return enough

    def room_for(self, driver: Pod, needs: Executors, where: Bools, cluster: Cluster) -> int:
        """How many executors there is room for, driver or no driver."""
        fits = packing.capacities(room_of(cluster.nodes, driver, needs), needs.amounts, where)
        return min(int(fits.sum()), needs.least)

    def _in_zone(self, fits: Ints, nodes: Nodes) -> Ints:
        """What fits within reach of each node."""
        if not self._zone:
            return np.full(len(nodes), fits.sum(), np.int64)
        zones = nodes.label(self._zone)
        sums = np.zeros(zones.size, np.int64)
        np.add.at(sums, zones.codes, fits)
        return sums[zones.codes]

    # -- who goes where?

    def packed(self, needs: Executors, driver: Pod, at: int, where: Bools, nodes: Nodes) -> Ints | None:
        """How many executors each node gets, once the driver is on the node at this place; None for no room."""
        return self._packed(room_of(nodes, driver, needs), needs, at, where, nodes)

    def _packed(self, room: Room, needs: Executors, at: int, where: Bools, nodes: Nodes) -> Ints | None:
        if self._zone:
            zones = nodes.label(self._zone).codes
            where = where & (zones == zones[at])
        fits = packing.capacities(room, needs.amounts, where)
        later = self.unneeded(needs.amounts, nodes)
        return packing.pack(self._strategy, fits, needs.least, packing.in_order(room), later)

    def unneeded(self, amounts: dict[str, int], nodes: Nodes) -> Bools:
        """Nodes with GPUs, for pods that need none."""
        found = np.zeros(len(nodes), np.bool_)
        for resource in self._gpus if not any(amounts.get(each) for each in self._gpus) else ():
            found |= nodes.allocatable[resource] > 0
        return found

    def settled(self, room: Room, driver: Pod, needs: Executors, cluster: Cluster) -> Room | None:
        """What is left of the room once this company has its own; None if it does not fit."""
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
    """What each node has left of what these need."""
    wanted = {"pods", "cpu", "memory"}
    for each in members:
        wanted |= set(each.request if isinstance(each, Pod) else each.amounts)
    return {resource: nodes.free[resource] for resource in wanted}


def executor(driver: Pod, needs: Executors) -> Pod:
    """A pod that stands for the executors: it may go where the driver may, and nobody's labels select it."""
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
    return Pod(metadata=ObjectMeta(name=f"executor of {driver.name}", namespace=driver.namespace), spec=spec)


def alone(driver: Pod) -> Pod:
    """The driver as a pod like any other: without what its labels and annotations say of executors."""
    metadata = ObjectMeta(name=driver.name, namespace=driver.namespace)
    return Pod(metadata=metadata, spec=msgspec.structs.replace(driver.spec, scheduling_group=None))


def _own(driver: Pod) -> dict[str, int]:
    return {"pods": 1, **driver.request}
