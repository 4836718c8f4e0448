"""Volumes: the disks a pod names inline, persistent volumes, and the claims on them."""

from __future__ import annotations

from tests.oracle.draw.labels import BETA_REGION, BETA_ZONE, HOST, REGION, ZONE
from tests.oracle.draw.scenario import Draw, Obj, Scenario

EBS, RBD, GCE = "ebs.csi.aws.com", "rook-ceph.rbd.csi.ceph.com", "pd.csi.storage.gke.io"
INLINE = [
    "ebs", "gce", "iscsi", "rbd", "azure", "empty", "nfs", "cinder", "csi", "host",
    "ebs", "ebs", "gce", "gce", "iscsi", "iscsi", "rbd", "rbd",
]  # fmt: skip


def inline_volume(d: Draw, name: str) -> Obj:
    """Mostly disks that two pods cannot share, and few enough of each for two pods to want the same."""
    kind = d.choice(INLINE)
    readonly = {"readOnly": True} if d.chance(0.4) else {}
    return {"name": name, **inline_source(d, kind, readonly)}


def inline_source(d: Draw, kind: str, readonly: Obj) -> Obj:
    if kind == "ebs":
        ebs: Obj = {"volumeID": d.one("vol-0", "vol-1", "aws://us-east-1a/vol-2"), **readonly}
        if d.chance(0.2):
            ebs["partition"] = 1
        return {"awsElasticBlockStore": ebs}
    if kind == "gce":
        return {"gcePersistentDisk": {"pdName": d.one("disk-0", "disk-1"), **readonly}}
    if kind == "iscsi":
        iscsi: Obj = {
            "targetPortal": d.one("10.0.0.1:3260", "10.0.0.2:3260"),
            "lun": d.one(0, 1),
            "iqn": d.one("iqn.2026-01.example:s0", "iqn.2026-01.example:s1"),
        }
        return {"iscsi": iscsi | readonly}
    if kind == "rbd":
        rbd: Obj = {"monitors": d.some(["mon-a", "mon-b", "mon-c"], 1, 3), "image": d.one("img0", "img1"), **readonly}
        if d.chance(0.4):
            rbd["pool"] = d.one("rbd", "pool2")
        return {"rbd": rbd}
    if kind == "azure":
        uri = d.one("/subscriptions/x/d0", "/subscriptions/x/d1")
        return {"azureDisk": {"diskName": "d0", "diskURI": uri, "kind": "Managed"}}
    if kind == "cinder":
        return {"cinder": {"volumeID": d.one("c-0", "c-1")}}
    if kind == "csi":
        return {"csi": {"driver": d.one("secrets.example.com", EBS)}}
    harmless: dict[str, Obj] = {"nfs": {"server": "nfs", "path": "/x"}, "hostPath": {"path": "/var"}, "emptyDir": {}}
    member = {"nfs": "nfs", "host": "hostPath"}.get(kind, "emptyDir")
    return {member: harmless[member]}


def volume_source(d: Draw, handle: str, zones: list[str]) -> Obj:
    kind = d.random()
    if kind < 0.45:
        return {"csi": {"driver": d.one(EBS, RBD, GCE), "volumeHandle": handle}}
    if kind < 0.6:
        return {"awsElasticBlockStore": {"volumeID": d.one(handle, f"vol-{handle}", f"aws://{zones[0]}/vol-{handle}")}}
    if kind < 0.7:
        return {"gcePersistentDisk": {"pdName": handle}}
    if kind < 0.75:
        return {"azureDisk": {"diskName": handle, "diskURI": "/subscriptions/x/" + handle, "kind": "Managed"}}
    if kind < 0.9:
        return {"local": {"path": "/mnt/" + handle}}
    return {"nfs": {"server": "nfs", "path": "/" + handle}}


def make_volume(s: Scenario, name: str, cls: str, claim: Obj | None, zones: list[str]) -> Obj:
    d = s.d
    spec: Obj = {
        "capacity": {"storage": d.one("5Gi", "10Gi", "20Gi", "1Gi", "1e10")},
        "accessModes": d.some(["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"], 1, 2),
        "persistentVolumeReclaimPolicy": "Retain",
        **volume_source(d, name, zones),
    }
    if cls:
        spec["storageClassName"] = cls
    if d.chance(0.08):
        spec["volumeMode"] = "Block"
    if "local" in spec or d.chance(0.3):
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": volume_terms(s, zones)}}
    meta: Obj = {"name": name}
    labels = volume_labels(d, zones)
    if labels:
        meta["labels"] = labels
    if claim is not None:
        owner = claim["metadata"]
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "name": owner["name"], "namespace": owner["namespace"]}
        if not d.chance(0.06):
            spec["claimRef"]["uid"] = owner["uid"]
    phase = "Bound" if claim is not None else d.one("Available", "Available", "Available", "Released", "Failed")
    return s.add("persistentVolumes", {"metadata": meta, "spec": spec, "status": {"phase": phase}})


def volume_terms(s: Scenario, zones: list[str]) -> list[Obj]:
    """Where the volume can be reached from."""
    d = s.d
    key = d.one(HOST, HOST, ZONE, "rack", "gen")
    values = {HOST: s.node_names() or ["x"], ZONE: zones, "rack": ["r0", "r1"], "gen": ["1"]}[key]
    exp: Obj = {"key": key, "operator": d.one("In", "In", "In", "NotIn"), "values": d.some(values, 1, 3)}
    if key == "gen":
        exp["operator"] = d.one("Gt", "Lt", "In")
    terms: list[Obj] = [{"matchExpressions": [exp]}]
    if d.chance(0.15):
        terms.append({"matchExpressions": [{"key": "pool", "operator": "In", "values": ["spot"]}]})
    return terms


def volume_labels(d: Draw, zones: list[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    if d.chance(0.3):
        labels[d.one(ZONE, BETA_ZONE, ZONE)] = "__".join(d.some(zones, 1, 2))
    if d.chance(0.12):
        labels[d.one(REGION, BETA_REGION)] = d.one("region-az", "region-eu", "region-" + zones[0][:2])
    if d.chance(0.3):
        labels["media"] = d.one("ssd", "hdd")
    return labels


def make_claim(s: Scenario, name: str, ns: str, cls: str | None, bound: str | None, full: bool) -> Obj:
    """A claim, `bound` to a volume or not; the binding is half done if it is not `full`."""
    d = s.d
    spec: Obj = {
        "accessModes": d.one(["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteOncePod"], ["ReadOnlyMany"]),
        "resources": {"requests": {"storage": d.one("1Gi", "5Gi", "8Gi", "15Gi", "100Gi", "1e9")}},
    }
    if cls is not None:
        spec["storageClassName"] = cls
    meta: Obj = {"name": name, "namespace": ns, "uid": f"pvc-{ns}-{name}"}
    if bound:
        spec["volumeName"] = bound
    if bound and full:
        meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    if not bound:
        if d.chance(0.1) and s.nodes:
            meta["annotations"] = {"volume.kubernetes.io/selected-node": d.choice([*s.node_names(), "ghost-node"])}
        if d.chance(0.12):
            spec["selector"] = d.one(
                {"matchLabels": {"media": "ssd"}}, {"matchExpressions": [{"key": "media", "operator": "Exists"}]}
            )
        if d.chance(0.05):
            spec["volumeMode"] = "Block"
    phase = "Bound" if bound and full else "Lost" if d.chance(0.03) else "Pending"
    return s.add("persistentVolumeClaims", {"metadata": meta, "spec": spec, "status": {"phase": phase}})
