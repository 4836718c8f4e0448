"""Mixtures: rare features, all features at once, and the same on many nodes."""

from __future__ import annotations

from tests.oracle.draw.budgets import budgets
from tests.oracle.draw.configurations import Piece, configure
from tests.oracle.draw.containers import add_ports, enrich_resources, resize
from tests.oracle.draw.images import IMAGES
from tests.oracle.draw.labels import label_pools
from tests.oracle.draw.node_affinity import node_affinity
from tests.oracle.draw.nodes import make_nodes
from tests.oracle.draw.plugin_args import affinity_args, balanced_args, fit_args, node_affinity_args, spread_args
from tests.oracle.draw.pod_affinity import add_affinity
from tests.oracle.draw.pods import fill, incoming, nominate
from tests.oracle.draw.scenario import Scenario
from tests.oracle.draw.spreading import add_constraints, owners
from tests.oracle.draw.storage import claim_for, storage_world
from tests.oracle.draw.taints import tolerations

GATES = ["example.com/a", "kueue.x-k8s.io/admission", "z"]


def misc(s: Scenario) -> None:
    if s.d.chance(0.06):
        no_nodes(s)
    else:
        rare_features(s)


def no_nodes(s: Scenario) -> None:
    incoming(s)
    if s.d.chance(0.5):
        fill(s)
    if s.d.chance(0.5):
        configure(s, [], plugins=1.0)


def rare_features(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 1, 8, odd=0.05, taints=0.15)
    pod = incoming(s)
    s.alike = d.one(0.1, 0.6)
    fill(s, 0, 3, priority=d.chance(0.3))
    spec, own = pod["spec"], pod["metadata"]["labels"]
    if d.chance(0.12):
        spec["schedulingGates"] = [{"name": n} for n in d.some(GATES, 1, 3)]
    if d.chance(0.2):
        spec["restartPolicy"] = "Never"
        spec["containers"][0]["restartPolicy"] = "Never"
        action = d.one("RestartAllContainers", "RestartAllContainers", "Restart")
        rule = {"action": action, "exitCodes": {"operator": "In", "values": [42]}}
        spec["containers"][0]["restartPolicyRules"] = [rule]
    if d.chance(0.3):
        spec["tolerations"] = tolerations(d, 1, 3)
    if d.chance(0.3):
        add_affinity(d, spec, own)
    if d.chance(0.2):
        spec.setdefault("affinity", {})["nodeAffinity"] = node_affinity(d, label_pools(s), 0.5, 0.9)
    if d.chance(0.2):
        add_constraints(d, spec, own)
    if d.chance(0.2):
        add_ports(d, spec, 1, 2)
    if d.chance(0.5):
        spec["priority"] = d.one(0, 10, 100, 3000, -100)
    if d.chance(0.05):
        spec["nodeName"] = d.choice(s.node_names())
    if d.chance(0.5):
        nominate(s, 1, 4)
    if d.chance(0.75):
        pieces: list[Piece] = d.some([fit_args, balanced_args, affinity_args, spread_args], 0, 2)
        configure(s, pieces, plugins=0.85, profiles=0.3)


def mixed(s: Scenario, low: int = 1, high: int = 14) -> None:
    d = s.d
    make_nodes(s, low, high, odd=0.05, taints=0.15)
    pod = incoming(s)
    s.alike = d.one(0.1, 0.6)
    fill(s, 0, d.one(3, 6), priority=d.chance(0.7))
    for other in s.cluster["pods"]:
        if d.chance(0.15):
            add_affinity(d, other["spec"], other["metadata"].get("labels"))
        if d.chance(0.1):
            add_ports(d, other["spec"], 1, 1)
        if d.chance(0.05):
            resize(d, other)
    every_wish(s)
    if d.chance(0.2):
        classes = storage_world(s)
        claim_for(s, "data", pod["metadata"]["namespace"], classes)
        pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    if d.chance(0.3):
        nominate(s, 1, 3)
    if d.chance(0.05):
        pod["status"] = {"nominatedNodeName": d.choice([*s.node_names(), "ghost-node"])}
    if d.chance(0.4):
        budgets(s)
    if d.chance(0.35):
        pools = label_pools(s)
        pieces: list[Piece] = d.some(
            [fit_args, balanced_args, affinity_args, spread_args, lambda d: node_affinity_args(d, pools)], 0, 3
        )
        configure(s, pieces, plugins=0.4)


def every_wish(s: Scenario) -> None:
    """The incoming pod asks for a bit of all that a pod can ask for."""
    d, spec, own = s.d, s.pod["spec"], s.pod["metadata"]["labels"]
    enrich_resources(d, spec, 0.15)
    if d.chance(0.6):
        spec["priority"] = d.one(0, 100, 1000, 3000)
    if d.chance(0.35):
        spec["tolerations"] = tolerations(d, 1, 3)
    if d.chance(0.35):
        add_affinity(d, spec, own, required=0.4, preferred=0.6)
    if d.chance(0.35):
        spec.setdefault("affinity", {})["nodeAffinity"] = node_affinity(d, label_pools(s), 0.4, 0.8, 0.1)
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


def large(s: Scenario) -> None:
    mixed(s, 120, 220)
