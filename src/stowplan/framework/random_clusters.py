"""Small random clusters with all kinds of nodes and pods, for checks of plugins. A seed gives the same cluster.

With the words of a plugin (`checks.words`) nodes and pods also have these words as labels, annotations, taints,
namespaces and resources.

Pods drawn one by one rarely share a node and a label. So some clusters have a crowd: a node with replicas of the
pod that a plugin is asked about. A score that grows with each such pod, and has no cap, leaves its range there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from stowplan.columns.state import ClusterState
from stowplan.framework.checks.words import Words
from stowplan.objects import gpu_requests, kinds
from stowplan.objects.changes import Put
from stowplan.objects.meta import Object, ObjectMeta
from stowplan.objects.nodes import Node
from stowplan.objects.pod_parts import PodStatus, ResourceRequirements
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import Namespace

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
REQUIRED, PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))


@dataclass(frozen=True)
class Crowd:
    """Replicas of a pod on one node. They have its labels, and `labels` where it has none."""

    node_name: str
    number: int
    labels: Mapping[str, str]

    def of(self, pod: Pod) -> tuple[Pod, ...]:
        spec, labels = msgspec.structs.replace(pod.spec, node_name=self.node_name), {**self.labels, **pod.labels}
        names = [f"{pod.name}-replica-{number}" for number in range(self.number)]
        each = [msgspec.structs.replace(pod.metadata, name=name, uid=name, labels=labels) for name in names]
        return tuple(Pod(metadata=metadata, spec=spec, status=PodStatus()) for metadata in each)


@dataclass(frozen=True)
class RandomCluster:
    """A cluster, and a pod to be scheduled in it. `waiting` are other pods that may get nodes before it.

    The crowd is on its node once a pod is asked about: its pods are replicas of that pod.
    """

    nodes: tuple[Node, ...]
    placed: tuple[Pod, ...]
    others: tuple[Object, ...]
    pod: Pod
    waiting: tuple[Pod, ...] = ()
    crowd: Crowd | None = None

    def asked_about(self, pod: Pod) -> RandomCluster:
        """Return the same cluster with this pod to be scheduled, and with its crowd."""
        crowd = () if self.crowd is None else self.crowd.of(pod)
        return replace(self, pod=pod, placed=(*self.placed, *crowd), crowd=None)

    def state(self) -> ClusterState:
        state = ClusterState()
        for each in (*self.others, *self.nodes, *self.placed):
            state.apply(Put(each))
        return state

    def reversed(self) -> RandomCluster:
        """Return the same cluster with the nodes in reverse order."""
        return replace(self, nodes=self.nodes[::-1])

    def alone(self, name: str) -> RandomCluster:
        """Return the same cluster with one of the nodes only."""
        nodes = tuple(node for node in self.nodes if node.name == name)
        others = tuple(each for each in self.others if not isinstance(each, Node) or each.name == name)
        placed = tuple(pod for pod in self.placed if pod.node_name == name)
        return replace(self, nodes=nodes, others=others, placed=placed)

    def without_pods(self) -> RandomCluster:
        """Return the same cluster with no pod on a node."""
        return replace(self, placed=())


def same_shape(pod: Pod) -> Pod:
    """Return another pod of the same shape: everything that is not part of the shape is different."""
    other = ObjectMeta(
        name=pod.name,
        namespace=pod.namespace,
        uid=f"{pod.uid}-another",
        labels={"another": "pod"},
        annotations=dict(gpu_requests.annotations_of(pod.metadata)),
    )
    spec = msgspec.structs.replace(pod.spec, priority=pod.priority + 1)
    return Pod(metadata=other, spec=spec, status=pod.status)


def without_requests(pod: Pod) -> Pod:
    """Return the same pod, without anything that it requests."""
    spec, nothing = pod.spec, ResourceRequirements()
    containers, init_containers = (
        tuple(msgspec.structs.replace(container, resources=nothing) for container in each)
        for each in (spec.containers, spec.init_containers)
    )
    spec = msgspec.structs.replace(
        spec, containers=containers, init_containers=init_containers, resources=nothing, overhead={}
    )
    return Pod(metadata=pod.metadata, spec=spec, status=PodStatus())


def draw(
    seed: int, words: Words | None = None, *, nodes: int | None = None, placed: int | None = None
) -> RandomCluster:
    """Return a small cluster with all kinds of nodes and pods, and a pod that may ask for any of it.

    `nodes` and `placed`: so many nodes, and pods on them, instead of a few. With `placed` there is no crowd.
    """
    generator = np.random.default_rng(seed)
    dice = WordedDice(generator, words) if words else Dice(generator)
    names = [f"n{number}" for number in range(dice.number(1, 9) if nodes is None else nodes)]
    drawn_nodes = tuple(kinds.convert(Node, dice.node(name)) for name in names)
    count = dice.number(0, 12) if placed is None else placed
    drawn_pods = tuple(
        kinds.convert(Pod, dice.pod(f"p{number}", node_name=dice.one_of(*names))) for number in range(count)
    )
    namespaces, incoming = tuple(dice.namespaces()), kinds.convert(Pod, dice.pod("incoming"))
    waiting = tuple(kinds.convert(Pod, dice.pod(f"waiting-{number}")) for number in range(2))
    crowd = dice.crowd(names) if placed is None else None
    return RandomCluster(drawn_nodes, drawn_pods, namespaces, incoming, waiting, crowd)


class Dice:
    """Draws manifests."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def number(self, low: int, high: int) -> int:
        return int(self._generator.integers(low, high, endpoint=True))

    def one_of(self, *options: Any) -> Any:
        return options[self.number(0, len(options) - 1)]

    def some(self, *options: Any) -> list[Any]:
        return [option for option in options if self.number(0, 3) == 0]

    def namespaces(self) -> list[Namespace]:
        return []

    def crowd(self, names: list[str]) -> Crowd | None:
        """Return a crowd for one cluster of three."""
        if self.number(0, 2):
            return None
        return Crowd(self.one_of(*names), self.number(5, 10), self._shared())

    def _shared(self) -> dict[str, str]:
        """Return labels of all pods of a crowd."""
        return {}

    def node(self, name: str) -> dict[str, Any]:
        labels = {key: self.one_of("a", "b", "c") for key in self.some("zone", "disk", "zone", "team", "zone")}
        labels["kubernetes.io/hostname"] = name
        taints = self.some(*({"key": "k", "value": "v", "effect": effect} for effect in EFFECTS))
        offered = {"cpu": self.one_of("1", "2", "4"), "memory": self.one_of("1Gi", "4Gi"), "pods": self.one_of(3, 110)}
        offered |= {"example.com/gpu": self.number(0, 4)} if self.number(0, 1) else {}
        images = [{"names": [f"{image}:latest"], "sizeBytes": 10**9} for image in self.some("web", "db")]
        spec = {"taints": taints, "unschedulable": self.number(0, 5) == 0}
        status = {"allocatable": offered, "images": images, "declaredFeatures": self.some("UserNamespaces")}
        return {"metadata": {"name": name, "uid": name, "labels": labels}, "spec": spec, "status": status}

    def pod(self, name: str, node_name: str = "") -> dict[str, Any]:
        requests = {"cpu": self.one_of("100m", "500m", "2"), "memory": self.one_of("64Mi", "1Gi"), "example.com/gpu": 1}
        container = {
            "name": "c",
            "image": self.one_of("web", "db"),
            "ports": self.some({"hostPort": 80}, {"hostPort": 81}),
        }
        container["resources"] = {"requests": {key: requests[key] for key in self.some(*requests, "cpu", "memory")}}
        spec = {"nodeName": node_name, "containers": [container], "priority": self.number(0, 3)}
        spec["nodeSelector"] = {key: self.one_of("a", "b") for key in self.some("zone")}
        spec["tolerations"] = self.some({"key": "k", "operator": "Exists"}, {"key": "k", "value": "w"})
        spec["affinity"] = {kind: affinity for kind, affinity in self._affinities().items() if self.number(0, 3) == 0}
        spec["topologySpreadConstraints"] = self.some(self._spread(), self._spread())
        labels = {key: self.one_of("x", "y") for key in self.some("app", "app", "tier")}
        return {"metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels}, "spec": spec}

    def _affinities(self) -> dict[str, Any]:
        zone = {"key": "zone", "operator": self.one_of("In", "NotIn"), "values": ["a", "b"]}
        near = {"topologyKey": self.one_of("zone", "kubernetes.io/hostname"), "labelSelector": self._app()}
        return {
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [zone]}]},
                PREFERRED: [{"weight": self.number(1, 100), "preference": {"matchExpressions": [zone]}}],
            },
            "podAffinity": {PREFERRED: [{"weight": self.number(1, 100), "podAffinityTerm": near}]},
            "podAntiAffinity": {REQUIRED: [near]},
        }

    def _spread(self) -> dict[str, Any]:
        how = self.one_of("DoNotSchedule", "ScheduleAnyway")
        key = self.one_of("zone", "kubernetes.io/hostname")
        return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": how, "labelSelector": self._app()}

    def _app(self) -> dict[str, Any]:
        return {"matchLabels": {"app": self.one_of("x", "y")}}


class WordedDice(Dice):
    """Draws manifests with the words of a plugin."""

    def __init__(self, generator: np.random.Generator, words: Words) -> None:
        super().__init__(generator)
        self._keys, self._namespaces, self._resources = words.texts, words.namespaces, words.resources
        self._values = (*words.values, *(str(number) for number in words.numbers[:3]), "x", "3")
        self._given = words.given
        self._numbers = [near for number in words.numbers for near in (number - 1, number, number + 1)]
        follows = zip(words.texts, words.texts[1:], strict=False)
        self._next = {key: value for key, value in follows if value in words.values}

    def namespaces(self) -> list[Namespace]:
        return [
            kinds.convert(Namespace, {"metadata": {"name": name, "labels": self._pairs()}})
            for name in ("default", *self._namespaces)
        ]

    def node(self, name: str) -> dict[str, Any]:
        found = super().node(name)
        found["metadata"]["labels"] = self._pairs() | found["metadata"]["labels"]
        found["metadata"]["annotations"] = self._pairs()
        found["spec"]["taints"] += [
            {"key": key, "value": value, "effect": self.one_of(*EFFECTS)}
            for key, value in self._pairs().items()
            if self.number(0, 3) == 0
        ]
        found["status"]["allocatable"] |= {key: self.number(0, 4) for key in self._resources if self.number(0, 1)}
        return found

    def pod(self, name: str, node_name: str = "") -> dict[str, Any]:
        found = super().pod(name, node_name)
        metadata, spec = found["metadata"], found["spec"]
        metadata["labels"] = metadata["labels"] | self._pairs() | self._given_pairs()
        metadata["annotations"] = self._pairs()
        if self._namespaces and self.number(0, 2) == 0:
            metadata["namespace"] = self.one_of(*self._namespaces)
        if self._numbers and self.number(0, 1):
            spec["priority"] = self.one_of(*self._numbers)
        spec["tolerations"] += [{"key": key, "operator": "Exists"} for key in self.some(*self._keys)]
        requests = spec["containers"][0]["resources"]["requests"]
        requests |= {key: self.number(0, 2) for key in self._resources if self.number(0, 1)}
        return found

    def _shared(self) -> dict[str, str]:
        """Return every key, since a plugin may count pods with any of them."""
        return {key: self._next.get(key) or self.one_of(*self._values) for key in self._keys}

    def _given_pairs(self) -> dict[str, str]:
        """Return keys with words of given objects, for some pods; and what an object has as a label."""
        if not self._given or self.number(0, 1):
            return {}
        return {key: self.one_of(*self._given) for key in self.some(*self._keys, *self._given)}

    def _pairs(self) -> dict[str, str]:
        """Return keys with values; the word that follows a key in the code is a likely one."""
        chosen = [key for key in self._keys if self.number(0, 1)]
        return {
            key: self._next[key] if key in self._next and self.number(0, 1) else self.one_of(*self._values)
            for key in chosen
        }
