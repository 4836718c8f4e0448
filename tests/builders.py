"""Objects for tests, with keywords and valid defaults: `a_pod(cpu="500m", node="a")`.

Taints and tolerations are written as kubectl does: "dedicated=gpu:NoSchedule", "dedicated:NoSchedule" (no value, or for
a toleration: any value), ":NoExecute" (any key).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import yaml

from stowplan.apps import profile_loader
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.extension_points import METHODS
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.framework.verdict import Decision
from stowplan.objects import kinds
from stowplan.objects.changes import Put
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import Namespace, PodDisruptionBudget, ReplicaSet, Service

Kind = TypeVar("Kind", bound=Object)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"
LEAVING_SINCE = "2026-01-01T00:00:00Z"


def from_yaml(kind: type[Kind], text: str) -> Kind:
    return kinds.convert(kind, yaml.safe_load(text))


def a_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    node: str = "",
    nominated: str = "",
    cpu: str | int | None = None,
    memory: str | int | None = None,
    requests: Mapping[str, Any] | None = None,
    priority: int | None = None,
    tolerations: Sequence[str] = (),
    node_selector: Mapping[str, str] | None = None,
    ports: Sequence[int | str] = (),
    image: str = "",
    phase: str = "",
    leaving: bool = False,
    owner: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """`spec` takes any further field of the pod's spec, in the API's spelling."""
    asked = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    container = {
        "name": "main",
        "image": image,
        "resources": {"requests": {**asked, **(requests or {})}},
        "ports": [_port(port) for port in ports],
    }
    metadata: dict[str, Any] = {
        "name": name, "namespace": namespace, "uid": uid or f"uid-of-{namespace}-{name}", "labels": dict(labels or {}),
        "deletionTimestamp": LEAVING_SINCE if leaving else None,
        "ownerReferences": [{"controller": True, **owner}] if owner else [],
    }  # fmt: skip
    return kinds.convert(
        Pod,
        {
            "metadata": metadata,
            "spec": {
                "nodeName": node,
                "containers": [container],
                "priority": priority,
                "tolerations": [_toleration(text) for text in tolerations],
                "nodeSelector": dict(node_selector or {}),
                **spec,
            },
            "status": {"phase": phase, "nominatedNodeName": nominated, **(status or {})},
        },
    )


def _port(port: int | str) -> dict[str, Any]:
    """80, "80/UDP" or "10.0.0.1:80"."""
    address, _, number = str(port).rpartition(":")
    number, _, protocol = number.partition("/")
    return {"hostPort": int(number), "protocol": protocol, "hostIP": address}


def a_taint(text: str) -> dict[str, str]:
    pair, _, effect = text.partition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _toleration(text: str) -> dict[str, str]:
    taint = a_taint(text)
    return taint if "=" in text else {**taint, "operator": "Exists"}


def a_node(
    name: str = "node",
    *,
    cpu: str | int = "4",
    memory: str | int = "8Gi",
    pods: int = 110,
    resources: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    features: Sequence[str] = (),
) -> Node:
    return kinds.convert(
        Node,
        {
            "metadata": {"name": name, "uid": f"uid-of-{name}", "labels": dict(labels or {})},
            "spec": {"taints": [a_taint(text) for text in taints], "unschedulable": unschedulable},
            "status": {
                "allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})},
                "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
                "declaredFeatures": list(features),
            },
        },
    )


def a_namespace(name: str = "default", **labels: str) -> Namespace:
    return kinds.convert(Namespace, {"metadata": {"name": name, "labels": labels}})


def a_service(name: str = "service", *, namespace: str = "default", **selector: str) -> Service:
    metadata = {"name": name, "namespace": namespace}
    return kinds.convert(Service, {"metadata": metadata, "spec": {"selector": selector}})


def a_replica_set(name: str = "replicas", *, namespace: str = "default", **labels: str) -> ReplicaSet:
    metadata = {"name": name, "namespace": namespace}
    return kinds.convert(ReplicaSet, {"metadata": metadata, "spec": {"selector": {"matchLabels": labels}}})


def a_budget(
    name: str = "budget", *, namespace: str = "default", allowed: int = 0, **labels: str
) -> PodDisruptionBudget:
    return kinds.convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": labels}},
            "status": {"disruptionsAllowed": allowed},
        },
    )


def a_state(
    *, nodes: Iterable[Node | str] = (), pods: Iterable[Pod] = (), others: Iterable[Object] = ()
) -> ClusterState:
    """A node may be given by its name alone."""
    state = ClusterState()
    for each in (*others, *(a_node(node) if isinstance(node, str) else node for node in nodes), *pods):
        state.apply(Put(each))
    return state


def a_cluster(**keywords: Any) -> Cluster:
    return Cluster(a_state(**keywords))


def a_profile(config: str | Mapping[str, Any] | None = None) -> Profile:
    """kube-scheduler's default profile, or the first of a KubeSchedulerConfiguration (its head may be left out)."""
    if config is None:
        return next(iter(profile_loader.defaults()[1].values()))
    document = dict(yaml.safe_load(config) if isinstance(config, str) else config)
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return next(iter(profile_loader.configured({**head, **document})[1].values()))


def a_profile_of(*plugins: Any, weight: int = 1) -> Profile:
    """These plugins, each at every point it has a method for."""
    bound = [EnabledPlugin(type(plugin).__name__, plugin, weight) for plugin in plugins]
    return Profile(
        "default-scheduler",
        {
            point: tuple(each for each in bound if callable(getattr(each.plugin, method, None)))
            for point, method in METHODS.items()
            if method
        },
    )


def rejections(decision: Decision) -> dict[str, Any]:
    """node → None if feasible, else (plugin, code, reasons)."""
    return {
        name: None if verdict is None else (verdict.plugin, verdict.code, verdict.reasons)
        for name, verdict in decision.trail.rejections()
    }


def scores(decision: Decision, plugin: str = "") -> dict[str, int]:
    """node → total, or one plugin's score."""
    return {name: each[plugin] if plugin else total for name, each, total in decision.trail.scored()}
