"""Nodes: labels for every kind of topology, allocatable resources, and now and then taints, images and features."""

from __future__ import annotations

from tests.oracle.draw.images import node_images
from tests.oracle.draw.labels import BETA_REGION, BETA_ZONE, HOST, REGION, ZONE
from tests.oracle.draw.quantities import allocatable
from tests.oracle.draw.scenario import Draw, Obj, Scenario
from tests.oracle.draw.taints import make_taints

# What Gt and Lt are asked about: integers, and much that only looks like one.
GENERATIONS = [
    "1", "2", "3", "10", "007", "1.5", "abc", "", "9223372036854775807", "9223372036854775808", "0", "1e3", "0x10",
    "1_000",
]  # fmt: skip
FEATURES = ["RestartAllContainersOnContainerExits", "InPlacePodVerticalScalingInitContainers", "Unknown"]


def make_nodes(s: Scenario, low: int = 1, high: int = 9, odd: float = 0.06, taints: float = 0.06) -> None:
    """Nodes in shuffled order; `odd` and `taints` say how often one has strange resources or is tainted."""
    d = s.d
    count = d.randint(low, high)
    style = d.one("worker{}", "node-{:02d}", "rack{}-host.example.com", "ip-10-0-{}-7", "n{}")
    zones = d.one(["az1", "az2"], ["eu-west-1a", "eu-west-1b", "eu-west-1c"], ["z"], ["a", "b", "c", "d"])
    same = d.chance(0.3) and allocatable(d, odd)
    for i in range(count):
        name = style.format(i)
        node: Obj = {
            "metadata": {"name": name, "labels": node_labels(d, name, zones)},
            "spec": {},
            "status": {"allocatable": dict(same) if same else allocatable(d, odd)},
        }
        if d.chance(taints):
            node["spec"]["taints"] = make_taints(d, 1, 2)
        if d.chance(taints / 2):
            node["spec"]["unschedulable"] = True
        if d.chance(0.1):
            node["status"]["declaredFeatures"] = sorted(d.some(FEATURES, 0, 3))
        if d.chance(0.15):
            node["status"]["images"] = node_images(d)
        s.add("nodes", node)
    d.shuffle(s.nodes)


def node_labels(d: Draw, name: str, zones: list[str]) -> dict[str, str]:
    labels = {HOST: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": d.one("amd64", "arm64")}
    if not d.chance(0.08):
        labels[ZONE] = d.choice(zones)
        labels[REGION] = "region-" + labels[ZONE][:2] if d.chance(0.9) else "region-x"
    if d.chance(0.15):
        labels[BETA_ZONE] = d.choice(zones)
        labels[BETA_REGION] = "region-" + zones[0][:2]
    if d.chance(0.8):
        labels["rack"] = d.one("r0", "r1", "r2")
    if d.chance(0.8):
        labels["pool"] = d.one("general", "spot", "memory")
    if d.chance(0.5):
        labels["gen"] = d.choice(GENERATIONS)
    if d.chance(0.3):
        labels["ssd"] = d.one("true", "", "false")
    if d.chance(0.06):
        del labels[HOST]
    return labels
