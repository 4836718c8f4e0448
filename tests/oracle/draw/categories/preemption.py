"""Full clusters and a pod of high priority: who would have to go.

Each scenario is of one kind, which says what is scarce: cpu and memory, places, ports, an extended resource, a volume
that only one pod may use, or room under affinity and spread. In a "tie" all nodes carry the same pods.
"""

from __future__ import annotations

from tests.oracle.draw.budgets import budgets
from tests.oracle.draw.configurations import configure
from tests.oracle.draw.containers import add_ports, resize
from tests.oracle.draw.labels import HOST, ZONE, label_pools
from tests.oracle.draw.node_affinity import node_affinity
from tests.oracle.draw.nodes import make_nodes
from tests.oracle.draw.plugin_args import preemption_args
from tests.oracle.draw.pod_affinity import add_affinity
from tests.oracle.draw.pods import DELETED, existing, incoming, nominate
from tests.oracle.draw.quantities import EXTENDED
from tests.oracle.draw.scenario import Obj, Scenario
from tests.oracle.draw.spreading import add_constraints
from tests.oracle.draw.taints import tolerations
from tests.oracle.draw.volumes import EBS, make_claim, make_volume

KINDS = [
    "resources", "resources", "count", "ports", "affinity", "affinity", "spread", "spread", "rwop", "tie", "tie",
    "mixed", "mixed", "nominated", "extended",
]  # fmt: skip
NEAR = [HOST, ZONE, "rack"]
GPU = EXTENDED[0]


def preemption(s: Scenario) -> None:
    d = s.d
    kind = d.choice(KINDS)
    make_nodes(s, 1, 7, odd=0.05, taints=0.1)
    spec = incoming(s)["spec"]
    s.alike = d.one(0.2, 0.6)
    spec["priority"] = d.one(1000, 1000, 2000, 2000, 500, 100, 0, 1000000)
    narrow_nodes(s, kind)
    levels = d.one([0], [0, 100], [-10, 0, 100, 500], [0, 100, 500, 1000, 3000])
    ask_for_room(s, kind)
    bound_pods(s, kind, levels)
    wishes(s, kind)
    if d.chance(0.12):
        spec["preemptionPolicy"] = d.one("Never", "PreemptLowerPriority")
    if kind == "nominated" or d.chance(0.15):
        nominate(s, 1, 3)
    if d.chance(0.2):
        second_attempt(s)
    if d.chance(0.08):
        spec["nodeSelector"] = {"pool": d.one("general", "spot")}
    if d.chance(0.06):
        spec["affinity"] = {**spec.get("affinity", {}), "nodeAffinity": node_affinity(d, label_pools(s), 1.0, 0.2, 0.6)}
    if d.chance(0.15):
        spec["tolerations"] = tolerations(d, 1, 2)
    budgets(s)
    if d.chance(0.12):
        configure(s, [preemption_args], plugins=0.4)


def narrow_nodes(s: Scenario, kind: str) -> None:
    """Nodes that a few pods fill."""
    d = s.d
    for node in s.nodes:
        allocatable = node["status"]["allocatable"]
        allocatable.update({"cpu": "2", "memory": "4Gi"})
        if kind == "count":
            allocatable["pods"] = d.one("2", "3", "4")
        if kind == "extended":
            allocatable[GPU] = d.one("0", "1", "2")
        if kind == "tie":
            node["spec"], allocatable["pods"] = {}, "110"


def ask_for_room(s: Scenario, kind: str) -> None:
    """Requests of the incoming pod: large where cpu and memory are scarce, small where something else is."""
    d = s.d
    asked = {"cpu": d.one("1", "1300m", "1900m", "2"), "memory": d.one("1Gi", "2700Mi", "3Gi")}
    if kind in ("ports", "affinity", "spread", "rwop", "count", "extended"):
        asked = {"cpu": "100m", "memory": "64Mi"}
    if kind == "tie":
        asked = {"cpu": "1900m", "memory": "1Gi"}
    s.pod["spec"]["containers"][0]["resources"] = {"requests": asked}


def bound_pods(s: Scenario, kind: str, levels: list[int]) -> None:
    d = s.d
    shape = [d.one("300m", "500m", "900m") for _ in range(3)]
    for host in s.node_names():
        for i in range(3 if kind == "tie" else d.randint(2, 6) if d.chance(0.9) else 0):
            other = existing(s, host)
            if d.chance(0.05):
                other["metadata"].pop("labels", None)
            if kind == "tie":
                twin(other, i, levels[i % len(levels)], shape[i])
            else:
                other["spec"]["priority"] = d.choice(levels)
                used = {
                    "cpu": d.one("200m", "400m", "500m", "900m", "0"),
                    "memory": d.one("128Mi", "700Mi", "1Gi", "2Gi"),
                }
                other["spec"]["containers"][0]["resources"] = {"requests": used}
            hold_scarce(s, other, kind)
            end_soon(s, other)


def twin(other: Obj, number: int, priority: int, cpu: str) -> None:
    """The pod that every node has under this number."""
    other["spec"]["priority"] = priority
    other["status"]["startTime"] = f"2026-01-1{number}T00:00:00Z"
    other["metadata"]["namespace"] = "default"
    other["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": "1Gi"}}


def hold_scarce(s: Scenario, other: Obj, kind: str) -> None:
    """Let a bound pod have what the incoming one will want."""
    d, spec = s.d, other["spec"]
    if kind in ("ports", "mixed") and d.chance(0.6):
        add_ports(d, spec, 1, 2)
    if kind in ("affinity", "mixed") and d.chance(0.6):
        add_affinity(d, spec, None, required=0.9, preferred=0.1, topologies=NEAR)
    if kind == "extended" and d.chance(0.6):
        spec["containers"][0]["resources"]["limits"] = {GPU: "1"}
    if kind == "rwop" and d.chance(0.4):
        other["metadata"]["namespace"] = s.pod["metadata"]["namespace"]
        spec["volumes"] = [mount("v", d.one("one", "two"))]


def end_soon(s: Scenario, other: Obj) -> None:
    """Some bound pods are being deleted, by a preemption or otherwise; some have ended; some are being resized."""
    d = s.d
    if d.chance(0.08):
        other["metadata"]["deletionTimestamp"] = DELETED
        if d.chance(0.6):
            status = d.one("True", "True", "False")
            other["status"]["conditions"] = [
                disruption(status, d.one("PreemptionByScheduler", "EvictionByEvictionAPI"))
            ]
    if d.chance(0.04):
        other["status"]["phase"] = d.one("Succeeded", "Failed")
    if d.chance(0.05):
        resize(d, other)


def wishes(s: Scenario, kind: str) -> None:
    """Let the incoming pod want what is scarce."""
    d, spec, own = s.d, s.pod["spec"], s.pod["metadata"]["labels"]
    if kind == "ports" or (kind == "mixed" and d.chance(0.4)):
        add_ports(d, spec, 1, 2)
    if kind == "affinity" or (kind == "mixed" and d.chance(0.5)):
        add_affinity(d, spec, own, required=0.95, preferred=0.1, topologies=NEAR)
    if kind in ("spread", "affinity"):
        for node in s.nodes:
            node["spec"] = {}
            node["status"]["allocatable"].update({"cpu": "16", "memory": "64Gi", "pods": "110"})
    if kind == "spread" or (kind == "mixed" and d.chance(0.4)):
        add_constraints(d, spec, own, hard=0.95, high=2)
    if kind == "extended":
        spec["containers"][0]["resources"]["limits"] = {GPU: d.one("1", "2")}
    if kind == "rwop":
        volumes_of_one(s)


def volumes_of_one(s: Scenario) -> None:
    """Two bound claims, mostly of the mode that lets a single pod in, and the incoming pod on one or both."""
    d, spec, ns = s.d, s.pod["spec"], s.pod["metadata"]["namespace"]
    s.add("storageClasses", {"metadata": {"name": "fast"}, "provisioner": EBS})
    for name in ("one", "two"):
        claim = make_claim(s, name, ns, "fast", "pv-" + name, full=True)
        claim["spec"]["accessModes"] = ["ReadWriteOncePod"] if d.chance(0.8) else ["ReadWriteOnce"]
        volume = make_volume(s, "pv-" + name, "fast", claim, ["az1"])
        volume["metadata"].pop("labels", None)
    spec["volumes"] = [mount("v", d.one("one", "two", "missing", "one"))]
    if d.chance(0.3):
        spec["volumes"].append(mount("w", "two"))


def mount(name: str, claim: str) -> Obj:
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}


def second_attempt(s: Scenario) -> None:
    """The incoming pod has preempted before: it has a nominated node, and some of its victims are terminating."""
    d = s.d
    s.pod["status"] = {"nominatedNodeName": d.choice([*s.node_names(), "ghost-node"])}
    for other in s.cluster["pods"]:
        if other["spec"].get("nodeName") == s.pod["status"]["nominatedNodeName"] and d.chance(0.3):
            other["metadata"]["deletionTimestamp"] = DELETED
            other["status"]["conditions"] = [disruption("True", "PreemptionByScheduler")]


def disruption(status: str, reason: str) -> Obj:
    return {"type": "DisruptionTarget", "status": status, "reason": reason}
