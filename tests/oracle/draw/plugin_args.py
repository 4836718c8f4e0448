"""Arguments of plugins, as they stand under `pluginConfig` of a profile."""

from __future__ import annotations

from typing import Any

from tests.oracle.draw.labels import HOST, ZONE
from tests.oracle.draw.node_affinity import node_affinity
from tests.oracle.draw.quantities import EXTENDED
from tests.oracle.draw.scenario import Draw, Obj


def args_of(kind: str, **values: Any) -> Obj:
    return {"name": kind, "args": {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": kind + "Args", **values}}


def resource_specs(d: Draw, weights: bool = True) -> list[Obj]:
    out = []
    for name in d.some(["cpu", "memory", "ephemeral-storage", *EXTENDED[:2], "hugepages-2Mi", "pods"], 1, 4):
        spec: Obj = {"name": name}
        if weights and d.chance(0.9):
            spec["weight"] = d.one(1, 2, 3, 5, 10, 100, d.randint(1, 100))
        out.append(spec)
    return out


def fit_args(d: Draw) -> Obj:
    values: Obj = {}
    kind = d.one("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
    strategy: Obj = {"type": kind}
    if d.chance(0.8):
        strategy["resources"] = resource_specs(d)
    if kind == "RequestedToCapacityRatio":
        strategy["requestedToCapacityRatio"] = {"shape": utilization_shape(d)}
    if d.chance(0.85):
        values["scoringStrategy"] = strategy
    if d.chance(0.2):
        values["ignoredResources"] = d.some(EXTENDED, 1, 2)
    if d.chance(0.2):
        values["ignoredResourceGroups"] = d.some(["nvidia.com", "vendor.example.org", "other.example"], 1, 2)
    return args_of("NodeResourcesFit", **values)


def utilization_shape(d: Draw) -> list[Obj]:
    """Points of rising utilization, mostly from 0 to 100, with scores that go up and down."""
    points = sorted(d.sample(range(1, 100), d.randint(0, 3)))
    if d.chance(0.8):
        points = [0, *points]
    if d.chance(0.8) or not points:
        points = [*points, 100]
    return [{"utilization": u, "score": d.randint(0, 10)} for u in points]


def balanced_args(d: Draw) -> Obj:
    specs = resource_specs(d, weights=False)
    for spec in specs:
        if d.chance(0.5):
            spec["weight"] = 1
    return args_of("NodeResourcesBalancedAllocation", resources=specs)


def affinity_args(d: Draw) -> Obj:
    values: Obj = {}
    if d.chance(0.8):
        values["hardPodAffinityWeight"] = d.one(0, 1, 5, 50, 100)
    if d.chance(0.5):
        values["ignorePreferredTermsOfExistingPods"] = d.chance(0.7)
    return args_of("InterPodAffinity", **values)


def node_affinity_args(d: Draw, pools: dict[str, list[str]]) -> Obj:
    return args_of("NodeAffinity", addedAffinity=node_affinity(d, pools, 0.7, 0.6, odd=False))


def spread_args(d: Draw) -> Obj:
    if d.chance(0.15):
        return args_of("PodTopologySpread", defaultingType="System")
    seen: dict[tuple[str, str], Obj] = {}
    for _ in range(d.randint(0, 3)):
        c = {
            "maxSkew": d.one(1, 2, 4),
            "topologyKey": d.one(HOST, ZONE, "rack"),
            "whenUnsatisfiable": d.one("DoNotSchedule", "ScheduleAnyway"),
        }
        seen[c["topologyKey"], c["whenUnsatisfiable"]] = c
    return args_of("PodTopologySpread", defaultingType="List", defaultConstraints=list(seen.values()))


def preemption_args(d: Draw) -> Obj:
    return args_of(
        "DefaultPreemption",
        minCandidateNodesPercentage=d.one(0, 10, 100),
        minCandidateNodesAbsolute=d.one(1, 5, 100),
    )
