"""For every node of a view: which volume would each unbound claim of a pod get there?

    1  a claim that was already promised to a node is provisioned there or nowhere
    2  the others, smallest first, take an existing volume that the node can reach: the one that names the claim, else
       the smallest free one; no volume is given away twice on a node
    3  what found none is provisioned, where its class can do so and, if its driver keeps books, has the space

A plan is made for all nodes at once, claim by claim: each volume is looked at once, with the nodes that can reach it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.claims import Derived, Reach
from stowplan.columns.state import ClusterState
from stowplan.columns.views import Cluster, Nodes
from stowplan.objects import binding, quantity, selectors
from stowplan.objects.binding import Offers
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

NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")
KEPT_OFFERS = 4096
_NONE = -1


@dataclass
class Plan:
    """Nodes that will not do, and what the pod's claims get on the others."""

    no_volume: Bools
    no_space: Bools
    volumes: dict[str, tuple[int, PersistentVolume]] = field(default_factory=dict)  # given away, numbered
    chosen: list[tuple[PersistentVolumeClaim, Ints]] = field(default_factory=list)  # the volume's number, per node
    provisioned: list[tuple[PersistentVolumeClaim, Bools]] = field(default_factory=list)

    @property
    def open(self) -> Bools:
        return ~(self.no_volume | self.no_space)

    def bindings(self, position: int) -> list[tuple[PersistentVolumeClaim, PersistentVolume]]:
        """Claims that get an existing volume on a node."""
        volumes = dict(self.volumes.values())
        found = ((claim, int(choice[position])) for claim, choice in self.chosen)
        return [(claim, volumes[number]) for claim, number in found if number != _NONE]

    def provisions(self, position: int) -> list[PersistentVolumeClaim]:
        """Claims for which a volume would have to be made on a node."""
        return [claim for claim, where in self.provisioned if where[position]]


class Planner:
    """Makes plans; keeps what does not depend on nodes."""

    def __init__(self) -> None:
        self._volumes = Derived(PersistentVolume, volumes_by_class)
        self._capacities = Derived(CSIStorageCapacity, capacities_by_class)
        self._offers: dict[str, tuple[PersistentVolumeClaim, Sequence[PersistentVolume], Offers]] = {}

    def plan(self, claims: Sequence[PersistentVolumeClaim], nodes: Nodes) -> Plan:
        plan = Plan(np.zeros(len(nodes), np.bool_), np.zeros(len(nodes), np.bool_))
        reach = Reach(nodes)
        promised = [claim for claim in claims if SELECTED_NODE in claim.annotations]
        for claim in promised:
            plan.no_volume |= nodes.name != claim.annotations[SELECTED_NODE]
        everywhere = plan.open
        plan.provisioned += [(claim, everywhere) for claim in promised]
        others = [claim for claim in claims if SELECTED_NODE not in claim.annotations]
        for claim in sorted(others, key=binding.requested):
            choice = self._choose(claim, plan, reach, nodes.cluster)
            plan.chosen.append((claim, choice))
            plan.provisioned.append((claim, everywhere & (choice == _NONE)))
        for claim, where in plan.provisioned:
            self._provision(claim, where, plan, reach, nodes)
        return plan

    # -- existing volumes

    def _choose(self, claim: PersistentVolumeClaim, plan: Plan, reach: Reach, cluster: Cluster) -> Ints:
        offers = self._offered(claim, cluster)
        choice = np.full(len(plan.no_volume), _NONE, np.int64)
        settled = ~plan.open
        for volume in offers.reserved:
            # A volume that names the claim settles it, even where it is out of reach; unless it was given away already.
            here = np.flatnonzero(~settled)
            here = here[_not_given(plan, volume, here)]
            _give(plan, volume, np.intersect1d(here, reach.of(volume.node_terms)), choice)
            settled[here] = True
        left = len(settled) - np.count_nonzero(settled)
        for volume in offers.free:
            if not left:
                break
            here = reach.of(volume.node_terms)
            here = here[~settled[here]]
            here = here[_not_given(plan, volume, here)]
            _give(plan, volume, here, choice)
            settled[here] = True
            left -= len(here)
        return choice

    def _offered(self, claim: PersistentVolumeClaim, cluster: Cluster) -> Offers:
        volumes = self._volumes(cluster).get(claim.storage_class, [])
        known = self._offers.get(claim.key)
        if known is None or known[0] is not claim or known[1] is not volumes:
            if len(self._offers) >= KEPT_OFFERS:
                self._offers.clear()
            known = self._offers[claim.key] = (claim, volumes, binding.offers(claim, volumes))
        return known[2]

    # -- new volumes

    def _provision(self, claim: PersistentVolumeClaim, where: Bools, plan: Plan, reach: Reach, nodes: Nodes) -> None:
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

    def _space(self, claim: PersistentVolumeClaim, storage_class: StorageClass, reach: Reach, nodes: Nodes) -> Bools:
        """Nodes where a volume of this size can be made. Drivers that keep no books are taken to have the space."""
        size = claim.spec.resources.requests.get("storage")
        driver = nodes.cluster.get(CSIDriver, storage_class.provisioner)
        if size is None or driver is None or not driver.spec.storage_capacity:
            return np.ones(len(nodes), np.bool_)
        space = np.zeros(len(nodes), np.bool_)
        for limit, terms in self._capacities(nodes.cluster).get(storage_class.name, ()):
            if limit >= quantity.value(size):
                space[reach.of(terms)] = True
        return space


def _not_given(plan: Plan, volume: PersistentVolume, here: Ints) -> Bools:
    """At which of these positions no earlier claim of the pod has taken the volume."""
    free = np.ones(len(here), np.bool_)
    if volume.name in plan.volumes:
        for _, choice in plan.chosen:
            free &= choice[here] != plan.volumes[volume.name][0]
    return free


def _give(plan: Plan, volume: PersistentVolume, here: Ints, choice: Ints) -> None:
    if len(here):
        choice[here], _ = plan.volumes.setdefault(volume.name, (len(plan.volumes), volume))


def _allowed(topologies: Iterable[TopologyTerm], nodes: Nodes) -> Bools:
    """Nodes in one of a class's topologies; without any, all nodes."""
    if not topologies:
        return np.ones(len(nodes), np.bool_)
    return nodes.matching_any(term for term in map(_compiled, topologies) if term is not None)


def _compiled(term: TopologyTerm) -> NodeTerm | None:
    asked = [LabelSelectorRequirement(part.key, "In", part.values) for part in term.match_label_expressions]
    return selectors.compile_term(selectors.NodeSelectorTerm(tuple(asked)))


# -- what is worked out from all objects of a kind


def volumes_by_class(volumes: list[PersistentVolume], state: ClusterState) -> dict[str, list[PersistentVolume]]:  # noqa: ARG001
    found: dict[str, list[PersistentVolume]] = {}
    for volume in volumes:
        found.setdefault(volume.storage_class, []).append(volume)
    return found


Capacity = tuple[int, tuple[NodeTerm, ...]]


def capacities_by_class(capacities: list[CSIStorageCapacity], state: ClusterState) -> dict[str, list[Capacity]]:  # noqa: ARG001
    """The largest volume that can be made, and on which nodes. One that names no nodes is of no use."""
    found: dict[str, list[Capacity]] = {}
    for capacity in capacities:
        selector = selectors.compile_selector(capacity.node_topology)
        if selector is not None and (limit := capacity.limit) is not None:
            term = NodeTerm(selector, ())
            found.setdefault(capacity.storage_class_name, []).append((quantity.value(limit), (term,)))
    return found
