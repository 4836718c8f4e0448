"""Resources of nodes and how they are scored, and images on nodes."""

from __future__ import annotations

from tests.oracle.draw.configurations import Piece, configure
from tests.oracle.draw.containers import container, enrich_resources, resize
from tests.oracle.draw.images import IMAGES, node_images
from tests.oracle.draw.labels import label_pools
from tests.oracle.draw.node_affinity import node_affinity
from tests.oracle.draw.nodes import make_nodes
from tests.oracle.draw.plugin_args import balanced_args, fit_args
from tests.oracle.draw.pods import fill, incoming, nominate
from tests.oracle.draw.scenario import Scenario


def resources(s: Scenario) -> None:
    d = s.d
    make_nodes(s, odd=0.35, taints=0.05)
    fill(s, 0, 3, rich=0.4)
    for pod in s.cluster["pods"]:
        if d.chance(0.25):
            resize(d, pod)
    pod = incoming(s)
    pod["spec"]["containers"] = [container(d, "c0", "rich")]
    enrich_resources(d, pod["spec"], 0.5)
    if d.chance(0.05):
        pod["spec"]["containers"][0].pop("resources", None)
    if d.chance(0.4):
        pod["spec"]["priority"] = d.one(0, 1000, 1000)
    if d.chance(0.15):
        nominate(s, 1, 2)
    if d.chance(0.25):
        configure(s, [fit_args], plugins=0.1)


def scoring(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 2, 9, odd=0.2, taints=0.08)
    fill(s, 0, 4, rich=0.3)
    pod = incoming(s)
    pod["spec"]["containers"] = [container(d, "c0", "rich")]
    enrich_resources(d, pod["spec"], 0.25)
    if d.chance(0.2):
        pod["spec"]["affinity"] = {"nodeAffinity": node_affinity(d, label_pools(s), 0.0, 1.0)}
    pieces: list[Piece] = [fit_args] if d.chance(0.9) else []
    if d.chance(0.4):
        pieces.append(balanced_args)
    configure(s, pieces, plugins=0.3)


def image_locality(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 1, 10, taints=0.05)
    for node in s.nodes:
        if d.chance(0.85):
            node["status"]["images"] = node_images(d)
    fill(s, 0, 1)
    spec = incoming(s)["spec"]
    spec["containers"] = [container(d, f"c{i}") for i in range(d.randint(1, 4))]
    if d.chance(0.4):
        spec["initContainers"] = [container(d, f"i{i}") for i in range(d.randint(1, 2))]
        if d.chance(0.4):
            spec["initContainers"][0]["restartPolicy"] = "Always"
    for c in spec["containers"] + spec.get("initContainers", []):
        c["image"] = d.choice(IMAGES)
    if d.chance(0.25):
        spec["volumes"] = [
            {"name": f"img{i}", "image": {"reference": d.choice(IMAGES), "pullPolicy": "IfNotPresent"}}
            for i in range(d.randint(1, 2))
        ]
    if d.chance(0.15):
        configure(s, [], plugins=1.0)
