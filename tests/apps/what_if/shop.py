"""A cluster of two nodes: a Deployment with two pods on the first, a bare pod, a pod of a DaemonSet, little room."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]
HASH = "7f9c"


def node(name: str, cpu: str = "4", **more: Any) -> Document:
    status = {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status, **more}


def spec(cpu: str = "1", **more: Any) -> Document:
    return {"containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}], **more}


def pod(name: str, cpu: str = "1", *, node: str = "", owner: tuple[str, str] | None = None, **more: Any) -> Document:
    metadata: Document = {"name": name, "namespace": "shop"}
    if owner is not None:
        version = "apps/v1"
        reference = {"apiVersion": version, "kind": owner[0], "name": owner[1], "uid": owner[1], "controller": True}
        labels = {"app": "web", "pod-template-hash": HASH} if owner[0] == "ReplicaSet" else {"app": owner[1]}
        metadata |= {"ownerReferences": [reference], "labels": labels}
    where = {"nodeName": node} if node else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec(cpu, **where, **more)}


def deployment(replicas: int) -> Document:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec()}
    found = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": found}


def replica_set() -> Document:
    labels = {"app": "web", "pod-template-hash": HASH}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web", "controller": True}
    found = deployment(2)
    template = {**found["spec"]["template"], "metadata": {"labels": labels}}
    return {
        **found, "kind": "ReplicaSet",
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
        "metadata": {"name": f"web-{HASH}", "namespace": "shop", "labels": labels, "ownerReferences": [owner]},
    }  # fmt: skip


CLUSTER = [
    node("n1"),
    node("n2"),
    deployment(2),
    replica_set(),
    pod("web-7f9c-a", node="n1", owner=("ReplicaSet", "web-7f9c")),
    pod("web-7f9c-b", node="n1", owner=("ReplicaSet", "web-7f9c")),
    pod("bare", "250m", node="n1"),
    pod("agent-x", "250m", node="n1", owner=("DaemonSet", "agent")),
    pod("other", "2500m", node="n2"),
]
