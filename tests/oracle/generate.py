#!/usr/bin/env python3
"""Draw random scheduling scenarios in the form of the golden records.

    generate.py --category preemption --count 400 --seed 1 | recorder -admit -drop

The same arguments always give the same scenarios. Objects are written the way
a user would write them; ``recorder -admit`` gives them the form an API server
stores, and turns away what an API server would turn away.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Obj = dict[str, Any]

APPS = ["web", "api", "db", "cache", "batch", "ingest", "auth", "worker"]
TIERS = ["front", "back", "mid"]
NAMESPACES: dict[str, dict[str, str]] = {
    "default": {},
    "prod": {"env": "prod", "team": "a"},
    "staging": {"env": "staging", "team": "a"},
    "team-b": {"team": "b"},
    "bare": {},
}
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
HOST = "kubernetes.io/hostname"
TOPOLOGIES = [HOST, ZONE, "rack", REGION, "pool", "missing-key"]
EXTENDED = ["nvidia.com/gpu", "vendor.example.org/foo", "example.com/widget", "vendor.example.org/bar"]
PLUGINS = [
    "SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity",
    "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
    "PodTopologySpread", "InterPodAffinity", "DynamicResources", "DefaultPreemption",
    "NodeResourcesBalancedAllocation", "ImageLocality", "DefaultBinder", "NodeDeclaredFeatures",
]  # fmt: skip
FILTERS = [
    "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
    "DynamicResources", "NodeDeclaredFeatures",
]  # fmt: skip
PREFILTERS = [
    "NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding",
    "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures",
]  # fmt: skip
SCORERS = [
    "TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity",
    "NodeResourcesBalancedAllocation", "ImageLocality", "DynamicResources",
]  # fmt: skip
PRESCORERS = [
    "TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
]  # fmt: skip
TAINT_KEYS = [
    "dedicated", "gpu", "spot", "zone-drain", "example.com/maintenance", "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable", "node.kubernetes.io/memory-pressure",
]  # fmt: skip
EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
IMAGES = [
    "nginx", "nginx:latest", "nginx:1.0", "docker.io/library/nginx:1.0", "registry.example.com/web:1.4",
    "registry.example.com:5000/team/api", "registry.example.com:5000/team/api:v2", "gcr.io/p/model:latest",
    "quay.io/x/tool", "Registry.Example.com/Odd:TAG",
    "registry.example.com/db@sha256:" + "1" * 64, "registry.example.com/db:2@sha256:" + "2" * 64,
]  # fmt: skip


class Draw(random.Random):
    """A random source with the shapes that scenarios are made of."""

    def chance(self, p: float) -> bool:
        return self.random() < p

    def one(self, *items: Any) -> Any:
        return self.choice(items)

    def text(self, *items: str) -> str:
        return self.choice(items)

    def some(self, items: Sequence[Any], low: int, high: int) -> list[Any]:
        n = min(self.randint(low, high), len(items))
        return self.sample(list(items), n)


class Scenario:
    """One scenario while it is being drawn."""

    def __init__(self, name: str, category: str, seed: int, draw: Draw) -> None:
        self.name, self.category, self.seed, self.d = name, category, seed, draw
        self.config: Obj | None = None
        self.cluster: dict[str, list[Obj]] = {"namespaces": [], "nodes": [], "pods": []}
        self.pod: Obj = {}
        self.serial = 0
        self.starts: dict[str, set[int]] = {}
        self.alike = 0.0  # how often an existing pod resembles the incoming one
        for ns, labels in NAMESPACES.items():
            if ns != "bare" and draw.chance(0.04):
                continue  # pods may live in a namespace that was not listed yet
            meta: Obj = {"name": ns, "labels": {"kubernetes.io/metadata.name": ns, **labels}}
            self.cluster["namespaces"].append({"metadata": meta, "spec": {}})

    def add(self, kind: str, obj: Obj) -> Obj:
        self.cluster.setdefault(kind, []).append(obj)
        return obj

    @property
    def nodes(self) -> list[Obj]:
        return self.cluster["nodes"]

    def node_names(self) -> list[str]:
        return [n["metadata"]["name"] for n in self.nodes]

    def line(self) -> Obj:
        return {
            "id": self.name,
            "category": self.category,
            "seed": self.seed,
            "config": self.config,
            "cluster": self.cluster,
            "pod": self.pod,
        }


# ---------------------------------------------------------------- quantities


def cpu(d: Draw) -> str:
    return d.text("100m", "250m", "0.5", "1", "333m", "1500m", "2", "50m", "1m", "0.1", "700m", "1e0", "0", "0.0015")


def memory(d: Draw) -> str:
    return d.text(
        "128Mi",
        "256Mi",
        "512Mi",
        "1Gi",
        "100M",
        "300M",
        "1.5Gi",
        "2Gi",
        "123456789",
        "1e9",
        "0.5Gi",
        "700Mi",
        "64Mi",
        "128974848000m",
        "1",
        "0",
        "200e6",
    )


def storage(d: Draw) -> str:
    return d.text("1Gi", "500M", "10Gi", "100Mi", "2e9", "0")


def allocatable(d: Draw, odd: float = 0.15) -> Obj:
    out: Obj = {
        "cpu": d.one("2", "4", "8", "3920m", "1930m", "16", "1", "1500m"),
        "memory": d.one("4Gi", "8Gi", "16Gi", "14670000Ki", "3388360Ki", "32Gi", "7500M", "2Gi"),
        "ephemeral-storage": d.one("20Gi", "90Gi", "47093746742", "100G"),
        "pods": d.one("110", "58", "29", "10", "5"),
    }
    if d.chance(odd):
        key = d.choice(list(out))
        out[key] = {
            "cpu": d.one("0", "0.5", "1e3", "100u", "9223372036854775807m", "128", "1m"),
            "memory": d.one("0", "1e3", "100M", "1.5Gi", "8Ei", "1", "512m", "1Pi"),
            "ephemeral-storage": d.one("0", "1.5Gi", "1e12", "1"),
            "pods": d.one("0", "1", "1e3", "2k", "3"),
        }[key]
    if d.chance(odd / 2):
        del out[d.choice(list(out))]
    for name in EXTENDED:
        if d.chance(0.5):
            out[name] = d.one("0", "1", "2", "4", "8", "1k", "100")
    if d.chance(0.2):
        out["hugepages-2Mi"] = d.one("0", "128Mi", "1Gi")
    if d.chance(0.1):
        out["hugepages-1Gi"] = d.one("2Gi", "0", "8Gi")
    return out


# --------------------------------------------------------------------- nodes


def make_nodes(s: Scenario, low: int = 1, high: int = 9, odd: float = 0.06, taints: float = 0.06) -> None:
    d = s.d
    count = d.randint(low, high)
    style = d.one("worker{}", "node-{:02d}", "rack{}-host.example.com", "ip-10-0-{}-7", "n{}")
    zones = d.one(["az1", "az2"], ["eu-west-1a", "eu-west-1b", "eu-west-1c"], ["z"], ["a", "b", "c", "d"])
    same = d.chance(0.3) and allocatable(d, odd)
    for i in range(count):
        name = style.format(i)
        labels = {HOST: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": d.one("amd64", "arm64")}
        if not d.chance(0.08):
            labels[ZONE] = d.choice(zones)
            labels[REGION] = "region-" + labels[ZONE][:2] if d.chance(0.9) else "region-x"
        if d.chance(0.15):
            labels[BETA_ZONE] = d.choice(zones)
            labels[BETA_REGION] = "region-" + zones[0][:2]
        if d.chance(0.8):
            labels["rack"] = d.one("r0", "r1", "r2")
        if d.chance(0.8):
            labels["pool"] = d.one("general", "spot", "memory")
        if d.chance(0.5):
            labels["gen"] = d.one(
                "1",
                "2",
                "3",
                "10",
                "007",
                "1.5",
                "abc",
                "",
                "9223372036854775807",
                "9223372036854775808",
                "0",
                "1e3",
                "0x10",
                "1_000",
            )
        if d.chance(0.3):
            labels["ssd"] = d.one("true", "", "false")
        if d.chance(0.06):
            del labels[HOST]
        node: Obj = {
            "metadata": {"name": name, "labels": labels},
            "spec": {},
            "status": {"allocatable": dict(same) if same else allocatable(d, odd)},
        }
        if d.chance(taints):
            node["spec"]["taints"] = make_taints(d, 1, 2)
        if d.chance(taints / 2):
            node["spec"]["unschedulable"] = True
        if d.chance(0.1):
            node["status"]["declaredFeatures"] = sorted(
                d.some(
                    ["RestartAllContainersOnContainerExits", "InPlacePodVerticalScalingInitContainers", "Unknown"], 0, 3
                )
            )
        if d.chance(0.15):
            node["status"]["images"] = node_images(d)
        s.add("nodes", node)
    d.shuffle(s.nodes)


def make_taints(d: Draw, low: int, high: int) -> list[Obj]:
    out: dict[tuple[str, str], Obj] = {}
    for _ in range(d.randint(low, high)):
        taint: Obj = {"key": d.choice(TAINT_KEYS), "effect": d.choice(EFFECTS)}
        if d.chance(0.6):
            taint["value"] = d.one("db", "ml", "true", "1", "")
        out[taint["key"], taint["effect"]] = taint
    return list(out.values())


def node_images(d: Draw) -> list[Obj]:
    out = []
    for image in d.some(IMAGES, 1, 6):
        names = [image]
        if ":" not in image.split("/")[-1] and "@" not in image and d.chance(0.8):
            names = [image + ":latest"]
        if d.chance(0.3):
            names.append(image.split(":")[0].split("@")[0] + "@sha256:" + d.one("3", "4") * 64)
        size = d.one(
            23 * 1024**2,
            1000 * 1024**2,
            5 * 10**9,
            d.randint(1, 2 * 10**9),
            d.randint(1, 3 * 10**8),
            0,
            3 * 1000 * 1024**2,
        )
        out.append({"names": names, "sizeBytes": size})
    return out


# ---------------------------------------------------------------------- pods


def labels_of(d: Draw) -> dict[str, str]:
    out = {"app": d.choice(APPS[:5])}
    if d.chance(0.5):
        out["tier"] = d.choice(TIERS)
    if d.chance(0.3):
        out["version"] = d.one("v1", "v2")
    if d.chance(0.2):
        out["tenant"] = d.one("t1", "t2", "")
    return out


def requests(d: Draw, scale: str = "") -> Obj:
    kind = d.random()
    if kind < 0.15:
        return {}
    req: Obj = {}
    if d.chance(0.85):
        req["cpu"] = cpu(d)
    if d.chance(0.85):
        req["memory"] = memory(d)
    if d.chance(0.12):
        req["ephemeral-storage"] = storage(d)
    out: Obj = {}
    if d.chance(0.85) and req:
        out["requests"] = req
    elif req:
        out["limits"] = req  # the API fills in the requests
    if scale == "rich" or d.chance(0.06):
        if d.chance(0.2):
            out.setdefault("limits", {})[d.choice(EXTENDED)] = d.one("1", "2", "0", "4")
        if d.chance(0.07):
            out.setdefault("limits", {})["hugepages-2Mi"] = d.one("64Mi", "2Mi", "256Mi")
            out.setdefault("requests", {}).setdefault("cpu", "100m")
    return out


def container(d: Draw, name: str, scale: str = "") -> Obj:
    out: Obj = {"name": name, "image": d.choice([*IMAGES[4:6], "registry.example.com/app:1"])}
    res = requests(d, scale)
    if res:
        out["resources"] = res
    return out


def enrich_resources(d: Draw, spec: Obj, p: float) -> None:
    """Init containers, sidecars, overhead and pod-level resources."""
    if d.chance(p):
        spec["initContainers"] = []
        for i in range(d.randint(1, 3)):
            c = container(d, f"i{i}", "rich" if d.chance(0.3) else "")
            if d.chance(0.5):
                c["restartPolicy"] = "Always"
            spec["initContainers"].append(c)
    if d.chance(p):
        spec["containers"].append(container(d, "c1", "rich" if d.chance(0.3) else ""))
    if d.chance(p / 3):
        spec["runtimeClassName"] = "kata"
        spec["overhead"] = {k: v for k, v in (("cpu", cpu(d)), ("memory", memory(d))) if d.chance(0.8)}
    if d.chance(p / 2):
        level: Obj = {}
        if d.chance(0.8):
            level["cpu"] = d.one("2", "3", "4500m")
        if d.chance(0.7):
            level["memory"] = d.one("4Gi", "6Gi", "5e9")
        if level:
            spec["resources"] = {d.one("requests", "limits"): level}


def start_time(s: Scenario, node: str) -> str:
    """A start time no other pod of the node has; nodes may share them."""
    taken = s.starts.setdefault(node, set())
    while True:
        t = s.d.randint(0, 200) * s.d.one(1, 3600)
        if t not in taken:
            taken.add(t)
            day, rest = divmod(t, 86400)
            return (
                f"2026-01-{10 + day % 18:02d}T{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}Z"
                if day < 18
                else start_time(s, node)
            )


def existing(s: Scenario, node: str | None, labels: dict[str, str] | None = None, ns: str | None = None) -> Obj:
    d = s.d
    s.serial += 1
    if labels is None and d.chance(s.alike):
        labels = {k: v for k, v in s.pod["metadata"]["labels"].items() if k == "app" or d.chance(0.7)}
    if ns is None and d.chance(s.alike):
        ns = s.pod["metadata"]["namespace"]
    labels = labels_of(d) if labels is None else labels
    name = f"{labels.get('app', 'pod')}-{s.serial}"
    pod: Obj = {
        "metadata": {
            "name": name,
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


def fill(s: Scenario, low: int = 0, high: int = 3, priority: bool = False, rich: float = 0.1) -> None:
    """Bound pods on every node, and a few on a node nobody lists."""
    d = s.d
    names = s.node_names()
    for node in names + (["ghost-node"] if d.chance(0.1) else []):
        for _ in range(d.randint(low, high)):
            pod = existing(s, node)
            if priority or d.chance(0.2):
                pod["spec"]["priority"] = d.one(0, 0, 10, 100, 500, 1000, -10, 2000)
            enrich_resources(d, pod["spec"], rich)
            if d.chance(0.05):
                pod["metadata"]["deletionTimestamp"] = "2026-02-13T07:51:19Z"
            if d.chance(0.04):
                pod["status"]["phase"] = d.one("Succeeded", "Failed")
            elif d.chance(0.03):
                pod["status"]["phase"] = d.one("Pending", "Unknown")


def resize(d: Draw, pod: Obj) -> None:
    """The traces an in-place resize leaves in a pod's status."""
    status, spec = pod["status"], pod["spec"]

    def traces(containers: list[Obj]) -> list[Obj]:
        out = []
        for c in containers:
            row: Obj = {"name": c["name"], "image": c["image"], "imageID": "", "ready": True, "restartCount": 0}
            if d.chance(0.8):
                row["resources"] = {"requests": {"cpu": cpu(d), "memory": memory(d)}}
            if d.chance(0.6):
                row["allocatedResources"] = {"cpu": cpu(d), "memory": memory(d)}
            out.append(row)
        return out

    status["containerStatuses"] = traces(spec["containers"])
    if spec.get("initContainers") and d.chance(0.7):
        status["initContainerStatuses"] = traces(spec["initContainers"])
    kind = d.random()
    if kind < 0.35:
        reason = d.one("Infeasible", "Deferred")
        status["conditions"] = [
            {"type": "PodResizePending", "status": d.one("True", "True", "False"), "reason": reason}
        ]
    elif kind < 0.6:
        status["conditions"] = [{"type": "PodResizeInProgress", "status": "True"}]
    if spec.get("resources") and d.chance(0.6):
        status["resources"] = {"requests": {"cpu": cpu(d), "memory": memory(d)}}
        if d.chance(0.5):
            status["allocatedResources"] = {"cpu": cpu(d), "memory": memory(d)}


def incoming(s: Scenario, labels: dict[str, str] | None = None) -> Obj:
    d = s.d
    labels = labels_of(d) if labels is None else labels
    meta: Obj = {
        "name": "incoming",
        "uid": "u0",
        "namespace": d.one("default", "default", "default", "prod", "bare"),
        "labels": labels,
    }
    s.pod = {"metadata": meta, "spec": {"containers": [container(d, "c0")]}}
    return s.pod


def nominate(s: Scenario, low: int, high: int) -> None:
    """Pending pods that have been promised a node."""
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
            pod["spec"]["topologySpreadConstraints"] = [constraint(d, pod["metadata"]["labels"])]
        if d.chance(0.1):
            pod["metadata"]["deletionTimestamp"] = "2026-02-13T07:51:19Z"
    if d.chance(0.2):
        existing(s, None)  # pending, promised nothing


# ----------------------------------------------------------------- selectors


def selector(d: Draw, own: dict[str, str] | None = None) -> Obj | None:
    kind = d.random()
    if kind < 0.04:
        return {}
    if kind < 0.07:
        return None
    if own and kind < 0.5:
        return {"matchLabels": {k: own[k] for k in d.some(list(own), 1, 1)}}
    if kind < 0.65:
        return {"matchLabels": {"app": d.choice(APPS[:5])}}
    out: Obj = {"matchExpressions": [expression(d) for _ in range(d.randint(1, 2))]}
    if d.chance(0.2):
        out["matchLabels"] = {"tier": d.choice(TIERS)}
    return out


def expression(d: Draw) -> Obj:
    key = d.one("app", "tier", "version", "tenant", "absent")
    op = d.one("In", "NotIn", "Exists", "DoesNotExist")
    out: Obj = {"key": key, "operator": op}
    if op in ("In", "NotIn"):
        pool = {"app": APPS[:5], "tier": TIERS, "version": ["v1", "v2"]}.get(key, ["t1", "t2", ""])
        out["values"] = d.some(pool, 1, 3)
    return out


def label_pools(s: Scenario) -> dict[str, list[str]]:
    """The label values nodes have, and their names under metadata.name."""
    out: dict[str, list[str]] = {"metadata.name": s.node_names()}
    for node in s.nodes:
        for key, value in node["metadata"]["labels"].items():
            pool = out.setdefault(key, [])
            if value not in pool:
                pool.append(value)
    return out


def node_expression(d: Draw, pools: dict[str, list[str]], odd: bool) -> Obj:
    key = d.one(ZONE, ZONE, "rack", "rack", "pool", "pool", "gen", "gen", "ssd", "kubernetes.io/arch", HOST)
    if d.chance(0.08):
        key = "missing-key"
    op = (
        d.one("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt") if key != "gen" else d.one("Gt", "Lt", "In", "NotIn")
    )
    out: Obj = {"key": key, "operator": op}
    if op in ("In", "NotIn"):
        out["values"] = d.some([*pools.get(key, []), *pools.get(key, []), "x"], 1, 3)
        out["values"] = list(dict.fromkeys(out["values"]))
    elif op in ("Gt", "Lt"):
        out["values"] = [
            d.one("1", "2", "5", "0", "007", "10")
            if not odd or d.chance(0.85)
            else d.one("abc", "1.5", "", "9223372036854775808", "1e3", "0x1")
        ]
    return out


def node_term(d: Draw, pools: dict[str, list[str]], fields: float = 0.2, odd: bool = False) -> Obj:
    term: Obj = {}
    if d.chance(0.85):
        term["matchExpressions"] = [node_expression(d, pools, odd) for _ in range(d.randint(1, 2))]
    if d.chance(fields):
        term["matchFields"] = [
            {
                "key": "metadata.name",
                "operator": d.one("In", "In", "NotIn"),
                "values": [d.choice([*pools["metadata.name"], "absent-node"])],
            }
        ]
        if d.chance(0.2):
            term["matchFields"].append(
                {
                    "key": "metadata.name",
                    "operator": d.one("In", "NotIn"),
                    "values": [d.choice([*pools["metadata.name"], "absent-node"])],
                }
            )
    return term


def node_affinity(
    d: Draw,
    pools: dict[str, list[str]],
    required: float = 0.6,
    preferred: float = 0.6,
    fields: float = 0.2,
    odd: bool = True,
) -> Obj:
    """Odd integers of Gt and Lt are stored by the API in required terms, and are an error elsewhere."""
    out: Obj = {}
    if d.chance(required):
        terms = [node_term(d, pools, fields, odd) for _ in range(d.randint(1, 3))]
        if d.chance(fields / 2):
            terms = [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [n]}]}
                for n in d.some([*pools["metadata.name"], "absent-node"], 1, 3)
            ]
        out["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if d.chance(preferred):
        out["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": d.one(1, 100, d.randint(1, 100)), "preference": node_term(d, pools, fields / 2)}
            for _ in range(d.randint(1, 3))
        ]
    return out


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
        term["namespaceSelector"] = d.one(
            {"matchLabels": {"team": "a"}},
            {"matchLabels": {"env": "prod"}},
            {"matchExpressions": [{"key": "env", "operator": d.one("Exists", "DoesNotExist")}]},
            {
                "matchExpressions": [
                    {"key": "team", "operator": d.one("In", "NotIn"), "values": d.some(["a", "b", "c"], 1, 2)}
                ]
            },
        )
        if d.chance(0.3):
            term["namespaces"] = d.some(list(NAMESPACES), 1, 2)
    if sel is not None and own is not None and d.chance(0.15):
        used = {e["key"] for e in sel.get("matchExpressions", [])} | set(sel.get("matchLabels", {}))
        free = [k for k in ("tier", "version", "tenant", "absent") if k not in used]
        if free:
            term[d.one("matchLabelKeys", "mismatchLabelKeys")] = d.some(free, 1, 1)
    return term


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


def constraint(d: Draw, own: dict[str, str], hard: float = 0.5) -> Obj:
    out: Obj = {
        "maxSkew": d.one(1, 1, 2, 3, 5),
        "topologyKey": d.choice(TOPOLOGIES[:5] if d.chance(0.95) else TOPOLOGIES),
        "whenUnsatisfiable": "DoNotSchedule" if d.chance(hard) else "ScheduleAnyway",
    }
    sel = selector(d, own)
    if sel is not None:
        out["labelSelector"] = sel
    if out["whenUnsatisfiable"] == "DoNotSchedule" and d.chance(0.25):
        out["minDomains"] = d.one(1, 2, 3, 4, 8)
    if d.chance(0.2):
        out["nodeAffinityPolicy"] = d.one("Honor", "Ignore")
    if d.chance(0.3):
        out["nodeTaintsPolicy"] = d.one("Honor", "Ignore")
    if sel is not None and d.chance(0.15):
        used = {e["key"] for e in sel.get("matchExpressions", [])} | set(sel.get("matchLabels", {}))
        free = [k for k in ("tier", "version", "tenant", "absent") if k not in used]
        if free:
            out["matchLabelKeys"] = d.some(free, 1, 2)
    return out


def add_constraints(d: Draw, spec: Obj, own: dict[str, str], hard: float = 0.5, high: int = 3) -> None:
    seen: dict[tuple[str, str], Obj] = {}
    for _ in range(d.randint(1, high)):
        c = constraint(d, own, hard)
        seen[c["topologyKey"], c["whenUnsatisfiable"]] = c
    spec["topologySpreadConstraints"] = list(seen.values())


def tolerations(d: Draw, low: int, high: int) -> list[Obj]:
    out = []
    for _ in range(d.randint(low, high)):
        kind = d.random()
        t: Obj = {}
        if kind < 0.1:
            t = {"operator": "Exists"}
        elif kind < 0.45:
            t = {"key": d.choice(TAINT_KEYS), "operator": "Exists"}
        else:
            t = {"key": d.choice(TAINT_KEYS), "value": d.one("db", "ml", "true", "1", "")}
            if d.chance(0.7):
                t["operator"] = "Equal"
        if d.chance(0.6):
            t["effect"] = d.choice(EFFECTS)
        if t.get("effect") == "NoExecute" and d.chance(0.5):
            t["tolerationSeconds"] = d.one(0, 30, 300, -1)
        out.append(t)
    return out


def add_ports(d: Draw, spec: Obj, low: int, high: int) -> None:
    if d.chance(0.15):
        spec["hostNetwork"] = True
    taken: set[tuple[int, str, str]] = set()
    for c in spec["containers"] + [x for x in spec.get("initContainers", []) if d.chance(0.7)]:
        ports: list[Obj] = []
        for _ in range(d.randint(low, high)):
            p: Obj = {"containerPort": d.one(80, 443, 8080, 53)}
            if d.chance(0.85):
                p["hostPort"] = p["containerPort"]
                if not spec.get("hostNetwork") and d.chance(0.2):
                    p["hostPort"] = d.one(80, 8080)
            if d.chance(0.5):
                p["protocol"] = d.one("TCP", "UDP", "SCTP")
            if d.chance(0.5):
                p["hostIP"] = d.one("0.0.0.0", "127.0.0.1", "10.0.0.5", "::", "fd00::1")
            if spec.get("hostNetwork"):
                p["hostPort"] = p["containerPort"]
            key = (p.get("hostPort", 0), p.get("protocol", "TCP"), p.get("hostIP", ""))
            if key not in taken:
                ports.append(p)
            taken.add(key)
        if ports:
            c["ports"] = ports


# ------------------------------------------------------------ configurations


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
        points = sorted(d.sample(range(1, 100), d.randint(0, 3)))
        if d.chance(0.8):
            points = [0, *points]
        if d.chance(0.8) or not points:
            points = [*points, 100]
        strategy["requestedToCapacityRatio"] = {
            "shape": [{"utilization": u, "score": d.randint(0, 10)} for u in points]
        }
    if d.chance(0.85):
        values["scoringStrategy"] = strategy
    if d.chance(0.2):
        values["ignoredResources"] = d.some(EXTENDED, 1, 2)
    if d.chance(0.2):
        values["ignoredResourceGroups"] = d.some(["nvidia.com", "vendor.example.org", "other.example"], 1, 2)
    return args_of("NodeResourcesFit", **values)


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


def weighted(d: Draw, names: Sequence[str]) -> list[Obj]:
    out = []
    for n in names:
        item: Obj = {"name": n}
        if d.chance(0.6):
            item["weight"] = d.one(1, 2, 3, 5, 10, 100, d.randint(1, 50))
        out.append(item)
    return out


def plugin_sets(d: Draw) -> Obj:
    """Plugins switched on, off and around at single points and at all."""
    out: Obj = {}

    def disabled(point: str, names: Sequence[str]) -> None:
        out.setdefault(point, {}).setdefault("disabled", []).extend({"name": n} for n in names)

    kind = d.random()
    if kind < 0.18:
        disabled("filter", d.some(FILTERS, 1, 3))
    elif kind < 0.3:
        disabled("score", d.some(SCORERS, 1, 3))
    elif kind < 0.36:
        names = d.some(PRESCORERS, 1, 2)
        disabled("preScore", names)
        if d.chance(0.7):
            disabled("score", names)
    elif kind < 0.42:
        names = d.some(PREFILTERS, 1, 2)
        disabled("preFilter", names)
        if d.chance(0.7):
            disabled("filter", names)
    elif kind < 0.5:
        disabled("multiPoint", d.some([p for p in PLUGINS if p not in ("PrioritySort", "DefaultBinder")], 1, 4))
    elif kind < 0.62:
        # another order for everything
        names = [p for p in PLUGINS if p in ("PrioritySort", "DefaultBinder") or not d.chance(0.15)]
        d.shuffle(names)
        out["multiPoint"] = {"disabled": [{"name": "*"}], "enabled": weighted(d, names)}
    elif kind < 0.7:
        # another order for filters only
        names = d.some(FILTERS, 1, 6)
        out["filter"] = {"enabled": [{"name": n} for n in names]}
        if d.chance(0.5):
            out["filter"]["disabled"] = [{"name": "*"}]
    elif kind < 0.8:
        names = d.some(SCORERS, 1, 4)
        out["score"] = {"enabled": weighted(d, names)}
        out["score"]["disabled"] = [{"name": "*"}] if d.chance(0.6) else [{"name": n} for n in names if d.chance(0.5)]
        if not out["score"]["disabled"]:
            del out["score"]["disabled"]
    elif kind < 0.88:
        out["multiPoint"] = {"enabled": weighted(d, d.some(SCORERS, 1, 3))}
        if d.chance(0.4):
            out["multiPoint"]["disabled"] = [{"name": n["name"]} for n in out["multiPoint"]["enabled"]]
    elif kind < 0.93:
        disabled("postFilter", d.one(["*"], ["DefaultPreemption"], ["DynamicResources"]))
    elif kind < 0.95:
        disabled("preEnqueue", d.one(["*"], ["SchedulingGates"]))
    else:
        disabled("score", ["*"])
        if d.chance(0.5):
            out["score"]["enabled"] = weighted(d, d.some(SCORERS, 1, 1))
    return out


def configure(
    s: Scenario, pieces: Sequence[Callable[[Draw], Obj]], plugins: float = 0.3, profiles: float = 0.15
) -> None:
    d = s.d

    def profile(name: str | None) -> Obj:
        out: Obj = {}
        if name is not None:
            out["schedulerName"] = name
        conf = [piece(d) for piece in pieces]
        if conf:
            out["pluginConfig"] = conf
        if d.chance(plugins):
            out["plugins"] = plugin_sets(d)
        return out

    config: Obj = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    if d.chance(profiles):
        names = ["default-scheduler", "binpack", "other"][: d.randint(2, 3)]
        config["profiles"] = [profile(n) for n in names]
        chosen = d.choice(names)
        if chosen != "default-scheduler":
            s.pod["spec"]["schedulerName"] = chosen
    elif d.chance(0.05):
        config["profiles"] = [profile("binpack")]
        s.pod["spec"]["schedulerName"] = "binpack"
        for other in s.cluster["pods"]:
            other["spec"]["schedulerName"] = "binpack"
    else:
        config["profiles"] = [profile(d.one(None, "default-scheduler"))]
    if d.chance(0.1):
        config["percentageOfNodesToScore"] = d.one(0, 50, 100)
    if d.chance(0.1):
        config["parallelism"] = d.one(1, 8)
    s.config = config


# ---------------------------------------------------------------- categories


def resources(s: Scenario) -> None:
    d = s.d
    make_nodes(s, odd=0.35, taints=0.05)
    fill(s, 0, 3, rich=0.4)
    for pod in s.cluster["pods"]:
        if d.chance(0.25):
            resize(d, pod)
    pod = incoming(s)
    pod["spec"]["containers"] = [container(d, "c0", "rich")]
    enrich_resources(d, pod["spec"], 0.5)
    if d.chance(0.05):
        pod["spec"]["containers"][0].pop("resources", None)
    if d.chance(0.4):
        pod["spec"]["priority"] = d.one(0, 1000, 1000)
    if d.chance(0.15):
        nominate(s, 1, 2)
    if d.chance(0.25):
        configure(s, [fit_args], plugins=0.1)


def scoring(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 2, 9, odd=0.2, taints=0.08)
    fill(s, 0, 4, rich=0.3)
    pod = incoming(s)
    pod["spec"]["containers"] = [container(d, "c0", "rich")]
    enrich_resources(d, pod["spec"], 0.25)
    if d.chance(0.2):
        pod["spec"]["affinity"] = {"nodeAffinity": node_affinity(d, label_pools(s), 0.0, 1.0)}
    pieces: list[Callable[[Draw], Obj]] = [fit_args] if d.chance(0.9) else []
    if d.chance(0.4):
        pieces.append(balanced_args)
    configure(s, pieces, plugins=0.3)


def taints(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 1, 10)
    soft = d.chance(0.4)
    for node in s.nodes:
        if d.chance(0.75):
            node["spec"]["taints"] = make_taints(d, 1, 5)
            if soft and d.chance(0.8):
                for taint in node["spec"]["taints"]:
                    taint["effect"] = "PreferNoSchedule"
                node["spec"]["taints"] = list({t["key"]: t for t in node["spec"]["taints"]}.values())
        if d.chance(0.15):
            node["spec"]["unschedulable"] = True
            if d.chance(0.5):
                node["spec"].setdefault("taints", [])
                if not any(t["key"] == "node.kubernetes.io/unschedulable" for t in node["spec"]["taints"]):
                    node["spec"]["taints"].append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    fill(s, 0, 1)
    pod = incoming(s)
    pod["spec"]["tolerations"] = tolerations(d, 0, 6)
    if d.chance(0.2):
        pod["spec"]["tolerations"].append({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"})
    if d.chance(0.2):
        configure(s, [], plugins=0.8)


def node_affinities(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 1, 10)
    fill(s, 0, 1)
    pools = label_pools(s)
    pod = incoming(s)
    affinity = node_affinity(d, pools, required=0.5, preferred=0.75)
    if affinity and d.chance(0.9):
        pod["spec"]["affinity"] = {"nodeAffinity": affinity}
    if d.chance(0.3):
        pod["spec"]["nodeSelector"] = dict(
            d.some(
                [
                    ("pool", "general"),
                    ("rack", "r1"),
                    ("ssd", ""),
                    ("kubernetes.io/arch", "amd64"),
                    ("gen", "2"),
                    ("missing-key", "x"),
                ],
                1,
                2,
            )
        )
    if d.chance(0.3):
        configure(s, [lambda d: node_affinity_args(d, pools)], plugins=0.15, profiles=0.2)


def names_and_ports(s: Scenario) -> None:
    d = s.d
    make_nodes(s)
    fill(s, 0, 2)
    for pod in s.cluster["pods"]:
        if d.chance(0.7):
            add_ports(d, pod["spec"], 1, 3)
    pod = incoming(s)
    enrich_resources(d, pod["spec"], 0.2)
    if d.chance(0.8):
        add_ports(d, pod["spec"], 1, 3)
    if d.chance(0.15):
        pod["spec"]["nodeName"] = d.choice([*s.node_names(), "absent-node"])
    if d.chance(0.3):
        pod["spec"]["priority"] = d.one(0, 100, 3000)
    if d.chance(0.3):
        nominate(s, 1, 3)
    if d.chance(0.1):
        configure(s, [], plugins=1.0)


def inter_pod_affinity(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 1, 9, odd=0.03)
    pod = incoming(s)
    s.alike = d.one(0.1, 0.4, 0.7)
    fill(s, 0, 3)
    for other in s.cluster["pods"]:
        if d.chance(0.45):
            add_affinity(d, other["spec"], other["metadata"].get("labels"))
    if d.chance(0.85):
        add_affinity(d, pod["spec"], pod["metadata"]["labels"], topologies=TOPOLOGIES[:5])
    if d.chance(0.1):
        pod["metadata"]["labels"] = {}
    if d.chance(0.25):
        pod["spec"]["priority"] = d.one(0, 100, 3000)
    if d.chance(0.2):
        nominate(s, 1, 3)
    if d.chance(0.4):
        configure(s, [affinity_args], plugins=0.1)


def topology_spread(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 1, 12, odd=0.03, taints=0.2)
    pod = incoming(s)
    s.alike = d.one(0.2, 0.5, 0.8)
    fill(s, 0, 3)
    own = pod["metadata"]["labels"]
    if d.chance(0.7):
        add_constraints(d, pod["spec"], own)
    if d.chance(0.25):
        pod["spec"]["affinity"] = {"nodeAffinity": node_affinity(d, label_pools(s), 0.9, 0.2, 0.05)}
    if d.chance(0.2):
        pod["spec"]["nodeSelector"] = {"pool": d.one("general", "spot")}
    if d.chance(0.3):
        pod["spec"]["tolerations"] = tolerations(d, 1, 3)
    owners(s)
    if d.chance(0.25):
        pod["spec"]["priority"] = d.one(0, 100, 3000)
    if d.chance(0.15):
        nominate(s, 1, 3)
    if d.chance(0.35):
        configure(s, [spread_args], plugins=0.15)


def owners(s: Scenario) -> None:
    """Services and controllers that give the pod its default constraints."""
    d = s.d
    meta = s.pod["metadata"]
    ns, own = meta["namespace"], meta["labels"]
    for i in range(d.randint(0, 2)):
        sel: Obj | None = d.one(
            {"app": own.get("app", "web")},
            {"app": own.get("app", "web")},
            {"app": "nobody"},
            {"tier": "front"},
            {},
            None,
        )
        spec: Obj = {"clusterIP": "None"}
        if sel is not None:
            spec["selector"] = sel
        s.add("services", {"metadata": {"name": f"svc{i}", "namespace": d.one(ns, ns, "prod")}, "spec": spec})
    if d.chance(0.35):
        kind, plural, version = d.one(
            ("ReplicaSet", "replicaSets", "apps/v1"),
            ("StatefulSet", "statefulSets", "apps/v1"),
            ("ReplicationController", "replicationControllers", "v1"),
        )
        meta["ownerReferences"] = [
            {"apiVersion": version, "kind": kind, "name": "own", "uid": "own-uid", "controller": True}
        ]
        if d.chance(0.85):
            labels = d.one({"app": own.get("app", "web")}, dict(own), {"tier": d.choice(TIERS)})
            if kind == "ReplicationController":
                spec = {"selector": labels}
            else:
                spec = {"selector": {"matchLabels": labels}}
                if d.chance(0.3):
                    spec["selector"] = {"matchExpressions": [expression(d)]}
            if kind == "StatefulSet":
                spec["serviceName"] = "svc0"
            obj: Obj = {"metadata": {"name": "own", "namespace": ns, "uid": "own-uid"}, "spec": spec}
            if kind != "ReplicationController":
                obj["spec"]["template"] = {"metadata": {}, "spec": {"containers": []}}
            s.add(plural, obj)


def image_locality(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 1, 10, taints=0.05)
    for node in s.nodes:
        if d.chance(0.85):
            node["status"]["images"] = node_images(d)
    fill(s, 0, 1)
    pod = incoming(s)
    pod["spec"]["containers"] = [container(d, f"c{i}") for i in range(d.randint(1, 4))]
    if d.chance(0.4):
        pod["spec"]["initContainers"] = [container(d, f"i{i}") for i in range(d.randint(1, 2))]
        if d.chance(0.4):
            pod["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    for c in pod["spec"]["containers"] + pod["spec"].get("initContainers", []):
        c["image"] = d.choice(IMAGES)
    if d.chance(0.25):
        pod["spec"]["volumes"] = [
            {"name": f"img{i}", "image": {"reference": d.choice(IMAGES), "pullPolicy": "IfNotPresent"}}
            for i in range(d.randint(1, 2))
        ]
    if d.chance(0.15):
        configure(s, [], plugins=1.0)


PROVISIONERS = [
    "ebs.csi.aws.com",
    "rook-ceph.rbd.csi.ceph.com",
    "kubernetes.io/no-provisioner",
    "kubernetes.io/aws-ebs",
    "example.com/ext",
    "pd.csi.storage.gke.io",
]


def inline_volume(d: Draw, name: str) -> Obj:
    kind = d.one(
        "ebs",
        "gce",
        "iscsi",
        "rbd",
        "azure",
        "empty",
        "nfs",
        "cinder",
        "csi",
        "host",
        "ebs",
        "ebs",
        "gce",
        "gce",
        "iscsi",
        "iscsi",
        "rbd",
        "rbd",
    )
    vol: Obj = {"name": name}
    readonly = {"readOnly": True} if d.chance(0.4) else {}
    if kind == "ebs":
        vol["awsElasticBlockStore"] = {"volumeID": d.one("vol-0", "vol-1", "aws://us-east-1a/vol-2"), **readonly}
        if d.chance(0.2):
            vol["awsElasticBlockStore"]["partition"] = 1
    elif kind == "gce":
        vol["gcePersistentDisk"] = {"pdName": d.one("disk-0", "disk-1"), **readonly}
    elif kind == "iscsi":
        vol["iscsi"] = {
            "targetPortal": d.one("10.0.0.1:3260", "10.0.0.2:3260"),
            "lun": d.one(0, 1),
            "iqn": d.one("iqn.2026-01.example:s0", "iqn.2026-01.example:s1"),
            **readonly,
        }
    elif kind == "rbd":
        vol["rbd"] = {"monitors": d.some(["mon-a", "mon-b", "mon-c"], 1, 3), "image": d.one("img0", "img1"), **readonly}
        if d.chance(0.4):
            vol["rbd"]["pool"] = d.one("rbd", "pool2")
    elif kind == "azure":
        vol["azureDisk"] = {
            "diskName": "d0",
            "diskURI": d.one("/subscriptions/x/d0", "/subscriptions/x/d1"),
            "kind": "Managed",
        }
    elif kind == "cinder":
        vol["cinder"] = {"volumeID": d.one("c-0", "c-1")}
    elif kind == "nfs":
        vol["nfs"] = {"server": "nfs", "path": "/x"}
    elif kind == "csi":
        vol["csi"] = {"driver": d.one("secrets.example.com", "ebs.csi.aws.com")}
    elif kind == "host":
        vol["hostPath"] = {"path": "/var"}
    else:
        vol["emptyDir"] = {}
    return vol


def volume_source(d: Draw, handle: str, zones: list[str]) -> Obj:
    kind = d.random()
    if kind < 0.45:
        return {"csi": {"driver": d.one(*PROVISIONERS[:2], "pd.csi.storage.gke.io"), "volumeHandle": handle}}
    if kind < 0.6:
        return {"awsElasticBlockStore": {"volumeID": d.one(handle, f"vol-{handle}", f"aws://{zones[0]}/vol-{handle}")}}
    if kind < 0.7:
        return {"gcePersistentDisk": {"pdName": handle}}
    if kind < 0.75:
        return {"azureDisk": {"diskName": handle, "diskURI": "/subscriptions/x/" + handle, "kind": "Managed"}}
    if kind < 0.9:
        return {"local": {"path": "/mnt/" + handle}}
    return {"nfs": {"server": "nfs", "path": "/" + handle}}


def make_volume(s: Scenario, name: str, cls: str, claim: Obj | None, zones: list[str]) -> Obj:
    d = s.d
    spec: Obj = {
        "capacity": {"storage": d.one("5Gi", "10Gi", "20Gi", "1Gi", "1e10")},
        "accessModes": d.some(["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"], 1, 2),
        "persistentVolumeReclaimPolicy": "Retain",
        **volume_source(d, name, zones),
    }
    if cls:
        spec["storageClassName"] = cls
    if d.chance(0.08):
        spec["volumeMode"] = "Block"
    if "local" in spec or d.chance(0.3):
        key = d.one(HOST, HOST, ZONE, "rack", "gen")
        values = {HOST: s.node_names() or ["x"], ZONE: zones, "rack": ["r0", "r1"], "gen": ["1"]}[key]
        exp: Obj = {"key": key, "operator": d.one("In", "In", "In", "NotIn"), "values": d.some(values, 1, 3)}
        if key == "gen":
            exp["operator"] = d.one("Gt", "Lt", "In")
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [exp]}]}}
        if d.chance(0.15):
            spec["nodeAffinity"]["required"]["nodeSelectorTerms"].append(
                {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["spot"]}]}
            )
    labels: dict[str, str] = {}
    if d.chance(0.3):
        labels[d.one(ZONE, BETA_ZONE, ZONE)] = "__".join(d.some(zones, 1, 2))
    if d.chance(0.12):
        labels[d.one(REGION, BETA_REGION)] = d.one("region-az", "region-eu", "region-" + zones[0][:2])
    if d.chance(0.3):
        labels["media"] = d.one("ssd", "hdd")
    meta: Obj = {"name": name}
    if labels:
        meta["labels"] = labels
    if claim is not None:
        spec["claimRef"] = {
            "kind": "PersistentVolumeClaim",
            "name": claim["metadata"]["name"],
            "namespace": claim["metadata"]["namespace"],
        }
        if not d.chance(0.06):
            spec["claimRef"]["uid"] = claim["metadata"]["uid"]
    phase = "Bound" if claim is not None else d.one("Available", "Available", "Available", "Released", "Failed")
    return s.add("persistentVolumes", {"metadata": meta, "spec": spec, "status": {"phase": phase}})


def make_claim(s: Scenario, name: str, ns: str, cls: str | None, bound: str | None, full: bool) -> Obj:
    d = s.d
    spec: Obj = {
        "accessModes": d.one(["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteOncePod"], ["ReadOnlyMany"]),
        "resources": {"requests": {"storage": d.one("1Gi", "5Gi", "8Gi", "15Gi", "100Gi", "1e9")}},
    }
    if cls is not None:
        spec["storageClassName"] = cls
    meta: Obj = {"name": name, "namespace": ns, "uid": f"pvc-{ns}-{name}"}
    if bound:
        spec["volumeName"] = bound
    if bound and full:
        meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    if not bound:
        if d.chance(0.1) and s.nodes:
            meta["annotations"] = {"volume.kubernetes.io/selected-node": d.choice([*s.node_names(), "ghost-node"])}
        if d.chance(0.12):
            spec["selector"] = d.one(
                {"matchLabels": {"media": "ssd"}}, {"matchExpressions": [{"key": "media", "operator": "Exists"}]}
            )
        if d.chance(0.05):
            spec["volumeMode"] = "Block"
    phase = "Bound" if bound and full else "Lost" if d.chance(0.03) else "Pending"
    return s.add("persistentVolumeClaims", {"metadata": meta, "spec": spec, "status": {"phase": phase}})


def storage_world(s: Scenario) -> list[str]:
    """Classes, drivers, limits and capacities; the classes' names."""
    d = s.d
    zones = sorted({n["metadata"]["labels"][ZONE] for n in s.nodes if ZONE in n["metadata"]["labels"]}) or ["az1"]
    classes = []
    for i in range(d.randint(1, 4)):
        cls: Obj = {"metadata": {"name": f"class{i}"}, "provisioner": d.choice(PROVISIONERS)}
        if d.chance(0.95):
            cls["volumeBindingMode"] = d.one(
                "WaitForFirstConsumer", "WaitForFirstConsumer", "WaitForFirstConsumer", "Immediate"
            )
        if d.chance(0.25):
            cls["allowedTopologies"] = [
                {"matchLabelExpressions": [{"key": key, "values": d.some(values, 1, 2)}]}
                for key, values in d.some([(ZONE, zones), ("rack", ["r0", "r1"]), ("pool", ["spot", "general"])], 1, 2)
            ]
        if d.chance(0.15):
            cls["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
        classes.append(s.add("storageClasses", cls)["metadata"]["name"])
    for driver in d.some([*PROVISIONERS[:2], "example.com/ext".replace("/", "."), "pd.csi.storage.gke.io"], 0, 3):
        s.add("csiDrivers", {"metadata": {"name": driver}, "spec": {"storageCapacity": d.chance(0.6)}})
    if d.chance(0.7):
        for node in s.node_names():
            if d.chance(0.15):
                continue
            csi: Obj = {"metadata": {"name": node}, "spec": {"drivers": []}}
            if d.chance(0.5):
                csi["metadata"]["annotations"] = {
                    "storage.alpha.kubernetes.io/migrated-plugins": ",".join(
                        d.some(
                            [
                                "kubernetes.io/aws-ebs",
                                "kubernetes.io/gce-pd",
                                "kubernetes.io/azure-disk",
                                "kubernetes.io/cinder",
                            ],
                            0,
                            4,
                        )
                    )
                }
            for driver in d.some([*PROVISIONERS[:2], "pd.csi.storage.gke.io", "disk.csi.azure.com"], 0, 3):
                row: Obj = {"name": driver, "nodeID": node}
                if d.chance(0.85):
                    row["allocatable"] = {"count": d.one(0, 1, 2, 3, 5)}
                csi["spec"]["drivers"].append(row)
            s.add("csiNodes", csi)
    if d.chance(0.5):
        for i in range(d.randint(1, 6)):
            cap: Obj = {
                "metadata": {"name": f"cap-{i}", "namespace": "default"},
                "storageClassName": d.choice([*classes, "unknown"]),
            }
            if d.chance(0.9):
                cap["capacity"] = d.one("1Gi", "10Gi", "100Gi", "5e9", "0")
            if d.chance(0.3):
                cap["maximumVolumeSize"] = d.one("5Gi", "20Gi")
            if d.chance(0.9):
                cap["nodeTopology"] = d.one(
                    {},
                    {"matchLabels": {ZONE: d.choice(zones)}},
                    {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r0", "r1"]}]},
                    {"matchExpressions": [{"key": "pool", "operator": "Exists"}]},
                )
            s.add("csiStorageCapacities", cap)
    return classes


def claim_for(s: Scenario, name: str, ns: str, classes: list[str]) -> None:
    """A claim in one of the states claims are found in, and its volume."""
    d = s.d
    zones = sorted({n["metadata"]["labels"][ZONE] for n in s.nodes if ZONE in n["metadata"]["labels"]}) or ["az1"]
    cls = d.choice([*classes, *classes, "", "no-such-class"]) if d.chance(0.12) else d.choice(classes)
    kind = d.random()
    late = {
        c["metadata"]["name"]
        for c in s.cluster["storageClasses"]
        if c.get("volumeBindingMode") == "WaitForFirstConsumer"
    }
    if cls not in late and d.chance(0.75):
        kind = 0.0  # an unbound claim of an immediate class ends the search at once
    if kind < 0.55:
        claim = make_claim(s, name, ns, cls, "pv-" + name, full=True)
        if d.chance(0.98):
            make_volume(s, "pv-" + name, cls, claim, zones)
    elif kind < 0.59:
        claim = make_claim(s, name, ns, cls, "pv-" + name, full=False)
        make_volume(s, "pv-" + name, cls, claim if d.chance(0.5) else None, zones)
    elif kind < 0.98:
        claim = make_claim(s, name, ns, cls if d.chance(0.97) else None, None, full=False)
        for i in range(d.one(0, 0, 1, 2, 3)):
            prebound = claim if d.chance(0.1) else None
            make_volume(s, f"free-{name}-{i}", cls, prebound, zones)
    else:
        return  # a claim nobody made
    if d.chance(0.02):
        claim["metadata"]["deletionTimestamp"] = "2026-02-13T07:51:19Z"
        claim["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]


def volumes(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 1, 8, odd=0.03, taints=0.05)
    pod = incoming(s)
    s.alike = 0.5
    fill(s, 0, 3)
    classes = storage_world(s)
    ns = pod["metadata"]["namespace"]
    if d.chance(0.3):
        pod["spec"]["priority"] = d.one(0, 100, 3000)
    mounted = []
    # some scenarios are about inline disks, some about limits, the rest about everything
    mode = d.one("inline", "limits", "all", "all")
    first = len(s.cluster.get("persistentVolumeClaims", []))
    for i in range(d.randint(1, 3)):
        kind = {"inline": 1.0, "limits": 0.0}.get(mode, d.random())
        if kind < 0.65:
            name = f"c{i}"
            claim_for(s, name, ns, classes)
            mounted.append({"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}})
        elif kind < 0.75:
            template = {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": d.choice(classes),
                "resources": {"requests": {"storage": "1Gi"}},
            }
            mounted.append({"name": f"v{i}", "ephemeral": {"volumeClaimTemplate": {"spec": template}}})
            if d.chance(0.85):
                before = len(s.cluster.get("persistentVolumeClaims", []))
                claim_for(s, f"incoming-v{i}", ns, classes)
                for claim in s.cluster.get("persistentVolumeClaims", [])[before:]:
                    if d.chance(0.85):
                        claim["metadata"]["ownerReferences"] = [
                            {"apiVersion": "v1", "kind": "Pod", "name": "incoming", "uid": "u0", "controller": True}
                        ]
        else:
            mounted.append(inline_volume(d, f"v{i}"))
    pod["spec"]["volumes"] = mounted
    for i, other in enumerate(s.cluster["pods"]):
        if d.chance(0.7):
            here = other["metadata"]["namespace"]
            vols = []
            for j in range(d.randint(1, 2)):
                kind = {"inline": 0.0}.get(mode, d.random())
                if kind < 0.4:
                    vols.append(inline_volume(d, f"v{j}"))
                elif kind < 0.6 and here == ns:
                    vols.append({"name": f"v{j}", "persistentVolumeClaim": {"claimName": d.one("c0", "c1", "c2")}})
                else:
                    name = f"x{i}-{j}"
                    claim_for(s, name, here, classes)
                    vols.append({"name": f"v{j}", "persistentVolumeClaim": {"claimName": name}})
            other["spec"]["volumes"] = vols
    if mode == "limits":
        for claim in s.cluster.get("persistentVolumeClaims", [])[first:]:
            claim["spec"]["accessModes"] = ["ReadWriteOnce"]
        for volume in s.cluster.get("persistentVolumes", []):
            volume["metadata"].pop("labels", None)
            if "local" not in volume["spec"]:
                volume["spec"].pop("nodeAffinity", None)
        for csi in s.cluster.get("csiNodes", []):
            for driver in csi["spec"]["drivers"]:
                driver["allocatable"] = {"count": d.one(0, 1, 2)}
    claimed = [v["metadata"]["name"] for v in s.cluster.get("persistentVolumes", [])]
    for i in range(d.randint(0, 4)):
        if not claimed or not s.nodes:
            break
        source: Obj = {"persistentVolumeName": d.choice([*claimed, "gone"])}
        s.add(
            "volumeAttachments",
            {
                "metadata": {"name": f"va{i}"},
                "spec": {"attacher": d.one(*PROVISIONERS[:2]), "nodeName": d.choice(s.node_names()), "source": source},
                "status": {"attached": d.chance(0.5)},
            },
        )
    if d.chance(0.1):
        configure(s, [], plugins=1.0)


def misc(s: Scenario) -> None:
    d = s.d
    if d.chance(0.06):
        incoming(s)
        if d.chance(0.5):
            fill(s)
        if d.chance(0.5):
            configure(s, [], plugins=1.0)
        return
    make_nodes(s, 1, 8, odd=0.05, taints=0.15)
    pod = incoming(s)
    s.alike = d.one(0.1, 0.6)
    fill(s, 0, 3, priority=d.chance(0.3))
    spec = pod["spec"]
    if d.chance(0.12):
        spec["schedulingGates"] = [
            {"name": n} for n in d.some(["example.com/a", "kueue.x-k8s.io/admission", "z"], 1, 3)
        ]
    if d.chance(0.2):
        spec["restartPolicy"] = "Never"
        spec["containers"][0]["restartPolicy"] = "Never"
        spec["containers"][0]["restartPolicyRules"] = [
            {
                "action": d.one("RestartAllContainers", "RestartAllContainers", "Restart"),
                "exitCodes": {"operator": "In", "values": [42]},
            }
        ]
    if d.chance(0.3):
        spec["tolerations"] = tolerations(d, 1, 3)
    if d.chance(0.3):
        add_affinity(d, spec, pod["metadata"]["labels"])
    if d.chance(0.2):
        spec.setdefault("affinity", {})["nodeAffinity"] = node_affinity(d, label_pools(s), 0.5, 0.9)
    if d.chance(0.2):
        add_constraints(d, spec, pod["metadata"]["labels"])
    if d.chance(0.2):
        add_ports(d, spec, 1, 2)
    if d.chance(0.5):
        spec["priority"] = d.one(0, 10, 100, 3000, -100)
    if d.chance(0.05):
        spec["nodeName"] = d.choice(s.node_names())
    if d.chance(0.5):
        nominate(s, 1, 4)
    if d.chance(0.75):
        pieces: list[Callable[[Draw], Obj]] = d.some([fit_args, balanced_args, affinity_args, spread_args], 0, 2)
        configure(s, pieces, plugins=0.85, profiles=0.3)


def budgets(s: Scenario) -> None:
    d = s.d
    for i in range(d.one(0, 1, 2, 3, 5, 8)):
        spec: Obj = d.one({"minAvailable": 1}, {"maxUnavailable": 1}, {"minAvailable": "50%"}, {"maxUnavailable": 0})
        sel = selector(d, d.choice(s.cluster["pods"])["metadata"].get("labels") if s.cluster["pods"] else None)
        if sel is not None:
            spec["selector"] = sel
        if d.chance(0.15):
            spec["unhealthyPodEvictionPolicy"] = d.one("IfHealthyBudget", "AlwaysAllow")
        status: Obj = {
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
            "disruptionsAllowed": d.one(0, 0, 1, 2, 5),
        }
        names = [p["metadata"]["name"] for p in s.cluster["pods"]]
        if d.chance(0.3) and names:
            status["disruptedPods"] = dict.fromkeys(d.some(names, 1, 3), "2026-02-13T07:51:19Z")
        s.add(
            "podDisruptionBudgets",
            {
                "metadata": {"name": f"pdb-{i}", "namespace": d.one("default", "default", "default", "prod", "bare")},
                "spec": spec,
                "status": status,
            },
        )


def preemption(s: Scenario) -> None:
    d = s.d
    kind = d.one(
        "resources",
        "resources",
        "count",
        "ports",
        "affinity",
        "affinity",
        "spread",
        "spread",
        "rwop",
        "tie",
        "tie",
        "mixed",
        "mixed",
        "nominated",
        "extended",
    )
    make_nodes(s, 1, 7, odd=0.05, taints=0.1)
    pod = incoming(s)
    s.alike = d.one(0.2, 0.6)
    spec = pod["spec"]
    spec["priority"] = d.one(1000, 1000, 2000, 2000, 500, 100, 0, 1000000)
    ns = pod["metadata"]["namespace"]
    for node in s.nodes:
        node["status"]["allocatable"].update({"cpu": "2", "memory": "4Gi"})
        if kind == "count":
            node["status"]["allocatable"]["pods"] = d.one("2", "3", "4")
        if kind == "extended":
            node["status"]["allocatable"][EXTENDED[0]] = d.one("0", "1", "2")
    if kind == "tie":
        for node in s.nodes:
            node["spec"], node["status"]["allocatable"]["pods"] = {}, "110"
    levels = d.one([0], [0, 100], [-10, 0, 100, 500], [0, 100, 500, 1000, 3000])
    requested = d.one("1", "1300m", "1900m", "2")
    spec["containers"][0]["resources"] = {"requests": {"cpu": requested, "memory": d.one("1Gi", "2700Mi", "3Gi")}}
    if kind in ("ports", "affinity", "spread", "rwop", "count", "extended"):
        spec["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    if kind == "tie":
        spec["containers"][0]["resources"] = {"requests": {"cpu": "1900m", "memory": "1Gi"}}
    shape = [d.one("300m", "500m", "900m") for _ in range(3)]
    for host in s.node_names():
        for i in range(3 if kind == "tie" else d.randint(2, 6) if d.chance(0.9) else 0):
            other = existing(s, host)
            if d.chance(0.05):
                other["metadata"].pop("labels", None)
            other["spec"]["priority"] = levels[i % len(levels)] if kind == "tie" else d.choice(levels)
            if kind == "tie":
                other["status"]["startTime"] = f"2026-01-1{i}T00:00:00Z"
                other["metadata"]["namespace"] = "default"
            milli = shape[i % 3] if kind == "tie" else d.one("200m", "400m", "500m", "900m", "0")
            size = "1Gi" if kind == "tie" else d.one("128Mi", "700Mi", "1Gi", "2Gi")
            other["spec"]["containers"][0]["resources"] = {"requests": {"cpu": milli, "memory": size}}
            if kind in ("ports", "mixed") and d.chance(0.6):
                add_ports(d, other["spec"], 1, 2)
            if kind in ("affinity", "mixed") and d.chance(0.6):
                add_affinity(d, other["spec"], None, required=0.9, preferred=0.1, topologies=[HOST, ZONE, "rack"])
            if kind == "extended" and d.chance(0.6):
                other["spec"]["containers"][0]["resources"]["limits"] = {EXTENDED[0]: "1"}
            if kind == "rwop" and d.chance(0.4):
                other["metadata"]["namespace"] = ns
                other["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": d.one("one", "two")}}]
            if d.chance(0.08):
                other["metadata"]["deletionTimestamp"] = "2026-02-13T07:51:19Z"
                if d.chance(0.6):
                    other["status"]["conditions"] = [
                        {
                            "type": "DisruptionTarget",
                            "status": d.one("True", "True", "False"),
                            "reason": d.one("PreemptionByScheduler", "EvictionByEvictionAPI"),
                        }
                    ]
            if d.chance(0.04):
                other["status"]["phase"] = d.one("Succeeded", "Failed")
            if d.chance(0.05):
                resize(d, other)
    if kind == "ports" or (kind == "mixed" and d.chance(0.4)):
        add_ports(d, spec, 1, 2)
    if kind == "affinity" or (kind == "mixed" and d.chance(0.5)):
        add_affinity(d, spec, pod["metadata"]["labels"], required=0.95, preferred=0.1, topologies=[HOST, ZONE, "rack"])
    if kind in ("spread", "affinity"):
        for node in s.nodes:
            node["spec"] = {}
            node["status"]["allocatable"].update({"cpu": "16", "memory": "64Gi", "pods": "110"})
    if kind == "spread" or (kind == "mixed" and d.chance(0.4)):
        add_constraints(d, spec, pod["metadata"]["labels"], hard=0.95, high=2)
    if kind == "extended":
        spec["containers"][0]["resources"]["limits"] = {EXTENDED[0]: d.one("1", "2")}
    if kind == "rwop":
        s.add("storageClasses", {"metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com"})
        for name in ("one", "two"):
            claim = make_claim(s, name, ns, "fast", "pv-" + name, full=True)
            claim["spec"]["accessModes"] = ["ReadWriteOncePod"] if d.chance(0.8) else ["ReadWriteOnce"]
            pv = make_volume(s, "pv-" + name, "fast", claim, ["az1"])
            pv["metadata"].pop("labels", None)
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": d.one("one", "two", "missing", "one")}}]
        if d.chance(0.3):
            spec["volumes"].append({"name": "w", "persistentVolumeClaim": {"claimName": "two"}})
    if d.chance(0.12):
        spec["preemptionPolicy"] = d.one("Never", "PreemptLowerPriority")
    if kind == "nominated" or d.chance(0.15):
        nominate(s, 1, 3)
    if d.chance(0.2):
        pod["status"] = {"nominatedNodeName": d.choice([*s.node_names(), "ghost-node"])}
        for other in s.cluster["pods"]:
            if other["spec"].get("nodeName") == pod["status"]["nominatedNodeName"] and d.chance(0.3):
                other["metadata"]["deletionTimestamp"] = "2026-02-13T07:51:19Z"
                other["status"]["conditions"] = [
                    {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
                ]
    if d.chance(0.08):
        spec["nodeSelector"] = {"pool": d.one("general", "spot")}
    if d.chance(0.06):
        spec["affinity"] = {**spec.get("affinity", {}), "nodeAffinity": node_affinity(d, label_pools(s), 1.0, 0.2, 0.6)}
    if d.chance(0.15):
        spec["tolerations"] = tolerations(d, 1, 2)
    budgets(s)
    if d.chance(0.12):
        pieces = [
            lambda d: args_of(
                "DefaultPreemption",
                minCandidateNodesPercentage=d.one(0, 10, 100),
                minCandidateNodesAbsolute=d.one(1, 5, 100),
            )
        ]
        configure(s, pieces, plugins=0.4)


def mixed(s: Scenario, low: int = 1, high: int = 14) -> None:
    d = s.d
    make_nodes(s, low, high, odd=0.05, taints=0.15)
    pod = incoming(s)
    s.alike = d.one(0.1, 0.6)
    fill(s, 0, d.one(3, 6), priority=d.chance(0.7))
    pools = label_pools(s)
    spec, own = pod["spec"], pod["metadata"]["labels"]
    for other in s.cluster["pods"]:
        if d.chance(0.15):
            add_affinity(d, other["spec"], other["metadata"].get("labels"))
        if d.chance(0.1):
            add_ports(d, other["spec"], 1, 1)
        if d.chance(0.05):
            resize(d, other)
    enrich_resources(d, spec, 0.15)
    if d.chance(0.6):
        spec["priority"] = d.one(0, 100, 1000, 3000)
    if d.chance(0.35):
        spec["tolerations"] = tolerations(d, 1, 3)
    if d.chance(0.35):
        add_affinity(d, spec, own, required=0.4, preferred=0.6)
    if d.chance(0.35):
        spec.setdefault("affinity", {})["nodeAffinity"] = node_affinity(d, pools, 0.4, 0.8, 0.1)
    if d.chance(0.4):
        add_constraints(d, spec, own, hard=0.4)
    else:
        owners(s)
    if d.chance(0.15):
        add_ports(d, spec, 1, 2)
    if d.chance(0.1):
        spec["preemptionPolicy"] = "Never"
    if d.chance(0.3):
        for c in spec["containers"]:
            c["image"] = d.choice(IMAGES)
    if d.chance(0.2):
        classes = storage_world(s)
        claim_for(s, "data", pod["metadata"]["namespace"], classes)
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    if d.chance(0.3):
        nominate(s, 1, 3)
    if d.chance(0.05):
        pod["status"] = {"nominatedNodeName": d.choice([*s.node_names(), "ghost-node"])}
    if d.chance(0.4):
        budgets(s)
    if d.chance(0.35):
        pieces: list[Callable[[Draw], Obj]] = d.some(
            [fit_args, balanced_args, affinity_args, spread_args, lambda d: node_affinity_args(d, pools)], 0, 3
        )
        configure(s, pieces, plugins=0.4)


def large(s: Scenario) -> None:
    mixed(s, 120, 220)


CATEGORIES: dict[str, Callable[[Scenario], None]] = {
    "resources": resources,
    "scoring-strategies": scoring,
    "taints": taints,
    "node-affinity": node_affinities,
    "node-name-ports": names_and_ports,
    "inter-pod-affinity": inter_pod_affinity,
    "topology-spread": topology_spread,
    "image-locality": image_locality,
    "volumes": volumes,
    "misc": misc,
    "preemption": preemption,
    "everything-mixed": mixed,
    "large": large,
}


def generate(category: str, count: int, seed: int) -> Iterator[Obj]:
    for i in range(count):
        draw = Draw(f"{seed}/{category}/{i}")
        scenario = Scenario(f"gen{seed}-{category}-{i:04d}", category, draw.getrandbits(50), draw)
        CATEGORIES[category](scenario)
        yield scenario.line()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--category", choices=sorted(CATEGORIES), action="append", help="default: all but large")
    parser.add_argument("--count", type=int, default=100, help="scenarios of each category")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for category in args.category or [c for c in CATEGORIES if c != "large"]:
        for line in generate(category, args.count, args.seed):
            sys.stdout.write(json.dumps(line, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
