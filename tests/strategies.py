"""Random nodes, pods and clusters for Hypothesis.

Manifests are drawn once, from few names and values so that they often match, into pools that are sorted from simple to
complex. Hypothesis picks from the pools: that is quick, and failures shrink to simple manifests.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st

from stowplan.objects import kinds
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import Namespace, Service
from stowplan.testing.builders import DELETED_AT, HOSTNAME, PREFERRED, REQUIRED

NODE_NAMES = tuple(f"n{number}" for number in range(6))
UIDS = tuple(f"p{number}" for number in range(8))
NAMESPACES = ("one", "two")
LABELS = {"zone": ("a", "b", ""), "disk": ("ssd", "hdd"), "rank": ("1", "2", "-3", "x")}
POD_LABELS = {"app": ("x", "y"), "tier": ("front", "back")}
IMAGES = {"web:latest": 900_000_000, "db:latest": 300_000_000}
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
POOL = 6000 if os.environ.get("STOWPLAN_HYPOTHESIS") == "full" else 600

REQUESTS: dict[str, tuple[Any, ...]] = {
    "cpu": ("0", "100m", "1500m", "2", "0.0001", 1),
    "memory": ("0", "64Mi", "1Gi", "1.5G", "3e9"),
    "ephemeral-storage": ("1Gi", "100k"),
    "example.com/gpu": (1, "2"),
    "hugepages-2Mi": ("2Mi", "8Mi"),
    "example.org/odd": ("1500m",),
}
ALLOCATABLE: dict[str, tuple[Any, ...]] = {
    "cpu": ("1", "2500m", "8", "64"),
    "memory": ("1Gi", "4Gi", "3G"),
    "pods": (0, 2, 110, 110, 110),
    "ephemeral-storage": ("1Gi", "50Gi"),
    "example.com/gpu": (0, 1, 4),
    "hugepages-2Mi": ("0", "4Mi"),
    "not-counted": ("5",),
}
VOLUMES = (
    {"name": "scratch", "emptyDir": {}},
    {"name": "claimed", "persistentVolumeClaim": {"claimName": "c"}},
    {"name": "disk", "gcePersistentDisk": {"pdName": "d"}},
    {"name": "disk", "gcePersistentDisk": {"pdName": "d", "readOnly": True}},
)


class Dice:
    """Draws manifests."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def happens(self, chance: float) -> bool:
        return self.random.random() < chance

    def some(self, draw: Callable[[], Any], most: int = 2) -> list[Any]:
        return [draw() for _ in range(self.random.randint(0, most))]

    def values(self, choices: Mapping[str, Sequence[Any]], chance: float = 0.5) -> dict[str, Any]:
        return {key: self.one(values) for key, values in choices.items() if self.happens(chance)}

    def maybe(self, chance: float, **fields: Callable[[], Any]) -> dict[str, Any]:
        """Draw each of the fields with this chance."""
        return {name: draw() for name, draw in fields.items() if self.happens(chance)}

    # -- nodes

    def node(self) -> dict[str, Any]:
        images = [{"names": [image], "sizeBytes": IMAGES[image]} for image in IMAGES if self.happens(0.3)]
        return {
            "metadata": {"labels": self.values(LABELS)},
            "spec": {"taints": self.some(self.taint) if self.happens(0.4) else [], "unschedulable": self.happens(0.1)},
            "status": {
                "allocatable": self.values(ALLOCATABLE, self.one((0.5, 1, 1, 1))),
                "images": images,
                "declaredFeatures": ["UserNamespacesHostNetworkSupport"] if self.happens(0.3) else [],
            },
        }

    def taint(self) -> dict[str, Any]:
        return {"key": self.one("kl"), "effect": self.one(EFFECTS), **self.values({"value": "vw"})}

    def toleration(self) -> dict[str, Any]:
        return self.values(
            {"key": ("k", "l", ""), "operator": ("Equal", "Exists", "Exists", "Gt"), "value": "vw", "effect": EFFECTS}
        )

    def node_term(self) -> dict[str, Any]:
        return {
            "matchExpressions": self.some(self.expression),
            "matchFields": self.some(self.field) if self.happens(0.3) else [],
        }

    def expression(self) -> dict[str, Any]:
        key = self.one((*LABELS, *LABELS, "rank", HOSTNAME, "not a key"))
        operator = self.one(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Sometimes"))
        wanted = ["1", "2", "-3", "x"] if operator in ("Gt", "Lt") else ["a", "b", "ssd", "1", "2", "n1", "not a value"]
        number = {"In": 2, "NotIn": 2, "Gt": 1, "Lt": 1}.get(operator, 0) if self.happens(0.9) else self.one((0, 1, 3))
        return {"key": key, "operator": operator, "values": [self.one(wanted) for _ in range(number)]}

    def field(self) -> dict[str, Any]:
        key = "metadata.name" if self.happens(0.9) else "metadata.uid"
        values = [self.one((*NODE_NAMES, "")) for _ in range(1 if self.happens(0.9) else self.one((0, 2)))]
        return {"key": key, "operator": self.one(("In", "In", "NotIn", "Exists")), "values": values}

    def node_affinity(self) -> dict[str, Any]:
        return {
            **self.maybe(0.7, **{REQUIRED: lambda: {"nodeSelectorTerms": self.some(self.node_term)}}),
            PREFERRED: self.some(lambda: {"weight": self.random.randint(0, 100), "preference": self.node_term()}),
        }

    # -- pods

    def pod(self) -> dict[str, Any]:
        metadata = {"namespace": self.one(NAMESPACES), "labels": self.values(POD_LABELS)}
        spec = {
            "containers": [self.container(), *self.some(self.container, 1)],
            **self.maybe(
                0.25,
                initContainers=lambda: self.some(self.init_container, 3),
                overhead=lambda: self.values(REQUESTS, 0.3),
                nodeSelector=lambda: self.values(LABELS),
                volumes=lambda: self.some(lambda: self.one(VOLUMES)),
                topologySpreadConstraints=lambda: self.some(self.spread),
                affinity=self.affinity,
            ),
            "tolerations": self.some(self.toleration),
            "priority": self.one((None, 0, 5, 10)),
        }
        leaving = {"deletionTimestamp": DELETED_AT} if self.happens(0.15) else {}
        return {"metadata": metadata | leaving, "spec": spec, "status": {"phase": self.one(("", "Running", "Pending"))}}

    def container(self) -> dict[str, Any]:
        return {
            "name": self.one(("c1", "c2")),
            "image": self.one(("web", "db:latest", "other")),
            "resources": {"requests": self.values(REQUESTS, 0.4)},
            "ports": [{"hostPort": self.one((80, 81))}] if self.happens(0.15) else [],
        }

    def init_container(self) -> dict[str, Any]:
        return {**self.container(), "restartPolicy": self.one((None, "Always"))}

    def resize(self) -> dict[str, Any]:
        """Draw a status in which the pod's containers have, or had, other resources."""
        seen, allocated = self.values(REQUESTS, 0.4), self.values(REQUESTS, 0.4)
        pending = self.one((None, "Deferred", "Infeasible"))
        return {
            "containerStatuses": [{"name": "c1", "resources": {"requests": seen}, "allocatedResources": allocated}],
            "conditions": [{"type": "PodResizePending", "reason": pending}] if pending else [],
        }

    def affinity(self) -> dict[str, Any]:
        return self.maybe(
            0.6, nodeAffinity=self.node_affinity, podAffinity=self.pod_affinity, podAntiAffinity=self.pod_affinity
        )

    def pod_affinity(self) -> dict[str, Any]:
        return {
            REQUIRED: self.some(self.pod_term, 1),
            PREFERRED: self.some(lambda: {"weight": self.random.randint(1, 100), "podAffinityTerm": self.pod_term()}),
        }

    def pod_term(self) -> dict[str, Any]:
        selectors: tuple[dict[str, Any], ...] = (
            {},
            {"matchLabels": {"team": "red"}},
            {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
        )
        return {
            "topologyKey": self.one(("zone", HOSTNAME)),
            "labelSelector": self.pod_selector(),
            **self.maybe(
                0.2,
                namespaces=lambda: self.some(lambda: self.one(NAMESPACES)),
                namespaceSelector=lambda: self.one(selectors),
            ),
        }

    def pod_selector(self) -> dict[str, Any] | None:
        if self.happens(0.1):
            return None
        return {"matchLabels": self.values(POD_LABELS, 0.4), "matchExpressions": self.some(self.pod_expression, 1)}

    def pod_expression(self) -> dict[str, Any]:
        operator = self.one(("In", "NotIn", "Exists", "DoesNotExist"))
        values = ["x", self.one(("y", "front"))] if operator in ("In", "NotIn") else []
        return {"key": self.one(tuple(POD_LABELS)), "operator": operator, "values": values}

    def spread(self) -> dict[str, Any]:
        return {
            "maxSkew": self.random.randint(1, 2),
            "topologyKey": self.one(("zone", HOSTNAME)),
            "whenUnsatisfiable": self.one(("DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": self.pod_selector(),
            **self.values(
                {
                    "minDomains": (1, 2, 3),
                    "nodeTaintsPolicy": ("Honor", "Ignore"),
                    "nodeAffinityPolicy": ("Honor", "Ignore"),
                    "matchLabelKeys": (["app"],),
                },
                0.3,
            ),
        }


# -- pools

Kind = TypeVar("Kind", bound=Object)


def pool(kind: type[Kind], seed: int, draw: Callable[[Dice], dict[str, Any]], size: int = POOL) -> list[Kind]:
    dice = Dice(seed)
    drawn = (kinds.convert(kind, draw(dice)) for _ in range(size))
    return sorted(drawn, key=lambda each: len(msgspec.json.encode(each, enc_hook=str)))


def resized(dice: Dice) -> dict[str, Any]:
    pod = dice.pod()
    pod["status"] |= dice.resize() if dice.happens(0.3) else {}
    return pod


def tied_to_nodes(dice: Dice) -> dict[str, Any]:
    """Draw a pod with constraints on its node."""
    pod = dice.pod()
    pod["spec"]["affinity"] = {"nodeAffinity": dice.node_affinity()}
    return pod


def with_init_containers(dice: Dice) -> dict[str, Any]:
    pod = dice.pod()
    pod["spec"]["initContainers"] = [dice.init_container() for _ in range(3)]
    return pod


NODES = pool(Node, 1, Dice.node)
PODS = pool(Pod, 2, Dice.pod)
RESIZED_PODS = pool(Pod, 3, resized)
PODS_WITH_NODE_AFFINITY = pool(Pod, 4, tied_to_nodes)
PODS_WITH_INIT_CONTAINERS = pool(Pod, 5, with_init_containers)


def named(node: Node, name: str, hostname: bool) -> Node:
    labels = {**node.labels, HOSTNAME: name} if hostname else node.labels
    metadata = msgspec.structs.replace(node.metadata, name=name, uid=name, labels=labels)
    return msgspec.structs.replace(node, metadata=metadata)


def placed(pod: Pod, uid: str, node_name: str = "", nominated: str = "", phase: str | None = None) -> Pod:
    """Return the pod under this name, on (or nominated to) a node."""
    status = msgspec.structs.replace(
        pod.status, nominated_node_name=nominated, phase=pod.status.phase if phase is None else phase
    )
    return Pod(
        metadata=msgspec.structs.replace(pod.metadata, name=uid, uid=uid),
        spec=msgspec.structs.replace(pod.spec, node_name=node_name),
        status=status,
    )


# -- strategies


def from_pool(pool: Sequence[Kind]) -> st.SearchStrategy[Kind]:
    """Pick by number: Hypothesis would otherwise print the whole pool with a strategy."""
    return st.sampled_from(range(len(pool))).map(lambda at: pool[at])


def nodes(name: str | None = None) -> st.SearchStrategy[Node]:
    names = st.sampled_from(NODE_NAMES) if name is None else st.just(name)
    return st.builds(named, from_pool(NODES), names, st.booleans())


def pods(uid: str | None = None, *, on: Sequence[str] = ("",), among: Sequence[Pod] = PODS) -> st.SearchStrategy[Pod]:
    """Draw a pod. `on`: nodes where it may be; without them it is pending."""
    uids = st.sampled_from(UIDS) if uid is None else st.just(uid)
    return st.builds(placed, from_pool(among), uids, st.sampled_from(tuple(on)))


namespaces = st.builds(
    lambda name, labels: kinds.convert(Namespace, {"metadata": {"name": name, "labels": labels}}),
    st.sampled_from(NAMESPACES),
    st.sampled_from(({}, {"team": "red"}, {"team": "blue"})),
)
services = st.builds(
    lambda name, namespace, selector: kinds.convert(
        Service, {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}
    ),
    st.sampled_from(("s", "t")),
    st.sampled_from(NAMESPACES),
    st.sampled_from(({}, {"app": "x"}, {"app": "y", "tier": "front"})),
)


@st.composite
def clusters(draw: st.DrawFn, among: Sequence[Pod] = PODS) -> dict[str, Any]:
    """Keywords for `a_state`: nodes of different names, and pods on them."""
    names = draw(st.lists(st.sampled_from(NODE_NAMES), min_size=1, unique=True))
    uids = draw(st.lists(st.sampled_from(UIDS), unique=True))
    return {
        "nodes": [draw(nodes(name)) for name in names],
        "pods": [draw(pods(uid, on=names, among=among)) for uid in uids],
        "others": [*draw(st.lists(namespaces, max_size=2)), *draw(st.lists(services, max_size=2))],
    }
