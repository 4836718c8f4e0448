"""Pods: the incoming pod, bound pods, and pending pods with a nominated node."""

from __future__ import annotations

from tests.oracle.draw.containers import add_ports, container, enrich_resources
from tests.oracle.draw.labels import pod_labels
from tests.oracle.draw.pod_affinity import add_affinity
from tests.oracle.draw.scenario import Obj, Scenario
from tests.oracle.draw.spreading import constraint

DELETED = "2026-02-13T07:51:19Z"


def incoming(s: Scenario) -> Obj:
    d = s.d
    labels = pod_labels(d)
    meta: Obj = {
        "name": "incoming",
        "uid": "u0",
        "namespace": d.one("default", "default", "default", "prod", "bare"),
        "labels": labels,
    }
    s.pod = {"metadata": meta, "spec": {"containers": [container(d, "c0")]}}
    return s.pod


def existing(s: Scenario, node: str | None) -> Obj:
    """A pod on the node, or a pending one; `s.alike` of them have labels and namespace of the incoming pod."""
    d = s.d
    s.serial += 1
    labels: dict[str, str] | None = None
    ns: str | None = None
    if d.chance(s.alike):
        labels = {k: v for k, v in s.pod["metadata"]["labels"].items() if k == "app" or d.chance(0.7)}
    if d.chance(s.alike):
        ns = s.pod["metadata"]["namespace"]
    labels = pod_labels(d) if labels is None else labels
    pod: Obj = {
        "metadata": {
            "name": f"{labels.get('app', 'pod')}-{s.serial}",
            "uid": f"u{s.serial}",
            "labels": labels,
            "namespace": ns or d.one("default", "default", "default", "prod", "staging", "team-b", "bare"),
        },
        "spec": {"containers": [container(d, "c0")]},
        "status": {},
    }
    if not labels:
        del pod["metadata"]["labels"]
    if node is not None:
        pod["spec"]["nodeName"] = node
        pod["status"]["startTime"] = start_time(s, node)
    return s.add("pods", pod)


def start_time(s: Scenario, node: str) -> str:
    """A start time no other pod of the node has; nodes may share them."""
    taken = s.starts.setdefault(node, set())
    while True:
        t = s.d.randint(0, 200) * s.d.one(1, 3600)
        if t not in taken:
            taken.add(t)
            day, rest = divmod(t, 86400)
            return f"2026-01-{10 + day:02d}T{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}Z"


def fill(s: Scenario, low: int = 0, high: int = 3, priority: bool = False, rich: float = 0.1) -> None:
    """Bound pods on every node, and a few on a node that does not exist."""
    d = s.d
    names = s.node_names()
    for node in names + (["ghost-node"] if d.chance(0.1) else []):
        for _ in range(d.randint(low, high)):
            pod = existing(s, node)
            if priority or d.chance(0.2):
                pod["spec"]["priority"] = d.one(0, 0, 10, 100, 500, 1000, -10, 2000)
            enrich_resources(d, pod["spec"], rich)
            if d.chance(0.05):
                pod["metadata"]["deletionTimestamp"] = DELETED
            if d.chance(0.04):
                pod["status"]["phase"] = d.one("Succeeded", "Failed")
            elif d.chance(0.03):
                pod["status"]["phase"] = d.one("Pending", "Unknown")


def nominate(s: Scenario, low: int, high: int) -> None:
    """Pending pods with a nominated node."""
    d = s.d
    for _ in range(d.randint(low, high)):
        pod = existing(s, None)
        base = s.pod.get("spec", {}).get("priority", 0)
        pod["spec"]["priority"] = d.one(base, base + 1, base - 1, base + 1000, 0)
        pod["status"]["nominatedNodeName"] = d.choice([*s.node_names(), "ghost-node"])
        kind = d.random()
        if kind < 0.2:
            add_ports(d, pod["spec"], 1, 2)
        elif kind < 0.45:
            add_affinity(d, pod["spec"], required=0.8)
        elif kind < 0.55:
            pod["spec"]["topologySpreadConstraints"] = [constraint(d, pod["metadata"].get("labels", {}))]
        if d.chance(0.1):
            pod["metadata"]["deletionTimestamp"] = DELETED
    if d.chance(0.2):
        existing(s, None)  # pending, not nominated
