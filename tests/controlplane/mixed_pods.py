"""Pods of mixed kinds, as scheduling sees them: requests, selectors, affinity, spreading, taints, ports, priority."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
TAINT = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
SOFT_TAINT = {"key": "old", "value": "yes", "effect": "PreferNoSchedule"}
PRIORITIES = {"urgent": 1000, "important": 100}
GROUPS = 12  # of each kind that has a selector
NEVER = 40  # one of so many pods fits nowhere

Spec = dict[str, Any]


def priority_classes(policy: str = "Never") -> list[dict[str, Any]]:
    """`policy`: whether their pods evict others."""
    about = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "preemptionPolicy": policy}
    return [{**about, "metadata": {"name": name}, "value": value} for name, value in PRIORITIES.items()]


def services() -> list[dict[str, Any]]:
    """Pods of a Service are spread by default."""
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"web-{group}"},
         "spec": {"selector": {"app": f"web-{group}"}, "ports": [{"port": 80}]}}
        for group in range(GROUPS)
    ]  # fmt: skip


def pods(number: int, seed: int, size: int = 1) -> Iterator[dict[str, Any]]:
    """Yield so many pods in random order of their kinds; the requests of a larger size are so many times as large."""
    draw = random.Random(seed)
    for index in range(number):
        kind = draw.choice(KINDS)
        app = f"{kind.__name__.strip('_').replace('_', '-')}-{draw.randrange(GROUPS)}"
        spec: Spec = {"containers": [_container(draw, size)]}
        kind(spec, app, draw)
        if index % NEVER == NEVER - 1:
            spec["containers"][0]["resources"]["requests"]["cpu"] = "10000"
        if draw.random() < 0.1:
            spec["priorityClassName"] = draw.choice([*PRIORITIES])
        metadata = {"name": f"{app}-{index}", "labels": {"app": app}}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(draw: random.Random, size: int) -> dict[str, Any]:
    cpu, memory = draw.choice((10, 25, 50, 100)) * size, draw.choice((16, 32, 64, 128)) * size
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    return {"name": "main", "image": "pause", "resources": {"requests": requests} if draw.random() < 0.9 else {
        "requests": {}}}  # fmt: skip


def web(spec: Spec, app: str, draw: random.Random) -> None:
    """Plain pods, spread by default if a Service selects them."""


def zonal(spec: Spec, app: str, draw: random.Random) -> None:
    match = {"key": ZONE, "operator": "In", "values": draw.sample(["zone-0", "zone-1", "zone-2"], draw.randint(1, 2))}
    required = {"nodeSelectorTerms": [{"matchExpressions": [match]}]}
    spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def drawn(spec: Spec, app: str, draw: random.Random) -> None:
    """Drawn to a zone, not tied to it."""
    match = {"key": ZONE, "operator": "In", "values": [f"zone-{draw.randrange(3)}"]}
    preferred = [{"weight": draw.randint(1, 100), "preference": {"matchExpressions": [match]}}]
    spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def spread(spec: Spec, app: str, draw: random.Random) -> None:
    spec["topologySpreadConstraints"] = [
        _constraint(app, ZONE, "DoNotSchedule"),
        _constraint(app, HOST, "ScheduleAnyway"),
    ]


def loose(spec: Spec, app: str, draw: random.Random) -> None:
    spec["topologySpreadConstraints"] = [_constraint(app, HOST, "ScheduleAnyway")]


def _constraint(app: str, key: str, what: str) -> Spec:
    selector = {"matchLabels": {"app": app}}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": what, "labelSelector": selector}


def apart(spec: Spec, app: str, draw: random.Random) -> None:
    term = {"podAffinityTerm": _term(app, HOST), "weight": draw.randint(1, 100)}
    spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def alone(spec: Spec, app: str, draw: random.Random) -> None:
    """At most one of them on a node; some of a large number wait."""
    spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app, HOST)]}}


def together(spec: Spec, app: str, draw: random.Random) -> None:
    spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app, ZONE)]}}


def _term(app: str, key: str) -> Spec:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def tolerant(spec: Spec, app: str, draw: random.Random) -> None:
    spec["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]


def ported(spec: Spec, app: str, draw: random.Random) -> None:
    spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8000 + draw.randrange(GROUPS)}]


KINDS = (web, zonal, drawn, spread, loose, apart, alone, together, tolerant, ported)
