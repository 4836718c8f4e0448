"""Constraints on other pods: affinity, anti-affinity and topology spread. Many of the other pods are like the incoming
one.
"""

from __future__ import annotations

from tests.oracle.draw.configurations import configure
from tests.oracle.draw.labels import TOPOLOGIES, label_pools
from tests.oracle.draw.node_affinity import node_affinity
from tests.oracle.draw.nodes import make_nodes
from tests.oracle.draw.plugin_args import affinity_args, spread_args
from tests.oracle.draw.pod_affinity import add_affinity
from tests.oracle.draw.pods import fill, incoming, nominate
from tests.oracle.draw.scenario import Scenario
from tests.oracle.draw.spreading import add_constraints, owners
from tests.oracle.draw.taints import tolerations


def inter_pod_affinity(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 1, 9, odd=0.03)
    pod = incoming(s)
    s.alike = d.one(0.1, 0.4, 0.7)
    fill(s, 0, 3)
    for other in s.cluster["pods"]:
        if d.chance(0.45):
            add_affinity(d, other["spec"], other["metadata"].get("labels"))
    if d.chance(0.85):
        add_affinity(d, pod["spec"], pod["metadata"]["labels"], topologies=TOPOLOGIES[:5])
    if d.chance(0.1):
        pod["metadata"]["labels"] = {}
    if d.chance(0.25):
        pod["spec"]["priority"] = d.one(0, 100, 3000)
    if d.chance(0.2):
        nominate(s, 1, 3)
    if d.chance(0.4):
        configure(s, [affinity_args], plugins=0.1)


def topology_spread(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 1, 12, odd=0.03, taints=0.2)
    pod = incoming(s)
    s.alike = d.one(0.2, 0.5, 0.8)
    fill(s, 0, 3)
    if d.chance(0.7):
        add_constraints(d, pod["spec"], pod["metadata"]["labels"])
    if d.chance(0.25):
        pod["spec"]["affinity"] = {"nodeAffinity": node_affinity(d, label_pools(s), 0.9, 0.2, 0.05)}
    if d.chance(0.2):
        pod["spec"]["nodeSelector"] = {"pool": d.one("general", "spot")}
    if d.chance(0.3):
        pod["spec"]["tolerations"] = tolerations(d, 1, 3)
    owners(s)
    if d.chance(0.25):
        pod["spec"]["priority"] = d.one(0, 100, 3000)
    if d.chance(0.15):
        nominate(s, 1, 3)
    if d.chance(0.35):
        configure(s, [spread_args], plugins=0.15)
