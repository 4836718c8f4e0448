"""Affinity and anti-affinity to pods: terms over every topology, with namespaces by name, by label, and all of them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.draw.labels import TOPOLOGIES, selector, unused_keys
from tests.oracle.draw.scenario import NAMESPACES, Draw, Obj


def add_affinity(
    d: Draw,
    spec: Obj,
    own: dict[str, str] | None = None,
    required: float = 0.5,
    preferred: float = 0.4,
    topologies: Sequence[str] = TOPOLOGIES,
) -> None:
    affinity = spec.setdefault("affinity", {})
    for kind in d.some(["podAffinity", "podAntiAffinity"], 1, 2):
        part: Obj = {}
        if d.chance(required):
            part["requiredDuringSchedulingIgnoredDuringExecution"] = [
                affinity_term(d, own, topologies) for _ in range(d.one(1, 1, 2))
            ]
        if d.chance(preferred):
            part["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": d.one(1, 100, d.randint(1, 100)), "podAffinityTerm": affinity_term(d, own, topologies)}
                for _ in range(d.one(1, 1, 2))
            ]
        if part:
            affinity[kind] = part
    if not affinity:
        del spec["affinity"]


def affinity_term(d: Draw, own: dict[str, str] | None, topologies: Sequence[str]) -> Obj:
    term: Obj = {"topologyKey": d.choice(topologies)}
    sel = selector(d, own)
    if sel is not None:
        term["labelSelector"] = sel
    kind = d.random()
    if kind < 0.2:
        term["namespaces"] = d.some(list(NAMESPACES), 1, 2)
    elif kind < 0.32:
        term["namespaceSelector"] = {}
    elif kind < 0.5:
        term["namespaceSelector"] = namespace_selector(d)
        if d.chance(0.3):
            term["namespaces"] = d.some(list(NAMESPACES), 1, 2)
    if sel is not None and own is not None and d.chance(0.15):
        free = unused_keys(sel)
        if free:
            term[d.one("matchLabelKeys", "mismatchLabelKeys")] = d.some(free, 1, 1)
    return term


def namespace_selector(d: Draw) -> Obj:
    by_env: Obj = {"key": "env", "operator": d.one("Exists", "DoesNotExist")}
    by_team: Obj = {"key": "team", "operator": d.one("In", "NotIn"), "values": d.some(["a", "b", "c"], 1, 2)}
    chosen: Obj = d.one(
        {"matchLabels": {"team": "a"}},
        {"matchLabels": {"env": "prod"}},
        {"matchExpressions": [by_env]},
        {"matchExpressions": [by_team]},
    )
    return chosen
