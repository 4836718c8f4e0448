"""Volumes of pods. Some scenarios are about inline disks, some about attach limits, the others about everything."""

from __future__ import annotations

from tests.oracle.draw.configurations import configure
from tests.oracle.draw.nodes import make_nodes
from tests.oracle.draw.pods import fill, incoming
from tests.oracle.draw.scenario import Obj, Scenario
from tests.oracle.draw.storage import claim_for, storage_world
from tests.oracle.draw.volumes import EBS, RBD, inline_volume


def volumes(s: Scenario) -> None:
    d = s.d
    make_nodes(s, 1, 8, odd=0.03, taints=0.05)
    pod = incoming(s)
    s.alike = 0.5
    fill(s, 0, 3)
    classes = storage_world(s)
    if d.chance(0.3):
        pod["spec"]["priority"] = d.one(0, 100, 3000)
    mode = d.one("inline", "limits", "all", "all")
    pod["spec"]["volumes"] = [own_volume(s, i, mode, classes) for i in range(d.randint(1, 3))]
    for i, other in enumerate(s.cluster["pods"]):
        if d.chance(0.7):
            other["spec"]["volumes"] = others_volumes(s, i, other, mode, classes)
    if mode == "limits":
        only_limits(s)
    attachments(s)
    if d.chance(0.1):
        configure(s, [], plugins=1.0)


def own_volume(s: Scenario, number: int, mode: str, classes: list[str]) -> Obj:
    """A volume of the incoming pod: a claim, an ephemeral one, or a disk named inline."""
    d, ns = s.d, s.pod["metadata"]["namespace"]
    kind = {"inline": 1.0, "limits": 0.0}.get(mode, d.random())
    if kind < 0.65:
        claim_for(s, f"c{number}", ns, classes)
        return claimed(f"v{number}", f"c{number}")
    if kind >= 0.75:
        return inline_volume(d, f"v{number}")
    template = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": d.choice(classes),
        "resources": {"requests": {"storage": "1Gi"}},
    }
    if d.chance(0.85):
        before = len(claims(s))
        claim_for(s, f"incoming-v{number}", ns, classes)
        for claim in claims(s)[before:]:
            if d.chance(0.85):
                claim["metadata"]["ownerReferences"] = [
                    {"apiVersion": "v1", "kind": "Pod", "name": "incoming", "uid": "u0", "controller": True}
                ]
    return {"name": f"v{number}", "ephemeral": {"volumeClaimTemplate": {"spec": template}}}


def others_volumes(s: Scenario, number: int, other: Obj, mode: str, classes: list[str]) -> list[Obj]:
    """Volumes of a bound pod: disks named inline, claims of the incoming pod, and claims of its own."""
    d, here = s.d, other["metadata"]["namespace"]
    out = []
    for i in range(d.randint(1, 2)):
        kind = {"inline": 0.0}.get(mode, d.random())
        if kind < 0.4:
            out.append(inline_volume(d, f"v{i}"))
        elif kind < 0.6 and here == s.pod["metadata"]["namespace"]:
            out.append(claimed(f"v{i}", d.one("c0", "c1", "c2")))
        else:
            claim_for(s, f"x{number}-{i}", here, classes)
            out.append(claimed(f"v{i}", f"x{number}-{i}"))
    return out


def claimed(name: str, claim: str) -> Obj:
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}


def claims(s: Scenario) -> list[Obj]:
    return s.cluster.get("persistentVolumeClaims", [])


def only_limits(s: Scenario) -> None:
    """Take away what else could reject a node, and make the limits tight."""
    for claim in claims(s):
        claim["spec"]["accessModes"] = ["ReadWriteOnce"]
    for volume in s.cluster.get("persistentVolumes", []):
        volume["metadata"].pop("labels", None)
        if "local" not in volume["spec"]:
            volume["spec"].pop("nodeAffinity", None)
    for csi in s.cluster.get("csiNodes", []):
        for driver in csi["spec"]["drivers"]:
            driver["allocatable"] = {"count": s.d.one(0, 1, 2)}


def attachments(s: Scenario) -> None:
    d = s.d
    names = [v["metadata"]["name"] for v in s.cluster.get("persistentVolumes", [])]
    for i in range(d.randint(0, 4)):
        if not names:
            break
        source: Obj = {"persistentVolumeName": d.choice([*names, "gone"])}
        spec: Obj = {"attacher": d.one(EBS, RBD), "nodeName": d.choice(s.node_names()), "source": source}
        status: Obj = {"attached": d.chance(0.5)}
        s.add("volumeAttachments", {"metadata": {"name": f"va{i}"}, "spec": spec, "status": status})
