"""Which clusters a Placement has, as far as its decisions on the hub can be trusted.

Decisions that are visible are enough to create a workload. To delete one takes more, since decisions may be missing
for other reasons: a hub that was restored without its statuses, a definition that is gone, a list that is half written.
The choice is final, and clusters that are not in it lose the workload, only if all of this holds:

- the hub serves Placements and PlacementDecisions,
- the Placement exists, and is not being deleted,
- it has been decided (it has the condition PlacementSatisfied), and
- its decisions name as many clusters as its status says.

So a Placement that is decided to have no clusters empties them, and one that is deleted leaves everything as it is. A
Placement that another scheduler decides (`experimental-scheduling-disable`) may have no status: then decisions that
name at least one cluster are final.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stowplan.objects.placements import DISABLED, SATISFIED, Placement, PlacementDecision


class ClusterChoice(msgspec.Struct, frozen=True):
    """The clusters to have the workload. `final`: no other may have it. `why`: why it is not final."""

    clusters: frozenset[str] = frozenset()
    why: str = ""

    @property
    def final(self) -> bool:
        return not self.why


NOTHING_SEEN = ClusterChoice(why="nothing was read from the hub yet")


def choice(
    placement: Placement | None, decisions: Iterable[PlacementDecision], before: ClusterChoice, *, served: bool
) -> ClusterChoice:
    """Return the choice by these objects of the hub. One that is not final adds to the choice `before` it."""
    found = frozenset(name for decision in decisions for name in decision.cluster_names)
    why = _doubt(placement, len(found)) if served else "the hub does not serve Placements and PlacementDecisions"
    return ClusterChoice(found | before.clusters if why else found, why)


def _doubt(placement: Placement | None, number: int) -> str:
    if placement is None:
        return "the Placement does not exist"
    if placement.terminating:
        return "the Placement is being deleted"
    if placement.annotations.get(DISABLED) == "true":
        return "" if number else "the scheduler of the Placement has written no decisions"
    if placement.condition(SATISFIED) is None:
        return "the Placement has not been decided yet"
    said = placement.status.number_of_selected_clusters
    return "" if said == number else f"its decisions name {number} clusters, its status says {said}"
