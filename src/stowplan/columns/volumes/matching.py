"""A plan for the unbound claims of a pod: for every node of a view, which volume does each claim get there?

    1  a claim with a selected node is provisioned on that node only
    2  the other claims, smallest first, take an existing volume that the node can access: the volume that refers to
       the claim, or else the smallest free one; on a node no volume is used twice
    3  the remaining claims are provisioned, if their class can do so there and its driver reports enough capacity

A plan is made for all nodes at once, claim by claim. Which volume a node would take, `volume_index` knows for all nodes
whose volumes are told apart by one label; otherwise each volume is looked at, with the nodes that can access it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.views import Nodes
from stowplan.columns.state import ClusterState
from stowplan.columns.volumes.attachments import NOWHERE, DerivedLookup, VolumeReach
from stowplan.columns.volumes.volume_index import AlikeVolumes, VolumeIndex
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
from stowplan.objects.volume_candidates import ReachableNodes, VolumeEntry

NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")


@dataclass
class VolumePlan:
    """The nodes without a volume or capacity (None: no node), and what the claims get on the others."""

    size: int
    index: VolumeIndex
    no_volume: Bools | None = None
    no_space: Bools | None = None
    chosen: list[tuple[PersistentVolumeClaim, Ints]] = field(default_factory=list)  # the volume's number, per node
    in_turn: tuple[AlikeVolumes, int] | None = None  # all claims so far took, one after the other, the first of these
    provisioned: list[tuple[PersistentVolumeClaim, Bools]] = field(default_factory=list)

    @property
    def closed(self) -> Bools | None:
        """The nodes that cannot have all claims, as far as is known; None: no node."""
        if self.no_volume is None or self.no_space is None:
            return self.no_space if self.no_volume is None else self.no_volume
        return self.no_volume | self.no_space

    @property
    def open(self) -> Bools:
        closed = self.closed
        return np.ones(self.size, np.bool_) if closed is None else ~closed

    def without_volume(self, where: Bools) -> None:
        self.no_volume = where if self.no_volume is None else self.no_volume | where

    def without_space(self, where: Bools) -> None:
        self.no_space = where if self.no_space is None else self.no_space | where

    def still_has(self, number: int, here: Ints) -> Ints:
        """Return those of these positions where no earlier claim has taken the volume."""
        for _, choice in self.chosen:
            here = here[choice[here] != number]
        return here

    def taken(self, wanted: Ints) -> Bools:
        """Return the nodes where an earlier claim has taken the volume that is wanted there."""
        taken = np.zeros(len(wanted), np.bool_)
        for _, choice in self.chosen:
            taken |= choice == wanted
        return taken

    def bindings(self, position: int) -> list[tuple[PersistentVolumeClaim, PersistentVolume]]:
        """Return the claims that get an existing volume on a node, with the volume."""
        found = ((claim, int(choice[position])) for claim, choice in self.chosen)
        return [(claim, self.index.volume(number)) for claim, number in found if number != NOWHERE]

    def provisions(self, position: int) -> list[PersistentVolumeClaim]:
        """Return the claims that need a new volume on a node."""
        return [claim for claim, where in self.provisioned if where[position]]


class VolumePlanner:
    """Makes plans, and caches what does not depend on nodes."""

    def __init__(self) -> None:
        self._index: VolumeIndex | None = None
        self._capacities = DerivedLookup(CSIStorageCapacity, capacities_by_class)

    def plan(self, claims: Sequence[PersistentVolumeClaim], nodes: Nodes) -> VolumePlan:
        state = nodes.cluster.state
        if self._index is None or self._index.state is not state:
            self._index = VolumeIndex(state)
        plan = VolumePlan(len(nodes), self._index)
        reach = VolumeReach(nodes)
        selected = [claim for claim in claims if SELECTED_NODE in claim.annotations]
        others = claims
        if selected:
            for claim in selected:
                plan.without_volume(nodes.name != claim.annotations[SELECTED_NODE])
            plan.provisioned += [(claim, plan.open) for claim in selected]
            others = [claim for claim in claims if SELECTED_NODE not in claim.annotations]
        closed = plan.closed
        for claim in sorted(others, key=volume_candidates.requested) if len(others) > 1 else others:
            choice = self._choose(claim, plan, reach, nodes)
            plan.chosen.append((claim, choice))
            without = choice == NOWHERE
            plan.provisioned.append((claim, without if closed is None else without & ~closed))
        for claim, where in plan.provisioned:
            self._provision(claim, where, plan, reach, nodes)
        return plan

    # -- existing volumes

    def _choose(self, claim: PersistentVolumeClaim, plan: VolumePlan, reach: VolumeReach, nodes: Nodes) -> Ints:
        candidates = plan.index.of_class(claim.storage_class)
        reserved, alike = candidates.reserved(claim), candidates.alike(claim)
        by_label = len(alike) == 1 and alike[0].key and claim.spec.selector is None
        if by_label and not reserved and plan.closed is None:
            wanted = alike[0], volume_candidates.requested(claim)
            if not plan.chosen or plan.in_turn == wanted:
                plan.in_turn = wanted
                return alike[0].first_of(nodes, wanted[1], len(plan.chosen))
        plan.in_turn = None
        choice = np.full(len(nodes), NOWHERE, np.int64)
        settled = ~plan.open
        for each in reserved:
            # Only a volume that refers to the claim will do, even without access to it, unless it is already taken.
            here = plan.still_has(each.number, np.flatnonzero(~settled))
            choice[np.intersect1d(here, reach.of(each.target))] = each.number
            settled[here] = True
        if by_label:
            self._take_first(alike[0], volume_candidates.requested(claim), settled, choice, plan, nodes)
        elif alike:
            self._take_smallest(candidates.free(claim), settled, choice, plan, reach)
        return choice

    @staticmethod
    def _take_first(
        alike: AlikeVolumes, size: int, settled: Bools, choice: Ints, plan: VolumePlan, nodes: Nodes
    ) -> None:
        """Each node takes the first volume of its label's value that no earlier claim has taken there."""
        for skipped in range(len(plan.chosen) + 1):
            wanted = alike.first_of(nodes, size, skipped)
            settled |= wanted == NOWHERE
            here = ~settled & ~plan.taken(wanted)
            np.copyto(choice, wanted, where=here)
            settled |= here
            if settled.all():
                return

    @staticmethod
    def _take_smallest(
        free: list[VolumeEntry], settled: Bools, choice: Ints, plan: VolumePlan, reach: VolumeReach
    ) -> None:
        """Each node takes the first volume that it can access and that no earlier claim has taken there."""
        first = reach.first([each.target for each in free])
        numbers = np.array([*(each.number for each in free), NOWHERE], np.int64)  # the last one is for NOWHERE
        wanted = numbers[first]
        np.copyto(choice, wanted, where=~settled & ~plan.taken(wanted))
        settled |= (choice != NOWHERE) | (first == NOWHERE)
        for each in free if not settled.all() else ():
            here = reach.of(each.target)
            here = plan.still_has(each.number, here[~settled[here]])
            choice[here] = each.number
            settled[here] = True

    # -- new volumes

    def _provision(
        self, claim: PersistentVolumeClaim, where: Bools, plan: VolumePlan, reach: VolumeReach, nodes: Nodes
    ) -> None:
        closed = plan.closed
        where = where if closed is None else where & ~closed
        if not where.any():
            return
        storage_class = nodes.cluster.get(StorageClass, claim.storage_class)
        if storage_class is None or storage_class.provisioner in NO_PROVISIONER:
            plan.without_volume(where)
            return
        allowed = _allowed(storage_class.allowed_topologies, nodes)
        plan.without_volume(where & ~allowed)
        plan.without_space(where & allowed & ~self._space(claim, storage_class, reach, nodes))

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
