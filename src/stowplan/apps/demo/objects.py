"""The objects of the demo, as documents for the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stowplan.apps.up import command as up

Document = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"


def node(name: str, zone: str = "a", cpu: str = "4", *, taint: str = "", **resources: str) -> Document:
    """Return a node. `taint`: key=value, or a key."""
    found = up.node(name, zone, cpu=cpu, memory="16Gi", **resources)
    key, _, value = taint.partition("=")
    found["spec"]["taints"] = [{"key": key, "value": value, "effect": "NoSchedule"}] if taint else []
    return {"apiVersion": "v1", "kind": "Node", **found}


def nodes(name: str, zones: str, cpu: str = "4") -> list[Document]:
    """Return one node for each zone: `nodes("worker", "abcab")`."""
    return [node(f"{name}-{number}", zone, cpu) for number, zone in enumerate(zones)]


def pod(name: str, cpu: str, labels: Mapping[str, str] | None = None, **spec: Any) -> Document:
    """Return a pod with one container."""
    found = template({"app": name, **(labels or {})}, cpu, **spec)
    return {"apiVersion": "v1", "kind": "Pod", **found, "metadata": {"name": name, **found["metadata"]}}


def deployment(
    name: str,
    replicas: int,
    cpu: str,
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Document:
    own = {"app": name}
    wanted = {"replicas": replicas, "selector": {"matchLabels": own}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**wanted, "template": template(own | dict(labels or {}), cpu, **spec)},
    }


def template(labels: Mapping[str, str], cpu: str, *, gpus: int = 0, **spec: Any) -> Document:
    """Return the template of a pod with one container."""
    amounts = {"cpu": cpu, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    container = {"name": "main", "image": "example/main:1", "resources": {"requests": amounts, **limits}}
    return {"metadata": {"labels": dict(labels)}, "spec": {"containers": [container], **spec}}


def profiles(*names: str, **more: Document) -> Document:
    """Return a configuration with a profile for each name, and for each scheduler of `more` with its fields."""
    found = [{"schedulerName": name} for name in names]
    found += [{"schedulerName": name.replace("_", "-"), **fields} for name, fields in more.items()]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": found,
    }


def namespaces(names: Sequence[str]) -> list[Document]:
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
