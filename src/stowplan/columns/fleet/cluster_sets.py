"""Which clusters a namespace may use: ManagedClusterSets, and the bindings of namespaces to them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from stowplan.columns.arrays import Bools, Rows
from stowplan.columns.fleet.clusters import LABELS, Fleet
from stowplan.objects import selectors
from stowplan.objects.clusters import ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding
from stowplan.objects.placements import Placement


class ClusterSets:
    """`strict`: a binding counts only if it has the name of the set it binds."""

    def __init__(self, fleet: Fleet, *, strict: bool = True) -> None:
        self.fleet, self.strict = fleet, strict
        self.sets: dict[str, ManagedClusterSet] = {}
        self.bindings: defaultdict[str, dict[str, ManagedClusterSetBinding]] = defaultdict(dict)
        self.version = 0  # grows whenever a set changes

    def put(self, found: ManagedClusterSet | ManagedClusterSetBinding) -> None:
        if isinstance(found, ManagedClusterSet):
            self.sets[found.name] = found
            self.version += 1
        else:
            self.bindings[found.namespace][found.name] = found

    def remove(self, gone: ManagedClusterSet | ManagedClusterSetBinding) -> None:
        if isinstance(gone, ManagedClusterSet):
            self.sets.pop(gone.name, None)
            self.version += 1
        else:
            self.bindings[gone.namespace].pop(gone.name, None)

    def bound(self, namespace: str) -> list[str]:
        """Return the existing sets that are bound to a namespace."""
        found = self.bindings.get(namespace, {})
        return sorted(
            name
            for name, binding in found.items()
            if name in self.sets and (not self.strict or binding.spec.cluster_set == name)
        )

    def eligible(self, placement: Placement) -> tuple[str, ...]:
        """Return the sets that a placement may choose from."""
        bound, wanted = self.bound(placement.namespace), placement.spec.cluster_sets
        return tuple(bound if not wanted else (name for name in bound if name in wanted))

    def problem(self, names: tuple[str, ...]) -> str:
        """Return why the members of these sets cannot be determined; "" if they can."""
        broken = ((name, self.sets[name].problem) for name in names)
        return next((f'failed to get clusters from ClusterSet "{name}": {text}' for name, text in broken if text), "")

    def rows(self, names: tuple[str, ...]) -> Rows:
        """Return the rows of the clusters of these sets in the order of names, without terminating clusters."""
        fleet = self.fleet
        version = (self.version, fleet.versions[LABELS], fleet.versions["members"], fleet.capacity)
        return fleet.cached(("rows of sets", names), version, lambda: self._rows(names))

    def _rows(self, names: tuple[str, ...]) -> Rows:
        fleet = self.fleet
        members: Bools = np.zeros(fleet.capacity, np.bool_)
        for name in names:
            members |= fleet.matching(LABELS, self.sets[name].members)
        rows = np.flatnonzero(members & fleet.available)
        rows = rows[np.argsort(fleet.rank()[rows])]
        rows.flags.writeable = False
        return rows

    def of(self, cluster: ManagedCluster) -> frozenset[str]:
        """Return the sets that a cluster is a member of."""
        return frozenset(name for name, each in self.sets.items() if selectors.matches(each.members, cluster.labels))
