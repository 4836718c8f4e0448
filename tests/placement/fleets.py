"""Fleets for tests, with keywords and valid defaults: `a_cluster("c1", cpu="4")`. Taints are written as kubectl does:
"key1=value1:NoSelect", "key1:NoSelect".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from stowplan.columns.fleet.cluster_sets import ClusterSets
from stowplan.columns.fleet.clusters import Fleet
from stowplan.columns.fleet.views import Clusters
from stowplan.framework.placement import evaluation
from stowplan.framework.placement.choice import PlacementChoice, PlacementQuestion
from stowplan.framework.placement.policy import ClusterPolicy
from stowplan.objects import kinds
from stowplan.objects.clusters import (
    SET_LABEL,
    AddOnPlacementScore,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
)
from stowplan.objects.meta import Object
from stowplan.objects.placements import (
    GROUP_INDEX_LABEL,
    GROUP_NAME_LABEL,
    PLACEMENT_LABEL,
    Placement,
    PlacementDecision,
)
from stowplan.plugins import clusters

NOW = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC).timestamp()


def moment(seconds: float) -> str:
    """Return the time so many seconds after NOW."""
    return datetime.fromtimestamp(NOW + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def a_taint(text: str, added: float = -3600.0) -> dict[str, Any]:
    what, _, effect = text.rpartition(":")
    key, _, value = what.partition("=")
    return {"key": key, "value": value, "effect": effect, "timeAdded": moment(added)}


def a_cluster(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    claims: Mapping[str, str] | None = None,
    taints: Sequence[str | dict[str, Any]] = (),
    cpu: str | tuple[str, str] | None = None,
    memory: str | tuple[str, str] | None = None,
    of: str = "default",
    terminating: bool = False,
    **status: Any,
) -> ManagedCluster:
    """`cpu` and `memory`: the allocatable amount, or a pair of that and the capacity."""
    amounts = {
        resource: (given, given) if isinstance(given, str) else given
        for resource, given in (("cpu", cpu), ("memory", memory))
        if given is not None
    }
    document = {
        "metadata": {
            "name": name,
            "labels": dict(labels or {}) | ({SET_LABEL: of} if of else {}),
            **({"deletionTimestamp": moment(-1)} if terminating else {}),
        },
        "spec": {
            "hubAcceptsClient": True,
            "taints": [a_taint(each) if isinstance(each, str) else each for each in taints],
        },
        "status": {
            "allocatable": {resource: given[0] for resource, given in amounts.items()},
            "capacity": {resource: given[1] for resource, given in amounts.items()},
            "clusterClaims": [{"name": key, "value": value} for key, value in (claims or {}).items()],
            **status,
        },
    }
    return kinds.convert(ManagedCluster, document)


def a_set(name: str = "default", **selector: Any) -> ManagedClusterSet:
    document = {"metadata": {"name": name}, "spec": {"clusterSelector": selector}}
    return kinds.convert(ManagedClusterSet, document)


def a_binding(name: str = "default", namespace: str = "test") -> ManagedClusterSetBinding:
    document = {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterSet": name}}
    return kinds.convert(ManagedClusterSetBinding, document)


def a_placement(name: str = "test", *, namespace: str = "test", generation: int = 1, **spec: Any) -> Placement:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "generation": generation}
    metadata |= {key: spec.pop(key) for key in ("annotations", "deletionTimestamp") if key in spec}
    return kinds.convert(Placement, {"metadata": metadata, "spec": spec})


def a_score(cluster: str, name: str = "test", valid: float | None = None, **scores: int) -> AddOnPlacementScore:
    """`valid`: for how many seconds after NOW the scores are valid."""
    document = {
        "metadata": {"name": name, "namespace": cluster},
        "status": {
            "scores": [{"name": key, "value": value} for key, value in scores.items()],
            "validUntil": None if valid is None else moment(valid),
        },
    }
    return kinds.convert(AddOnPlacementScore, document)


def a_decision(
    clusters: Iterable[str],
    *,
    of: str = "other",
    number: int = 1,
    namespace: str = "test",
    index: int = 0,
    group: str = "",
) -> PlacementDecision:
    labels = {PLACEMENT_LABEL: of, GROUP_INDEX_LABEL: str(index), GROUP_NAME_LABEL: group}
    document = {
        "metadata": {"name": f"{of}-decision-{number}", "namespace": namespace, "labels": labels},
        "status": {"decisions": [{"clusterName": each, "reason": ""} for each in clusters]},
    }
    return kinds.convert(PlacementDecision, document)


BOUND = (a_set(), a_binding())


def a_fleet(objects: Iterable[Object]) -> tuple[Fleet, ClusterSets]:
    fleet = Fleet()
    sets = ClusterSets(fleet)
    for found in (*BOUND, *objects):
        match found:
            case ManagedCluster():
                fleet.put(found)
            case AddOnPlacementScore():
                fleet.put_score(found)
            case ManagedClusterSet() | ManagedClusterSetBinding():
                sets.put(found)
            case PlacementDecision():
                fleet.count_decision(found.cluster_names, 1)
    return fleet, sets


def a_question(
    placement: Placement, objects: Iterable[Object], *, now: float = NOW, ocm: bool = True
) -> PlacementQuestion:
    objects = list(objects)
    fleet, _ = a_fleet(objects)
    return PlacementQuestion(placement, fleet, now, fleet.rows(own(placement, objects)), ocm)


def a_view(
    placement: Placement,
    objects: Iterable[Object],
    names: Iterable[str],
    *,
    now: float = NOW,
    ocm: bool = True,
    track: bool = False,
) -> Clusters:
    """Return the clusters of these names as a plugin sees them that is asked about the placement."""
    question = a_question(placement, objects, now=now, ocm=ocm)
    return Clusters(question.view(track=track), question.fleet.rows(names))


def own(placement: Placement, objects: Iterable[Object]) -> list[str]:
    decisions = (each for each in objects if isinstance(each, PlacementDecision))
    return [name for each in decisions if each.placement == placement.key for name in each.cluster_names]


def chosen(
    placement: Placement,
    objects: Iterable[Object],
    *,
    now: float = NOW,
    ocm: bool = True,
    policy: ClusterPolicy | None = None,
) -> PlacementChoice:
    """Decide a placement of the namespace `test`, which is bound to the set `default`."""
    objects = list(objects)
    fleet, sets = a_fleet(objects)
    question = PlacementQuestion(placement, fleet, now, fleet.rows(own(placement, objects)), ocm)
    return evaluation.choose(question, sets, policy or clusters.policy(ocm=ocm))


def some_clusters(count: int, **common: Any) -> list[Any]:
    return [a_cluster(f"c{number:03}", **common) for number in range(1, count + 1)]


def by_score(resource: str = "demo", score: str = "s", weight: int = 1, **more: Any) -> dict[str, Any]:
    coordinate = {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": score}, **more}
    return {"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate, "weight": weight}]}
