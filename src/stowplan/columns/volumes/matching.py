"""A plan for the unbound claims of a pod: for every node of a view, which volume does each claim get there?

    1  a claim with a selected node is provisioned on that node only
    2  the other claims, smallest first, take an existing volume that the node can access: the volume that refers to
       the claim, or else the smallest free one; on a node no volume is used twice
    3  the remaining claims are provisioned, if their class can do so there and its driver reports enough capacity

A plan is made for all nodes at once, claim by claim: each volume is looked at once, with the nodes that can access it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.columns.volumes.attachments import NOWHERE, DerivedLookup, VolumeReach
from stowplan.objects import quantity, selectors, volume_candidates
from stowplan.objects.selectors import LabelSelectorRequirement, NodeTerm
from stowplan.objects.storage import (
    SELECTED_NODE,
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologyTerm,
)
from stowplan.objects.volume_candidates import ReachableNodes, VolumeEntry, VolumesOfClass

NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")
NO_VOLUMES = VolumesOfClass()


@dataclass
class VolumePlan:
    """The nodes without a volume or capacity, and what the claims get on the others."""

    no_volume: Bools
    no_space: Bools
    volumes: dict[str, tuple[int, PersistentVolume]] = field(default_factory=dict)  # by name, with a number
    chosen: list[tuple[PersistentVolumeClaim, Ints]] = field(default_factory=list)  # the volume's number, per node
    provisioned: list[tuple[PersistentVolumeClaim, Bools]] = field(default_factory=list)

    @property
    def open(self) -> Bools:
        return ~(self.no_volume | self.no_space)

    def still_has(self, volume: PersistentVolume, here: Ints) -> Ints:
        """Return those of these positions where no earlier claim has taken the volume."""
        if volume.name in self.volumes:
            for _, choice in self.chosen:
                here = here[choice[here] != self.volumes[volume.name][0]]
        return here

    def number(self, volume: PersistentVolume) -> int:
        """Return the number of a volume in `chosen`."""
        return self.volumes.setdefault(volume.name, (len(self.volumes), volume))[0]

    def bindings(self, position: int) -> list[tuple[PersistentVolumeClaim, PersistentVolume]]:
        """Return the claims that get an existing volume on a node, with the volume."""
        volumes = dict(self.volumes.values())
        found = ((claim, int(choice[position])) for claim, choice in self.chosen)
        return [(claim, volumes[number]) for claim, number in found if number != NOWHERE]

    def provisions(self, position: int) -> list[PersistentVolumeClaim]:
        """Return the claims that need a new volume on a node."""
        return [claim for claim, where in self.provisioned if where[position]]


class VolumePlanner:
    """Makes plans, and caches what does not depend on nodes."""

    def __init__(self) -> None:
        self._volumes = DerivedLookup(PersistentVolume, self._by_class)
        self._capacities = DerivedLookup(CSIStorageCapacity, capacities_by_class)
        self._entries: dict[str, VolumeEntry] = {}

    def plan(self, claims: Sequence[PersistentVolumeClaim], nodes: Nodes) -> VolumePlan:
        plan = VolumePlan(np.zeros(len(nodes), np.bool_), np.zeros(len(nodes), np.bool_))
        reach = VolumeReach(nodes)
        selected = [claim for claim in claims if SELECTED_NODE in claim.annotations]
        for claim in selected:
            plan.no_volume |= nodes.name != claim.annotations[SELECTED_NODE]
        everywhere = plan.open
        plan.provisioned += [(claim, everywhere) for claim in selected]
        others = [claim for claim in claims if SELECTED_NODE not in claim.annotations]
        for claim in sorted(others, key=volume_candidates.requested):
            choice = self._choose(claim, plan, reach, nodes.cluster)
            plan.chosen.append((claim, choice))
            plan.provisioned.append((claim, everywhere & (choice == NOWHERE)))
        for claim, where in plan.provisioned:
            self._provision(claim, where, plan, reach, nodes)
        return plan

    # -- existing volumes

    def _choose(self, claim: PersistentVolumeClaim, plan: VolumePlan, reach: VolumeReach, cluster: Cluster) -> Ints:
        candidates = self._volumes(cluster).get(claim.storage_class, NO_VOLUMES)
        choice = np.full(len(plan.no_volume), NOWHERE, np.int64)
        settled = ~plan.open
        for reserved in candidates.reserved(claim):
            # Only a volume that refers to the claim will do, even without access to it, unless it is already taken.
            here = plan.still_has(reserved.volume, np.flatnonzero(~settled))
            choice[np.intersect1d(here, reach.of(reserved.target))] = plan.number(reserved.volume)
            settled[here] = True
        self._take_smallest(candidates.free(claim), settled, choice, plan, reach)
        return choice

    def _take_smallest(
        self, free: list[VolumeEntry], settled: Bools, choice: Ints, plan: VolumePlan, reach: VolumeReach
    ) -> None:
        """Each node takes the first volume that it can access and that no earlier claim has taken there."""
        first = reach.first([each.target for each in free])
        number_of = np.full(len(free) + 1, NOWHERE, np.int64)  # the last one is for NOWHERE
        for at in np.unique(first[~settled & (first != NOWHERE)]).tolist():
            number_of[at] = plan.number(free[at].volume)
        wanted = number_of[first]
        taken = np.logical_or.reduce([wanted == earlier for _, earlier in plan.chosen], initial=False)
        np.copyto(choice, wanted, where=~settled & ~taken)
        settled |= (choice != NOWHERE) | (first == NOWHERE)
        for each in free if not settled.all() else ():
            here = reach.of(each.target)
            here = plan.still_has(each.volume, here[~settled[here]])
            choice[here] = plan.number(each.volume)
            settled[here] = True

    def _by_class(self, volumes: list[PersistentVolume], state: ClusterState) -> dict[str, VolumesOfClass]:  # noqa: ARG002
        known, self._entries = self._entries, {}
        by_class: dict[str, VolumesOfClass] = {}
        for volume in volumes:
            entry = known.get(volume.name)
            if entry is None or entry.volume is not volume:
                entry = volume_candidates.entry(volume)
            self._entries[volume.name] = entry
            by_class.setdefault(volume.storage_class, VolumesOfClass()).add(entry)
        return by_class

    # -- new volumes

    def _provision(
        self, claim: PersistentVolumeClaim, where: Bools, plan: VolumePlan, reach: VolumeReach, nodes: Nodes
    ) -> None:
        where = where & plan.open
        if not where.any():
            return
        storage_class = nodes.cluster.get(StorageClass, claim.storage_class)
        if storage_class is None or storage_class.provisioner in NO_PROVISIONER:
            plan.no_volume |= where
            return
        allowed = _allowed(storage_class.allowed_topologies, nodes)
        plan.no_volume |= where & ~allowed
        plan.no_space |= where & allowed & ~self._space(claim, storage_class, reach, nodes)

    def _space(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, reach: VolumeReach, nodes: Nodes
    ) -> Bools:
        """True for nodes where a volume of this size can be provisioned. Drivers that report nothing have the space."""
        size = claim.spec.resources.requests.get("storage")
        driver = nodes.cluster.get(CSIDriver, storage_class.provisioner)
        if size is None or driver is None or not driver.spec.storage_capacity:
            return np.ones(len(nodes), np.bool_)
        capacities = self._capacities(nodes.cluster).get(storage_class.name, ())
        enough = [where for limit, where in capacities if limit >= quantity.value(size)]
        space: Bools = reach.first(enough) != NOWHERE
        return space


def _allowed(topologies: Iterable[TopologyTerm], nodes: Nodes) -> Bools:
    """True for nodes in one of a class's topologies; without topologies, for all nodes."""
    if not topologies:
        return np.ones(len(nodes), np.bool_)
    return nodes.matching_any(term for term in map(_compiled, topologies) if term is not None)


def _compiled(term: TopologyTerm) -> NodeTerm | None:
    asked = [LabelSelectorRequirement(part.key, "In", part.values) for part in term.match_label_expressions]
    return selectors.compile_term(selectors.NodeSelectorTerm(tuple(asked)))


Capacity: TypeAlias = tuple[int, ReachableNodes]


def capacities_by_class(capacities: list[CSIStorageCapacity], state: ClusterState) -> dict[str, list[Capacity]]:  # noqa: ARG001
    """Return by class the largest volumes that can be provisioned, and on which nodes; ignore those without nodes."""
    found: dict[str, list[Capacity]] = {}
    for capacity in capacities:
        selector = selectors.compile_selector(capacity.node_topology)
        if selector is not None and (limit := capacity.limit) is not None:
            where = volume_candidates.target((NodeTerm(selector, ()),))
            found.setdefault(capacity.storage_class_name, []).append((quantity.value(limit), where))
    return found
