"""A cluster as documents with something on each page: pools, zones, GPUs, taints, gangs, reservations, a hub.

write(folder / "dump.json", nodes=60)          one file, as `kubectl get … -o json` writes it
write_configuration(folder / "config.yaml")    with which the groups and reservations count
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Document = dict[str, Any]
CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: &gangs
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
    multiPoint: {enabled: [{name: Coscheduling}, {name: ResourceReservation}]}
- schedulerName: stowplan
  plugins: *gangs
"""
NOW = datetime(2026, 11, 19, 12, 0, tzinfo=UTC)
HUB = "cluster.open-cluster-management.io"
SIZES = (("250m", "512Mi"), ("500m", "1Gi"), ("1", "2Gi"), ("2", "6Gi"))
APPS = ("web", "api", "cart", "search", "billing", "ingest", "queue", "cache")


def write(file: Path, **given: Any) -> Path:
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents(**given)}), encoding="utf-8")
    return file


def write_configuration(file: Path) -> Path:
    """Write a configuration with which groups and reservations count."""
    file.write_text(CONFIGURATION, encoding="utf-8")
    return file


def documents(nodes: int = 60, pods: int = 420, seed: int = 7) -> list[Document]:
    draw = random.Random(seed)
    found = [_node(at, nodes) for at in range(nodes)]
    free = {each["metadata"]["name"]: 15.5 for each in found}
    names = [each["metadata"]["name"] for each in found if not each["spec"]["taints"]]
    for at in range(pods):
        app, (cpu, memory) = APPS[at % len(APPS)], SIZES[draw.randrange(len(SIZES))]
        cores = float(cpu.removesuffix("m")) / (1000 if cpu.endswith("m") else 1)
        node = names[int(draw.triangular(0, len(names), len(names) / 4)) % len(names)]
        if free[node] < cores:
            node = max(names, key=lambda name: free[name])
        free[node] -= cores
        namespace = ("shop", "data", "search")[len(app) % 3]
        found.append(pod(f"{app}-{at}", namespace, cpu, memory, node=node, owner=app))
    return [*found, *_owners(), *_waiting(nodes), *_hub(), *_events()]


def _node(at: int, number: int) -> Document:
    gpus, name = at >= number - max(number // 8, 1), f"node-{at:02d}"
    taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}] if gpus else []
    if at % 17 == 5:
        taints = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
    offered = {"cpu": "16", "memory": "64Gi", "pods": "110", **({"nvidia.com/gpu": "8"} if gpus else {})}
    labels = {
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": f"zone-{'abc'[at % 3]}", "pool": "gpu" if gpus else "general",
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels, "uid": f"node-{at}"},
        "spec": {"unschedulable": at % 23 == 11, "taints": taints},
        "status": {"capacity": offered, "allocatable": offered},
    }  # fmt: skip


def pod(
    name: str, namespace: str, cpu: str = "500m", memory: str = "1Gi", *, node: str = "", owner: str = "",
    minutes: int = 90, message: str = "", labels: dict[str, str] | None = None, reason: str = "Unschedulable",
    **spec: Any,
) -> Document:  # fmt: skip
    created = (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
    requests = {"cpu": cpu, "memory": memory, **spec.pop("more", {})}
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": requests}}
    metadata: Document = {
        "name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "creationTimestamp": created,
        "labels": {"app": owner or name, **(labels or {})},
    }  # fmt: skip
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{owner}-5d9c", "uid": f"rs-{owner}",
             "controller": True}
        ]  # fmt: skip
    status: Document = {"phase": "Running" if node else "Pending"}
    if message:
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"containers": [container], "schedulerName": "default-scheduler", "priority": 0,
                 **({"nodeName": node} if node else {}), **spec},
        "status": status,
    }  # fmt: skip


def _owners() -> list[Document]:
    found: list[Document] = []
    for app in (*APPS, "trainer", "report"):
        namespace = ("shop", "data", "search")[len(app) % 3]
        selector = {"matchLabels": {"app": app}}
        template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": app, "uid": f"d-{app}", "controller": True}
        found.append({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": app, "namespace": namespace},
                      "spec": {"replicas": 1, "selector": selector, "template": template}})  # fmt: skip
        found.append({"apiVersion": "apps/v1", "kind": "ReplicaSet",
                      "metadata": {"name": f"{app}-5d9c", "namespace": namespace, "ownerReferences": [owner]},
                      "spec": {"replicas": 1, "selector": selector, "template": template}})  # fmt: skip
    return found


def _waiting(nodes: int) -> list[Document]:
    gpu_message = (
        f"0/{nodes} nodes are available: {nodes - 7} Insufficient nvidia.com/gpu, 7 node(s) had untolerated taint(s)."
    )
    cpu_message = f"0/{nodes} nodes are available: {nodes} Insufficient cpu."
    found = [
        pod(f"trainer-{at}", "data", "8", "32Gi", owner="trainer", minutes=47 + at, message=gpu_message,
            more={"nvidia.com/gpu": "4"})
        for at in range(5)
    ]  # fmt: skip
    found += [
        pod(f"report-{at}", "data", "32", "8Gi", owner="report", minutes=12, message=cpu_message) for at in range(3)
    ]
    found.append(
        pod(
            "typo",
            "shop",
            nodeSelector={"pool": "genral"},
            minutes=3,
            message=f"0/{nodes} nodes are available: {nodes} node(s) didn't match Pod's node affinity/selector.",
        )
    )
    found.append(
        pod(
            "gated",
            "shop",
            minutes=200,
            schedulingGates=[{"name": "example.com/quota"}],
            message="Scheduling is blocked due to non-empty scheduling gates",
            reason="SchedulingGated",
        )
    )
    found.append(pod("fresh", "search", minutes=0))
    for at in range(4):
        found.append(pod(f"ring-{at}", "data", "12", "8Gi", minutes=30, schedulerName="stowplan",
                         labels={"scheduling.x-k8s.io/pod-group": "ring"}))  # fmt: skip
    for name, number, minimum, cpu in (("mesh", 8, 8, "15"), ("late", 3, 12, "1")):
        labels = {"scheduling.x-k8s.io/pod-group": name}
        found += [
            pod(f"{name}-{at}", "data", cpu, "8Gi", minutes=20, schedulerName="stowplan", labels=labels)
            for at in range(number)
        ]
        found.append(_pod_group(name, minimum))
    room = {"node": "node-03", "resources": {"cpu": "2", "memory": "4Gi"}}
    found.append({"apiVersion": "scheduling.kubenexus.io/v1alpha1", "kind": "ResourceReservation",
                  "metadata": {"name": "nightly", "namespace": "data"},
                  "spec": {"reservations": {"first": room, "second": {**room, "node": "node-00"}}}})  # fmt: skip
    return [*found, _pod_group("ring", 4)]


def _pod_group(name: str, minimum: int) -> Document:
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "data"}, "spec": {"minMember": minimum}}  # fmt: skip


def _hub() -> list[Document]:
    found: list[Document] = []
    for at, name in enumerate(("amber", "basil", "cedar", "dill", "elder", "fern")):
        labels = {"region": ("eu", "us")[at % 2], "cluster.open-cluster-management.io/clusterset": "all"}
        status = {
            "conditions": [{"type": "ManagedClusterConditionAvailable", "status": "True", "reason": "ok",
                            "message": "", "lastTransitionTime": "2026-11-19T08:00:00Z"}],
            "allocatable": {"cpu": str(100 + 37 * at), "memory": f"{400 + 90 * at}Gi"},
            "capacity": {"cpu": str(200 + 37 * at), "memory": f"{800 + 90 * at}Gi"},
            "version": {"kubernetes": "v1.36.0"},
        }  # fmt: skip
        taints = [{"key": "gpu", "effect": "NoSelect", "timeAdded": "2026-11-19T08:00:00Z"}] if at == 4 else []
        found.append({"apiVersion": f"{HUB}/v1", "kind": "ManagedCluster", "metadata": {"name": name, "labels": labels},
                      "spec": {"hubAcceptsClient": True, "taints": taints}, "status": status})  # fmt: skip
        fresh = {"type": "Fresh", "status": "True", "reason": "ok", "message": "",
                 "lastTransitionTime": "2026-11-19T11:40:00Z"}  # fmt: skip
        values = [{"name": "cpuRatio", "value": 17 * at - 20}]
        score = {"conditions": [fresh], "scores": values, "validUntil": "2030-01-01T00:00:00Z"}
        found.append({"apiVersion": f"{HUB}/v1alpha1", "kind": "AddOnPlacementScore",
                      "metadata": {"name": "resource-usage", "namespace": name}, "status": score})  # fmt: skip
    found.append({"apiVersion": f"{HUB}/v1beta2", "kind": "ManagedClusterSet", "metadata": {"name": "all"},
                  "spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}})  # fmt: skip
    found.append({"apiVersion": f"{HUB}/v1beta2", "kind": "ManagedClusterSetBinding",
                  "metadata": {"name": "all", "namespace": "shop"}, "spec": {"clusterSet": "all"}})  # fmt: skip
    add_on = {"type": "AddOn", "addOn": {"resourceName": "resource-usage", "scoreName": "cpuRatio"}}
    found += [
        _placement("front", 2, [{"scoreCoordinate": add_on, "weight": 2},
                                {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"}}]),
        _placement("everywhere", 9, []),
    ]  # fmt: skip
    metadata = {"name": "front-decision-1", "namespace": "shop", "labels": {f"{HUB}/placement": "front"}}
    decided = [{"clusterName": "fern", "reason": ""}, {"clusterName": "cedar", "reason": ""}]
    decision = {"apiVersion": f"{HUB}/v1beta1", "kind": "PlacementDecision", "metadata": metadata}
    found.append({**decision, "status": {"decisions": decided}})
    return found


def _placement(name: str, number: int, configurations: list[Document]) -> Document:
    policy = {"prioritizerPolicy": {"mode": "Exact", "configurations": configurations}} if configurations else {}
    return {"apiVersion": f"{HUB}/v1beta1", "kind": "Placement", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"numberOfClusters": number, **policy}, "status": {}}  # fmt: skip


def _events() -> list[Document]:
    found = []
    for at, (name, reason, note) in enumerate((
        ("data/trainer-0", "FailedScheduling", "0/60 nodes are available: 53 Insufficient nvidia.com/gpu."),
        ("shop/web-0", "Scheduled", "Successfully assigned shop/web-0 to node-03"),
        ("data/report-0", "FailedScheduling", "0/60 nodes are available: 60 Insufficient cpu."),
        ("data/trainer-1", "FailedScheduling", "0/60 nodes are available: 53 Insufficient nvidia.com/gpu."),
    )):  # fmt: skip
        namespace, _, pod_name = name.partition("/")
        seen = (NOW - timedelta(minutes=9 - at)).strftime("%Y-%m-%dT%H:%M:%SZ")
        found.append({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": f"e{at}", "namespace": namespace},
            "regarding": {"kind": "Pod", "namespace": namespace, "name": pod_name}, "reason": reason, "note": note,
            "eventTime": seen, "series": {"count": 3 + at, "lastObservedTime": seen},
            "reportingController": "default-scheduler", "type": "Warning",
        })  # fmt: skip
    return found
