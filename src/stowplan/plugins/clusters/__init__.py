"""Plugins for placements, one file each, and the table of those that come with Stowplan."""

from __future__ import annotations

from stowplan.framework.placement.choice import ClusterPolicy, Prioritizer
from stowplan.plugins.clusters.add_on import add_on
from stowplan.plugins.clusters.balance import Balance
from stowplan.plugins.clusters.predicate import PredicatePlugin
from stowplan.plugins.clusters.resource_allocatable import ResourceAllocatable
from stowplan.plugins.clusters.spread import Spread
from stowplan.plugins.clusters.steady import Steady
from stowplan.plugins.clusters.taint_toleration import ClusterTaintToleration


def policy(*, ocm: bool = False) -> ClusterPolicy:
    """Return the plugins that decide placements. `ocm`: those of Open Cluster Management, without our additions."""
    taints = ClusterTaintToleration()
    prioritizers: dict[str, Prioritizer] = {
        "Balance": Balance(),
        "Steady": Steady(),
        "ResourceAllocatableCPU": ResourceAllocatable("cpu", "ResourceAllocatableCPU"),
        "ResourceAllocatableMemory": ResourceAllocatable("memory", "ResourceAllocatableMemory"),
    }
    return ClusterPolicy(
        filters=(PredicatePlugin(), taints),
        prioritizers=prioritizers if ocm else prioritizers | {"TaintToleration": taints},
        defaults={"Balance": 1, "Steady": 1},
        always={} if ocm else {"TaintToleration": 3},
        add_on=add_on,
        spread=None if ocm else Spread(),
        spread_weight=0 if ocm else 2,
    )
