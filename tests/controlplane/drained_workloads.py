"""Workloads that are drawn for drains: sizes, spreading, anti-affinity, selectors, budgets, a DaemonSet, a bare pod."""

from __future__ import annotations

import random
from typing import Any

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SIZES = ("250m", "500m", "750m", "1", "1500m")


def drawn(seed: int) -> list[dict[str, Any]]:
    """Return the objects of a namespace."""
    draw = random.Random(f"drains {seed}")
    found = [_workload(f"web-{number}", "Deployment", draw) for number in range(5)]
    found.append(_workload("db", "StatefulSet", draw))
    for each in draw.sample(found, 2):
        found.append(_budget(each, draw))
    found.append(_of("DaemonSet", "agent", _spec("100m"), {}))
    found.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}, "spec": _spec(draw.choice(SIZES))})
    return found


def _workload(name: str, kind: str, draw: random.Random) -> dict[str, Any]:
    spec, labels = _spec(draw.choice(SIZES)), {"app": name}
    selector = {"matchLabels": labels}
    match draw.choice(("plain", "plain", "apart", "spread", "zone")):
        case "apart":
            term = {"topologyKey": HOSTNAME, "labelSelector": selector}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        case "spread":
            rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
            spec["topologySpreadConstraints"] = [rule]
        case "zone":
            spec["nodeSelector"] = {ZONE: f"zone-{draw.randrange(3)}"}
    more: dict[str, Any] = {"replicas": draw.randint(1, 5)}
    if kind == "StatefulSet":
        more |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return _of(kind, name, spec, more)


def _of(kind: str, name: str, spec: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **more},
    }  # fmt: skip


def _spec(cpu: str) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "64Mi"}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
    return {"containers": [container], "terminationGracePeriodSeconds": 0}


def _budget(workload: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    metadata = {"name": workload["metadata"]["name"]}
    rule = draw.choice(({"maxUnavailable": 1}, {"maxUnavailable": 0}, {"minAvailable": workload["spec"]["replicas"]}))
    spec = {"selector": {"matchLabels": workload["metadata"]["labels"]}, **rule}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
