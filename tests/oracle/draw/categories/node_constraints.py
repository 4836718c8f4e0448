"""Constraints between a pod and a node: taints and tolerations, node affinity, a node's name, host ports."""

from __future__ import annotations

from tests.oracle.draw.configurations import configure
from tests.oracle.draw.containers import add_ports, enrich_resources
from tests.oracle.draw.labels import label_pools
from tests.oracle.draw.node_affinity import node_affinity
from tests.oracle.draw.nodes import make_nodes
from tests.oracle.draw.plugin_args import node_affinity_args
from tests.oracle.draw.pods import fill, incoming, nominate
from tests.oracle.draw.scenario import Draw, Obj, Scenario
from tests.oracle.draw.taints import UNSCHEDULABLE, make_taints, tolerations

NODE_LABELS = [
    ("pool", "general"), ("rack", "r1"), ("ssd", ""), ("kubernetes.io/arch", "amd64"), ("gen", "2"),
    ("missing-key", "x"),
]  # fmt: skip


def taints(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 1, 10)
    soft = d.chance(0.4)
    for node in s.nodes:
        taint(d, node["spec"], soft)
    fill(s, 0, 1)
    pod = incoming(s)
    pod["spec"]["tolerations"] = tolerations(d, 0, 6)
    if d.chance(0.2):
        pod["spec"]["tolerations"].append({"key": UNSCHEDULABLE, "operator": "Exists"})
    if d.chance(0.2):
        configure(s, [], plugins=0.8)


def taint(d: Draw, spec: Obj, soft: bool) -> None:
    """Taints for most nodes, all preferences if `soft`; a node out of service may or may not carry its taint."""
    if d.chance(0.75):
        spec["taints"] = make_taints(d, 1, 5)
        if soft and d.chance(0.8):
            for t in spec["taints"]:
                t["effect"] = "PreferNoSchedule"
            spec["taints"] = list({t["key"]: t for t in spec["taints"]}.values())
    if d.chance(0.15):
        spec["unschedulable"] = True
        if d.chance(0.5):
            spec.setdefault("taints", [])
            if not any(t["key"] == UNSCHEDULABLE for t in spec["taints"]):
                spec["taints"].append({"key": UNSCHEDULABLE, "effect": "NoSchedule"})


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
        pod["spec"]["nodeSelector"] = dict(d.some(NODE_LABELS, 1, 2))
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
