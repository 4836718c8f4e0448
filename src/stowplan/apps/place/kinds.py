"""The kinds that a decision about a placement reads."""

from __future__ import annotations

KINDS = (
    "ManagedCluster",
    "ManagedClusterSet",
    "ManagedClusterSetBinding",
    "AddOnPlacementScore",
    "Placement",
    "PlacementDecision",
)
