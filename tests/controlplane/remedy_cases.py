"""Pods that wait for a node on a real control plane: what keeps each, and the remedies that are typed for it.

`Case` says how the cluster is made; the builders make its objects. `$0` and `$1` stand for the names of the two nodes,
`$N` for the namespace, which is part of the names of objects that belong to none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
TAINT = "dedicated=gpu:NoSchedule"
SUBJECT = {"subject": "yes"}  # the labels of the pods that wait
X = {"app": "x"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SPREADING, POOLED = "spreading-scheduler", "pooled-scheduler"  # profiles beside the default one

# What kube-scheduler is started with, and `stowplan explain --config` reads.
SCHEDULERS: dict[str, Any] = {
    "profiles": [
        {"schedulerName": "default-scheduler"},
        {
            "schedulerName": SPREADING,
            "pluginConfig": [
                {
                    "name": "PodTopologySpread",
                    "args": {
                        "defaultingType": "List",
                        "defaultConstraints": [
                            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
                        ],
                    },
                }
            ],
        },
        {
            "schedulerName": POOLED,
            "pluginConfig": [
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            REQUIRED: {
                                "nodeSelectorTerms": [
                                    {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["main"]}]}
                                ]
                            }
                        }
                    },
                }
            ],
        },
    ]
}


@dataclass(frozen=True)
class Case:
    """A pod that waits, and what helps it.

    cause      what keeps it, by code
    remedies   codes; each is typed in a test of its own. The best two that explain finds are among them
    waits      the pod, or what makes it
    prepare    kubectl's words, after the nodes are there
    objects    what is there before, of any kind
    first      pods that have a node before the pod comes
    then       kubectl's words, after that
    nominated  pods that then preempt others, and wait for them to end
    templates  nodes that could be added
    """

    cause: str
    remedies: tuple[str, ...]
    waits: dict[str, Any]
    prepare: tuple[str, ...] = ()
    objects: tuple[dict[str, Any], ...] = ()
    first: tuple[dict[str, Any], ...] = ()
    then: tuple[str, ...] = ()
    nominated: tuple[dict[str, Any], ...] = ()
    templates: tuple[dict[str, Any], ...] = ()

    @property
    def profile(self) -> str:
        """The scheduler name, if it is not the default one."""
        made = self.waits["spec"]
        return str(made.get("template", self.waits)["spec"].get("schedulerName", ""))


def spec(cpu: str = "100m", **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example/main:1", "resources": {"requests": {"cpu": cpu}}}
    container |= {"ports": more.pop("ports", []), **more.pop("container", {})}
    return {"terminationGracePeriodSeconds": 0, "containers": [container], **more}


def a_pod(name: str = "web", labels: dict[str, str] = SUBJECT, **more: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": labels, **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec(**more)}


def two(**more: Any) -> tuple[dict[str, Any], ...]:
    """Two pods, too large for one node."""
    return tuple(a_pod(name, X, **({"cpu": "3"} | more)) for name in "ab")


def owned(
    kind: str, name: str = "web", labels: dict[str, str] = SUBJECT, number: int = 1, **more: Any
) -> dict[str, Any]:
    """A workload, with one pod unless it says otherwise."""
    template = {"metadata": {"labels": labels}, "spec": spec(**more)}
    document: dict[str, Any] = {"kind": kind, "metadata": {"name": name}, "spec": {"template": template}}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        return {"apiVersion": "batch/v1", **document}
    document["spec"]["selector"] = {"matchLabels": labels}
    if kind == "ReplicationController":
        document["spec"]["selector"] = labels
    if kind != "DaemonSet":
        document["spec"]["replicas"] = number
    if kind == "StatefulSet":
        document["spec"]["serviceName"] = name
    return {"apiVersion": "v1" if kind == "ReplicationController" else "apps/v1", **document}


def terms(kind: str, app: str, key: str = HOST) -> dict[str, Any]:
    return {kind: {REQUIRED: [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}]}}


def spreading(key: str) -> list[dict[str, Any]]:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return [constraint | {"labelSelector": {"matchLabels": X}}]


def on_nodes(*terms_of: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms_of)}}}


def label_in(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def a_class(name: str, value: int, **more: Any) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value, **more}


def a_budget(least: int) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "all"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": X}},
    }


PORT = [{"containerPort": 80, "hostPort": 8080}]
CORDONED = ("uncordon", "add-nodes", "tolerate-cordon")
BOTH = ("tolerate", "remove-taint")
TAINTED = (f"taint nodes $0 $1 {TAINT}",)
ONE_TAINTED = (f"taint nodes $1 {TAINT}",)
RESTARTED = {
    "restartPolicy": "Never",
    "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}],
}
NEWER = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "newer"},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "declaredFeatures": ["RestartAllContainersOnContainerExits"],
    },
}

FULL = pytest.mark.full

CASES = [
    # -- taints and cordons
    pytest.param(Case("taint", BOTH, a_pod(), TAINTED), id="a taint, a bare pod"),
    pytest.param(Case("taint", BOTH, owned("Deployment"), TAINTED), id="a taint, a Deployment"),
    pytest.param(Case("taint", BOTH, owned("StatefulSet"), TAINTED), id="a taint, a StatefulSet"),
    pytest.param(Case("taint", BOTH, owned("ReplicaSet"), TAINTED), id="a taint, a ReplicaSet", marks=FULL),
    pytest.param(Case("taint", BOTH, owned("ReplicationController"), TAINTED), id="a taint, a ReplicationController"),
    pytest.param(Case("taint", BOTH, owned("Job"), TAINTED), id="a taint, a Job"),
    pytest.param(Case("cordoned", CORDONED, a_pod(), ("cordon $0 $1",)), id="cordoned nodes"),
    # -- room
    pytest.param(Case("too-small", ("lower-request",), a_pod(cpu="9")), id="no node is big enough, a bare pod"),
    pytest.param(
        Case("too-small", ("lower-request",), owned("Deployment", cpu="9")),
        id="no node is big enough, a Deployment",
        marks=FULL,
    ),
    pytest.param(
        Case("too-small", ("lower-request",), owned("Job", cpu="9")), id="no node is big enough, a Job", marks=FULL
    ),
    pytest.param(
        Case(
            "insufficient", ("lower-request", "add-nodes", "raise-priority", "free-room"), a_pod(cpu="3"), first=two()
        ),
        id="room taken",
    ),
    pytest.param(
        Case(
            "insufficient",
            ("scale-down", "lower-request", "add-nodes", "raise-priority"),  # pods that are made again may be faster
            owned("Deployment", cpu="3"),
            objects=(owned("Deployment", "others", X, 2, cpu="3"),),
        ),
        id="room taken by pods that are made again",
    ),
    pytest.param(
        Case("insufficient", ("lower-request", "raise-priority"), owned("DaemonSet", cpu="2"), first=two()),
        id="room taken, a DaemonSet",
    ),
    pytest.param(
        Case(
            "insufficient",
            ("free-room+change-budget", "raise-priority", "lower-request", "add-nodes", "free-room"),
            a_pod(cpu="3"),
            objects=(a_budget(2),),
            first=two(),
        ),
        id="room taken by pods with a budget",
    ),
    pytest.param(
        Case(
            "insufficient",
            ("raise-priority", "lower-request", "add-nodes"),
            a_pod(cpu="3"),
            objects=(a_class("$N-polite", 100, preemptionPolicy="Never"),),
            first=two(),
        ),
        id="room taken, and a class that never preempts",
    ),
    pytest.param(
        Case(
            "insufficient",
            ("allow-preemption", "lower-request", "add-nodes"),
            a_pod(cpu="3", priorityClassName="$N-polite"),
            objects=(a_class("$N-polite", 100, preemptionPolicy="Never"),),
            first=two(),
        ),
        id="a pod that never preempts",
    ),
    pytest.param(
        Case(
            "too-many-pods",
            ("add-nodes", "raise-priority", "free-room"),
            a_pod(),
            ('patch node $0 $1 --subresource=status -p {"status":{"allocatable":{"pods":"1"}}}',),
            first=two(),
        ),
        id="too many pods",
    ),
    pytest.param(
        Case(
            "beside-nominated",
            ("raise-priority", "lower-request", "add-nodes"),
            a_pod(cpu="2"),
            objects=(a_class("$N-high", 10),),
            first=two(cpu="1", ports=PORT, metadata={"finalizers": ["example.com/slow"]}),
            nominated=tuple(
                a_pod(name, X, cpu="3", ports=PORT, priorityClassName="$N-high") for name in ("first", "second")
            ),
        ),
        id="room kept for pods that preempt",
    ),
    pytest.param(Case("port", ("host-port", "add-nodes"), a_pod(ports=PORT), first=two(ports=PORT)), id="a host port"),
    # -- labels of nodes
    pytest.param(
        Case(
            "node-selector",
            ("selector-value", "drop-requirement"),
            owned("Deployment", nodeSelector={"disk": "sdd"}),
            ("label nodes $0 $1 disk=ssd",),
        ),
        id="a selector with a typo",
    ),
    pytest.param(
        Case("node-selector", ("drop-requirement", "label-node"), a_pod(nodeSelector={"disk": "ssd"})),
        id="a label that no node has",
    ),
    pytest.param(
        Case(
            "node-affinity",
            ("selector-value", "drop-node-affinity"),
            owned("Job", affinity=on_nodes({"matchExpressions": [label_in("disk", "sdd", "nvme")]})),
            ("label nodes $0 $1 disk=ssd",),
        ),
        id="a node affinity that no node meets",
    ),
    pytest.param(
        Case(
            "node-affinity",
            ("selector-value", "drop-node-affinity"),
            a_pod(affinity=on_nodes({"matchFields": [label_in("metadata.name", "gone")]})),
        ),
        id="a node affinity with the name of no node",
    ),
    pytest.param(
        Case(
            "affinity-conflict",
            ("selector-value", "drop-requirement"),
            a_pod(
                affinity=on_nodes({"matchFields": [label_in("metadata.name", "$0"), label_in("metadata.name", "$1")]})
            ),
        ),
        id="a node affinity that wants two names",
    ),
    # For a pod that does not want the label itself kube-scheduler does not notice that a node gets it, for minutes.
    pytest.param(
        Case("added-affinity", ("label-node",), a_pod(schedulerName=POOLED, nodeSelector={"pool": "main"})),
        id="an affinity of the configuration",
    ),
    pytest.param(
        Case(
            "node-selector",
            ("selector-value+tolerate", "tolerate+drop-requirement"),
            owned("Deployment", nodeSelector={"disk": "sdd"}),
            (*TAINTED, "label nodes $0 $1 disk=ssd"),
        ),
        id="no single change helps",
    ),
    pytest.param(
        Case("feature", ("add-nodes",), a_pod(container=RESTARTED), templates=(NEWER,)),
        id="a feature that no node has",
    ),
    # -- other pods
    pytest.param(
        Case(
            "pod-anti-affinity",
            ("drop-anti-affinity-term", "raise-priority"),
            owned("Deployment", affinity=terms("podAntiAffinity", "x", ZONE)),
            first=two(),
        ),
        id="anti-affinity with pods that run",
    ),
    pytest.param(
        Case(
            "existing-anti-affinity",
            ("add-nodes", "raise-priority", "free-room"),
            a_pod(labels=SUBJECT | X),
            first=two(affinity=terms("podAntiAffinity", "x")),
        ),
        id="anti-affinity of pods that run",
    ),
    pytest.param(
        Case("pod-affinity", ("drop-affinity-term",), a_pod(affinity=terms("podAffinity", "nobody"))),
        id="affinity with no pod",
    ),
    pytest.param(
        Case(
            "pod-affinity",
            ("selector-value", "drop-affinity-term"),
            owned("Job", affinity=terms("podAffinity", "databse")),
            first=(a_pod("db", {"app": "database"}),),
        ),
        id="affinity with a typo",
    ),
    pytest.param(
        Case(
            "spread-skew",
            ("raise-max-skew", "tolerate", "honor-taints", "schedule-anyway"),
            a_pod(labels=SUBJECT | X, topologySpreadConstraints=spreading(ZONE)),
            ONE_TAINTED,
            first=(a_pod("a", X),),
        ),
        id="too uneven",
    ),
    pytest.param(
        Case(
            "spread-skew",
            ("honor-node-affinity", "selector-value", "drop-requirement", "raise-max-skew"),
            a_pod(
                labels=SUBJECT | X,
                nodeSelector={HOST: "$0"},
                topologySpreadConstraints=[spreading(ZONE)[0] | {"nodeAffinityPolicy": "Ignore"}],
            ),
            first=(a_pod("a", X, nodeSelector={HOST: "$0"}),),
        ),
        id="too uneven, because of nodes that the pod cannot use",
    ),
    pytest.param(
        Case(
            "spread-label",
            ("schedule-anyway",),
            owned("Deployment", topologySpreadConstraints=spreading("rack")),
        ),
        id="spreading by a label that no node has",
    ),
    pytest.param(
        Case(
            "spread-label",
            ("topology-key", "schedule-anyway"),
            owned("Deployment", topologySpreadConstraints=spreading("kubernetes.io/hostnam")),
        ),
        id="spreading by a label with a typo",
    ),
    pytest.param(
        Case(
            "spread-skew",
            ("own-spreading", "tolerate"),
            owned("ReplicaSet", number=3, schedulerName=SPREADING),
            ONE_TAINTED,
        ),
        id="spreading of the configuration",
    ),
    # -- the pod itself
    pytest.param(Case("gate", ("remove-gates",), a_pod(schedulingGates=[{"name": "example.com/quota"}])), id="a gate"),
    pytest.param(Case("scheduler", ("scheduler-name",), a_pod(schedulerName="foo-scheduler")), id="nobody serves it"),
    pytest.param(
        Case("scheduler", ("scheduler-name",), owned("Deployment", schedulerName="foo-scheduler")),
        id="nobody serves a Deployment",
        marks=FULL,
    ),
]
