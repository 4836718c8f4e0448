"""Plugins for placements, one file each, and the table of those that come with Stowplan.

Adding a plugin touches its file, one row here, and its test. `add_on` makes the prioritizer of a score that a placement
names by its AddOnPlacementScore.
"""

from __future__ import annotations

from stowplan.framework.config import placement_configuration
from stowplan.framework.extension_points import CLUSTERS
from stowplan.framework.placement.policy import ClusterPolicy, build, points_in
from stowplan.framework.registry import Registry
from stowplan.plugins.clusters.add_on import add_on
from stowplan.plugins.clusters.balance import Balance
from stowplan.plugins.clusters.predicate import PredicatePlugin
from stowplan.plugins.clusters.resource_allocatable import ResourceAllocatableCPU, ResourceAllocatableMemory
from stowplan.plugins.clusters.spread import Spread
from stowplan.plugins.clusters.steady import Steady
from stowplan.plugins.clusters.taint_toleration import ClusterTaintToleration

BUILT_IN: dict[str, type] = {
    "Balance": Balance,
    "Steady": Steady,
    "ResourceAllocatableCPU": ResourceAllocatableCPU,
    "ResourceAllocatableMemory": ResourceAllocatableMemory,
    "TaintToleration": ClusterTaintToleration,
    "Predicate": PredicatePlugin,
    "Spread": Spread,
}


def policy(*, ocm: bool = False) -> ClusterPolicy:
    """Return the default plugins. `ocm`: those of Open Cluster Management, without our additions."""
    registry = Registry(BUILT_IN, kind=CLUSTERS)
    configuration = placement_configuration.default(points_in(registry, ocm=ocm))
    return build(configuration, registry, add_on, ocm=ocm)
