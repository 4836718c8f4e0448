"""What storage a cluster offers: classes, CSI drivers with their limits and capacities, and claims in every state."""

from __future__ import annotations

from tests.oracle.draw.labels import ZONE, node_zones
from tests.oracle.draw.pods import DELETED
from tests.oracle.draw.scenario import Draw, Obj, Scenario
from tests.oracle.draw.volumes import EBS, GCE, RBD, make_claim, make_volume

PROVISIONERS = [EBS, RBD, "kubernetes.io/no-provisioner", "kubernetes.io/aws-ebs", "example.com/ext", GCE]
MIGRATED = ["kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/azure-disk", "kubernetes.io/cinder"]


def storage_world(s: Scenario) -> list[str]:
    """Classes, drivers, limits and capacities; the classes' names."""
    d = s.d
    zones = node_zones(s)
    classes: list[str] = []
    for i in range(d.randint(1, 4)):
        classes.append(s.add("storageClasses", storage_class(d, f"class{i}", zones))["metadata"]["name"])
    for driver in d.some([EBS, RBD, "example.com.ext", GCE], 0, 3):
        s.add("csiDrivers", {"metadata": {"name": driver}, "spec": {"storageCapacity": d.chance(0.6)}})
    if d.chance(0.7):
        for node in s.node_names():
            if not d.chance(0.15):
                s.add("csiNodes", csi_node(d, node))
    if d.chance(0.5):
        for i in range(d.randint(1, 6)):
            s.add("csiStorageCapacities", capacity(d, f"cap-{i}", classes, zones))
    return classes


def storage_class(d: Draw, name: str, zones: list[str]) -> Obj:
    cls: Obj = {"metadata": {"name": name}, "provisioner": d.choice(PROVISIONERS)}
    if d.chance(0.95):
        late = "WaitForFirstConsumer"
        cls["volumeBindingMode"] = d.one(late, late, late, "Immediate")
    if d.chance(0.25):
        cls["allowedTopologies"] = [
            {"matchLabelExpressions": [{"key": key, "values": d.some(values, 1, 2)}]}
            for key, values in d.some([(ZONE, zones), ("rack", ["r0", "r1"]), ("pool", ["spot", "general"])], 1, 2)
        ]
    if d.chance(0.15):
        cls["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    return cls


def csi_node(d: Draw, node: str) -> Obj:
    """The drivers of one node and how many volumes each may attach there."""
    csi: Obj = {"metadata": {"name": node}, "spec": {"drivers": []}}
    if d.chance(0.5):
        migrated = ",".join(d.some(MIGRATED, 0, 4))
        csi["metadata"]["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": migrated}
    for driver in d.some([EBS, RBD, GCE, "disk.csi.azure.com"], 0, 3):
        row: Obj = {"name": driver, "nodeID": node}
        if d.chance(0.85):
            row["allocatable"] = {"count": d.one(0, 1, 2, 3, 5)}
        csi["spec"]["drivers"].append(row)
    return csi


def capacity(d: Draw, name: str, classes: list[str], zones: list[str]) -> Obj:
    cap: Obj = {
        "metadata": {"name": name, "namespace": "default"},
        "storageClassName": d.choice([*classes, "unknown"]),
    }
    if d.chance(0.9):
        cap["capacity"] = d.one("1Gi", "10Gi", "100Gi", "5e9", "0")
    if d.chance(0.3):
        cap["maximumVolumeSize"] = d.one("5Gi", "20Gi")
    if d.chance(0.9):
        cap["nodeTopology"] = d.one(
            {},
            {"matchLabels": {ZONE: d.choice(zones)}},
            {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r0", "r1"]}]},
            {"matchExpressions": [{"key": "pool", "operator": "Exists"}]},
        )
    return cap


def claim_for(s: Scenario, name: str, ns: str, classes: list[str]) -> None:
    """A claim in one of the states claims are found in, and its volume."""
    d = s.d
    zones = node_zones(s)
    cls = d.choice([*classes, *classes, "", "no-such-class"]) if d.chance(0.12) else d.choice(classes)
    kind = d.random()
    if cls not in late_classes(s) and d.chance(0.75):
        kind = 0.0  # an unbound claim of an immediate class ends the search at once
    if kind < 0.55:
        claim = make_claim(s, name, ns, cls, "pv-" + name, full=True)
        if d.chance(0.98):
            make_volume(s, "pv-" + name, cls, claim, zones)
    elif kind < 0.59:
        claim = make_claim(s, name, ns, cls, "pv-" + name, full=False)
        make_volume(s, "pv-" + name, cls, claim if d.chance(0.5) else None, zones)
    elif kind < 0.98:
        claim = make_claim(s, name, ns, cls if d.chance(0.97) else None, None, full=False)
        for i in range(d.one(0, 0, 1, 2, 3)):
            prebound = claim if d.chance(0.1) else None
            make_volume(s, f"free-{name}-{i}", cls, prebound, zones)
    else:
        return  # a claim that does not exist
    if d.chance(0.02):
        claim["metadata"]["deletionTimestamp"] = DELETED
        claim["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]


def late_classes(s: Scenario) -> set[str]:
    """The classes whose volumes are bound when a pod is placed, not before."""
    return {
        c["metadata"]["name"]
        for c in s.cluster["storageClasses"]
        if c.get("volumeBindingMode") == "WaitForFirstConsumer"
    }
