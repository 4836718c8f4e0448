"""What is said about a placement: its conditions and events, in Open Cluster Management's words."""

from __future__ import annotations

from collections.abc import Iterable

from stowplan.framework.placement.decision import ERROR, MISCONFIGURED, WARNING, PlacementChoice, PluginStatus
from stowplan.objects import placements as api
from stowplan.objects.clusters import ClusterCondition
from stowplan.objects.placements import Placement

LONGEST_EVENT = 1000
LONGEST_CONDITION = 4096
KEPT = "the last good decisions are kept"


def conditions(choice: PlacementChoice, status: PluginStatus, selected: int) -> list[ClusterCondition]:
    """Both conditions, sorted by type. `status` is the choice's own, or what became of it when it was grouped."""
    return [misconfigured(status, plain=choice.asked.ocm), satisfied(choice, status, selected)]


def misconfigured(status: PluginStatus, *, plain: bool) -> ClusterCondition:
    if status.code != MISCONFIGURED:
        return ClusterCondition(api.MISCONFIGURED, "False", "Succeedconfigured", "Placement configurations check pass")
    said = status.message if plain else f"{status.text}; {KEPT}"
    return ClusterCondition(api.MISCONFIGURED, "True", "Misconfigured", f"{status.plugin}:{said}")


def satisfied(choice: PlacementChoice, status: PluginStatus, selected: int) -> ClusterCondition:
    true, reason, message = _satisfied(choice, status, selected)
    if status.code == WARNING and not choice.asked.ocm:
        message = f"{message}; {status.text}"[:LONGEST_CONDITION]
    return ClusterCondition(api.SATISFIED, "True" if true else "False", reason, message)


def _satisfied(choice: PlacementChoice, status: PluginStatus, selected: int) -> tuple[bool, str, str]:
    """The first that applies."""
    if not choice.bindings:
        return False, "NoManagedClusterSetBindings", "No valid ManagedClusterSetBindings found in placement namespace"
    if not choice.sets:
        listed = ",".join(choice.asked.placement.spec.cluster_sets)
        return False, "NoIntersection", f"None of ManagedClusterSets [{listed}] is bound to placement namespace"
    if status.code == ERROR:
        return False, "NotAllDecisionsScheduled", status.message
    if not len(choice.candidates):
        listed = ",".join(choice.sets)
        return False, "AllManagedClusterSetsEmpty", f"All ManagedClusterSets [{listed}] have no member ManagedCluster"
    if not selected:
        return False, "NoManagedClusterMatched", "No ManagedCluster matches any of the cluster predicate"
    if not choice.unscheduled:
        return True, "AllDecisionsScheduled", "All cluster decisions scheduled"
    return False, "NotAllDecisionsScheduled", f"{choice.unscheduled} cluster decisions unscheduled"


# -- events


def created(placement: Placement, decision: str) -> str:
    return f"Decision {decision} is created with placement {placement.name} in namespace {placement.namespace}"


def deleted(placement: Placement, decision: str) -> str:
    return f"Decision {decision} is deleted with placement {placement.name} in namespace {placement.namespace}"


def updated(placement: Placement, decision: str, status: PluginStatus) -> str:
    said = f"Decision {decision} is updated with placement {placement.name} in namespace {placement.namespace}"
    return f"{said}: {status.message} in plugin {status.plugin}" if status.code == WARNING else said


def scores(ranking: Iterable[tuple[str, int]]) -> str:
    """`c1:200 c2:145`, cut where it gets long."""
    return _cut(f"{name}:{total} " for name, total in ranking)


def _cut(parts: Iterable[str]) -> str:
    said = ""
    for part in parts:
        if len(said) + len(part) > LONGEST_EVENT:
            return f"{said}......"
        said += part
    return said.rstrip()
