"""Kubernetes objects for tests, with keywords and valid defaults: `a_pod("web", cpu="500m", node="a")`.

Taints and tolerations are written as in kubectl: "dedicated=gpu:NoSchedule"; without a value ("dedicated:NoSchedule") a
toleration tolerates any value; without a key (":NoExecute") any key.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from stowplan.apps import profile_loader
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.config.document import suggestion
from stowplan.framework.decision import Decision
from stowplan.framework.extension_points import METHODS, points_of
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects import kinds
from stowplan.objects.changes import Put
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pod_parts import PodSpec
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import Namespace, PodDisruptionBudget, ReplicaSet, Service
from stowplan.plugins.nodes.default.default_binder import DefaultBinder
from stowplan.plugins.nodes.default.priority_sort import PrioritySort

Kind = TypeVar("Kind", bound=Object)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"
# Fields of a pod's spec that scheduling does not look at: `a_pod` accepts them, and an object does not keep them.
UNREAD = frozenset((
    "activeDeadlineSeconds", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks",
    "ephemeralContainers", "hostAliases", "hostIPC", "hostPID", "hostname", "hostnameOverride",
    "imagePullSecrets", "os", "readinessGates", "restartPolicy", "runtimeClassName", "securityContext",
    "serviceAccount", "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain",
    "terminationGracePeriodSeconds",
))  # fmt: skip
DELETED_AT = "2026-01-01T00:00:00Z"


def from_yaml(kind: type[Kind], text: str) -> Kind:
    """Return an object of this kind from a manifest.

    pod = from_yaml(Pod, "{metadata: {name: web}, spec: {containers: [{name: main, image: nginx}]}}")
    """
    return kinds.convert(kind, yaml.safe_load(text))


def a_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
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
    terminating: bool = False,
    owner: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """Return a pod with one container; it is on a node if `node` is given.

        a_pod("web", cpu="500m", labels={"app": "web"}, tolerations=["dedicated=gpu:NoSchedule"])

    `requests`: of other resources than cpu and memory. `ports`: host ports, 80, "80/UDP" or "10.0.0.1:80". `owner`: its
    controller, as in ownerReferences. `status`: more fields of the status, and any other keyword is a field of the
    spec, both in the API's spelling. A keyword that is none is a TypeError.
    """
    _check_spec(spec)
    asked = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    container = {
        "name": "main",
        "image": image,
        "resources": {"requests": {**asked, **(requests or {})}},
        "ports": [_port(port) for port in ports],
    }
    metadata: dict[str, Any] = {
        "name": name, "namespace": namespace, "uid": uid or f"uid-of-{namespace}-{name}", "labels": dict(labels or {}),
        "annotations": dict(annotations or {}), "deletionTimestamp": DELETED_AT if terminating else None,
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


def _check_spec(given: Iterable[str]) -> None:
    known = UNREAD.union(field.encode_name for field in msgspec.structs.fields(PodSpec))
    for each in given:
        if each not in known:
            own = [name for name in inspect.signature(a_pod).parameters if name != "spec"]
            remedy = suggestion(each.replace("_", ""), known) or suggestion(each, own)
            problem = f"a_pod() got an unexpected keyword argument {each!r}, which is no field of a pod's spec either"
            raise TypeError(f"{problem}; {remedy}" if remedy else problem)


def _port(port: int | str) -> dict[str, Any]:
    address, _, number = str(port).rpartition(":")
    number, _, protocol = number.partition("/")
    return {"hostPort": int(number), "protocol": protocol, "hostIP": address}


def a_taint(text: str) -> dict[str, str]:
    """Return a taint of a manifest: "key=value:effect"."""
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
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    features: Sequence[str] = (),
) -> Node:
    """Return a node; `resources` are allocatable beyond cpu, memory and pods, `images` have their sizes in bytes.

    a_node("a", cpu=8, labels={"disk": "ssd"}, taints=["dedicated=gpu:NoSchedule"], resources={"nvidia.com/gpu": 2})
    """
    metadata = {"name": name, "uid": f"uid-of-{name}", "labels": dict(labels or {})}
    return kinds.convert(
        Node,
        {
            "metadata": {**metadata, "annotations": dict(annotations or {})},
            "spec": {"taints": [a_taint(text) for text in taints], "unschedulable": unschedulable},
            "status": {
                "allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})},
                "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
                "declaredFeatures": list(features),
            },
        },
    )


def a_namespace(name: str = "default", **labels: str) -> Namespace:
    """Return a namespace with labels.

    World().submit(a_namespace("shop", team="web"))
    """
    return kinds.convert(Namespace, {"metadata": {"name": name, "labels": labels}})


def a_service(name: str = "service", *, namespace: str = "default", **selector: str) -> Service:
    """Return a service that selects pods with these labels.

    a_service("web", app="web")
    """
    metadata = {"name": name, "namespace": namespace}
    return kinds.convert(Service, {"metadata": metadata, "spec": {"selector": selector}})


def a_replica_set(name: str = "replicas", *, namespace: str = "default", **labels: str) -> ReplicaSet:
    """Return a ReplicaSet that selects pods with these labels.

    a_replica_set("web-7f9", app="web")
    """
    metadata = {"name": name, "namespace": namespace}
    return kinds.convert(ReplicaSet, {"metadata": metadata, "spec": {"selector": {"matchLabels": labels}}})


def a_budget(
    name: str = "budget", *, namespace: str = "default", allowed: int = 0, **labels: str
) -> PodDisruptionBudget:
    """Return a PodDisruptionBudget for pods with these labels that allows so many disruptions now.

    a_budget("web", allowed=1, app="web")
    """
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
    """Return a cluster for `filtered`, `refused` and `scored`; a node may be given by its name.

    state = a_state(nodes=["a", a_node("b", cpu=8)], pods=[a_pod("web", node="a")])
    """
    state = ClusterState()
    for each in (*others, *(a_node(node) if isinstance(node, str) else node for node in nodes), *pods):
        state.apply(Put(each))
    return state


def a_cluster(**keywords: Any) -> Cluster:
    """Return the `Cluster` that methods of plugins get, of what `a_state` takes.

    assert MyPlugin().pre_filter(a_pod(), a_cluster(nodes=["a"])) is SKIP
    """
    return Cluster(a_state(**keywords))


def a_profile(config: str | Mapping[str, Any] | Path | None = None) -> Profile:
    """Return kube-scheduler's default profile, or the first one of a KubeSchedulerConfiguration.

    A Path is the configuration's file; plugins `file.py:Class` are loaded from its folder. In a text or a mapping
    apiVersion and kind may be left out: `a_profile("profiles: [{plugins: {score: {enabled: [{name: MyPlugin}]}}}]")`.
    """
    if config is None:
        return next(iter(profile_loader.defaults()[1].values()))
    if isinstance(config, Path):
        return next(iter(profile_loader.read_configuration(config)[1].values()))
    document = yaml.safe_load(config) if isinstance(config, str) else config
    if not isinstance(document, Mapping):
        problem = f"{config!r} is no configuration: a text is its content, and a file is a Path"
        raise TypeError(f"{problem}; write a_profile(Path({config!r}))")
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return next(iter(profile_loader.configured({**head, **document})[1].values()))


def a_profile_of(*plugins: Any, weight: int = 1) -> Profile:
    """Return a profile of these plugins alone, each at every extension point that it has a method for.

    No scheduler works without an order of its queue and without a binding: PrioritySort and DefaultBinder are added,
    unless a plugin does that.

        world = World(nodes=["a"], profiles={"default-scheduler": a_profile_of(MyPlugin())})
    """
    needed = (PrioritySort(), DefaultBinder())
    own = frozenset[str]().union(*(points_of(type(plugin)) for plugin in plugins))
    given = (*plugins, *(each for each in needed if not points_of(type(each)) & own))
    bound = [EnabledPlugin(type(plugin).__name__, plugin, weight) for plugin in given]
    return Profile(
        "default-scheduler",
        {
            point: tuple(each for each in bound if point in points_of(type(each.plugin)))
            for point, method in METHODS.items()
            if method
        },
    )


def rejections(decision: Decision) -> dict[str, Any]:
    """Return per node None if it is feasible, else (plugin, code, reasons)."""
    return {
        name: None if verdict is None else (verdict.plugin, verdict.code, verdict.reasons)
        for name, verdict in decision.trail.rejections()
    }


def scores(decision: Decision, plugin: str = "") -> dict[str, int]:
    """Return per feasible node its total score, or one plugin's."""
    return {name: each[plugin] if plugin else total for name, each, total in decision.trail.scored()}
