"""A model of placement decisions: one cluster at a time, no caches, no arrays. Tests compare the product with it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stowplan.objects import quantity
from stowplan.objects.clusters import (
    SET_LABEL,
    AddOnPlacementScore,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
)
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement, PlacementDecision
from stowplan.objects.selectors import LabelSelector

# Expressions, and what they mean without CEL.
EXPRESSIONS: dict[str, Callable[[World, ManagedCluster], bool]] = {
    'managedCluster.metadata.labels["env"] == "prod"': lambda _, c: c.labels.get("env") == "prod",
    'managedCluster.status.clusterClaims.exists(c, c.name == "tier" && c.value == "gold")': lambda _, c: (
        c.claims.get("tier") == "gold"
    ),
    'managedCluster.scores("r1").exists(s, s.name == "s" && s.value > 0)': lambda world, c: any(
        each.name == "s" and each.value > 0 for each in world.readable(c.name, "r1")
    ),
}


@dataclass
class World:
    objects: list[Object]
    now: float
    ocm: bool
    sets: dict[str, ManagedClusterSet] = field(init=False)

    def __post_init__(self) -> None:
        self.sets = {each.name: each for each in self.all(ManagedClusterSet)}

    def all(self, kind: type) -> list[Any]:
        return [each for each in self.objects if isinstance(each, kind)]

    def score_object(self, cluster: str, resource: str) -> AddOnPlacementScore | None:
        found = [each for each in self.all(AddOnPlacementScore) if (each.namespace, each.name) == (cluster, resource)]
        return found[0] if found else None

    def readable(self, cluster: str, resource: str) -> Iterable[Any]:
        found = self.score_object(cluster, resource)
        if found is None or (not self.ocm and found.valid_until < self.now):
            return ()
        return found.status.scores


@dataclass
class Outcome:
    candidates: list[str]
    matched: list[str]
    tolerated: list[str]
    totals: dict[str, int]
    names: list[str]
    unscheduled: int


def choose(world: World, placement: Placement) -> Outcome:
    own = [
        name for each in world.all(PlacementDecision) if each.placement == placement.key for name in each.cluster_names
    ]
    candidates = sorted(_candidates(world, placement), key=lambda each: each.name)
    matched = [each for each in candidates if _matches(world, placement, each)]
    tolerated = [each for each in matched if _tolerated(world, placement, each, each.name in own)]
    ranked = [each for each in tolerated if not _excluded(world, placement, each)]
    totals = {each.name: 0 for each in ranked}
    for name, weight, missing in _weights(world, placement):
        for cluster, value in _scores(world, placement, ranked, own, name, missing, weight).items():
            totals[cluster] += weight * value
    order = sorted(totals, key=lambda name: (-totals[name], name))
    wanted = placement.spec.number_of_clusters
    names = order if wanted is None else order[:wanted]
    return Outcome(
        [each.name for each in candidates],
        [each.name for each in matched],
        [each.name for each in tolerated],
        totals,
        names,
        0 if wanted is None else wanted - len(names),
    )


def _candidates(world: World, placement: Placement) -> Iterable[ManagedCluster]:
    bound = {
        each.name
        for each in world.all(ManagedClusterSetBinding)
        if each.namespace == placement.namespace and each.name in world.sets
    }
    wanted = bound & set(placement.spec.cluster_sets) if placement.spec.cluster_sets else bound
    for cluster in world.all(ManagedCluster):
        if not cluster.terminating and any(_member(world.sets[name], cluster) for name in wanted):
            yield cluster


def _member(found: ManagedClusterSet, cluster: ManagedCluster) -> bool:
    selector = found.spec.cluster_selector
    if selector.selector_type == "LabelSelector":
        return selector.label_selector is not None and _selects(selector.label_selector, cluster.labels)
    return cluster.labels.get(SET_LABEL) == found.name


def _selects(selector: LabelSelector, values: Mapping[str, str]) -> bool:
    if any(values.get(key) != value for key, value in selector.match_labels.items()):
        return False
    for each in selector.match_expressions:
        value = values.get(each.key)
        matches = {
            "In": value in each.values,
            "NotIn": value not in each.values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[each.operator]
        if not matches:
            return False
    return True


def _matches(world: World, placement: Placement, cluster: ManagedCluster) -> bool:
    for predicate in placement.spec.predicates:
        required = predicate.required_cluster_selector
        if (
            _selects(required.label_selector, cluster.labels)
            and _selects(required.claim_selector.as_labels, cluster.claims)
            and all(EXPRESSIONS[each](world, cluster) for each in required.cel_selector.cel_expressions)
        ):
            return True
    return not placement.spec.predicates


def _tolerated(world: World, placement: Placement, cluster: ManagedCluster, held: bool) -> bool:
    for taint in cluster.spec.taints:
        if taint.effect == "PreferNoSelect" or (taint.effect == "NoSelectIfNew" and held):
            continue
        if not _covered(world, placement, taint):
            return False
    return True


def _covered(world: World, placement: Placement, taint: Any) -> bool:
    for each in placement.spec.tolerations:
        right = (not each.effect or each.effect == taint.effect) and (not each.key or each.key == taint.key)
        if not right or (each.operator != "Exists" and each.value != taint.value):
            continue
        if each.toleration_seconds is None or world.now < taint.added + each.toleration_seconds:
            return True
    return False


def _weights(world: World, placement: Placement) -> list[tuple[str, int, str]]:
    policy = placement.spec.prioritizer_policy
    built_in = {} if policy.mode == "Exact" else {"Balance": 1, "Steady": 1}
    if not world.ocm:
        built_in["TaintToleration"] = 3
    others = []
    for config in policy.configurations:
        coordinate = config.coordinate
        assert coordinate is not None
        if coordinate.add_on is None:
            built_in[coordinate.built_in] = config.weight
        else:
            name = f"{coordinate.add_on.resource_name}/{coordinate.add_on.score_name}"
            others.append((name, config.weight, coordinate.when_missing))
    return [(name, weight, "") for name, weight in built_in.items() if weight] + [each for each in others if each[1]]


def _excluded(world: World, placement: Placement, cluster: ManagedCluster) -> bool:
    return not world.ocm and any(
        missing == "exclude" and _valid(world, cluster.name, name) is None
        for name, _, missing in _weights(world, placement)
    )


def _valid(world: World, cluster: str, name: str) -> int | None:
    resource, _, score = name.partition("/")
    found = world.score_object(cluster, resource)
    if found is None or found.valid_until < world.now:
        return None
    return next((each.value for each in found.status.scores if each.name == score), None)


def _scores(
    world: World,
    placement: Placement,
    clusters: list[ManagedCluster],
    own: list[str],
    name: str,
    missing: str,
    weight: int,
) -> dict[str, int]:
    match name:
        case "Balance":
            return _balance(world, placement, clusters)
        case "Steady":
            return {each.name: 100 if each.name in own else 0 for each in clusters}
        case "TaintToleration":
            return {each.name: -100 if _avoided(world, placement, each) else 0 for each in clusters}
        case "ResourceAllocatableCPU":
            return _allocatable(clusters, "cpu")
        case "ResourceAllocatableMemory":
            return _allocatable(clusters, "memory")
    instead = (-100 if weight > 0 else 100) if missing == "min" and not world.ocm else 0
    found = {each.name: _valid(world, each.name, name) for each in clusters}
    return {cluster: instead if value is None else value for cluster, value in found.items()}


def _avoided(world: World, placement: Placement, cluster: ManagedCluster) -> bool:
    return any(each.effect == "PreferNoSelect" and not _covered(world, placement, each) for each in cluster.spec.taints)


def _balance(world: World, placement: Placement, clusters: list[ManagedCluster]) -> dict[str, int]:
    others = [each for each in world.all(PlacementDecision) if each.placement != placement.key]
    counts = Counter(name for each in others for name in each.cluster_names)
    most = max(counts.values(), default=0)
    if not most:
        return {each.name: 100 for each in clusters}
    return {each.name: 2 * math.trunc(100 * (0.5 - counts[each.name] / most)) for each in clusters}


def _allocatable(clusters: list[ManagedCluster], resource: str) -> dict[str, int]:
    known = {
        each.name: quantity.approximate(each.status.allocatable[resource])
        for each in clusters
        if resource in each.status.allocatable and resource in each.status.capacity
    }
    if not known:
        return {}
    least, most = min(known.values()), max(known.values())
    if least == most:
        return dict.fromkeys(known, 100)
    return {name: math.trunc(((x - least) / (most - least) - 0.5) * 2.0 * 100.0) for name, x in known.items()}
