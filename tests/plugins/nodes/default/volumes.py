"""Small clusters with claims, volumes and drivers, and what a volume policy says of their nodes.

Every expectation in the tests was taken from kube-scheduler 1.36.4's own behaviour (its source, and the recorder in
tests/oracle).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import SKIP, RejectPod
from stowplan.objects.changes import Put
from stowplan.objects.kinds import KINDS, convert
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
TOO_MANY = "node(s) exceed max volume count"
WRONG_ZONE = "node(s) had no available volume zone"
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
EPHEMERAL: dict[str, Any] = {"ephemeral": {"volumeClaimTemplate": {}}}


def reached_from(label: str, value: str) -> dict[str, Any]:
    """The node affinity of a volume that only nodes with this label can reach."""
    term = {"matchExpressions": [{"key": label, "operator": "In", "values": [value]}]}
    return {"required": {"nodeSelectorTerms": [term]}}


ON_A, ON_B = reached_from("host", "a"), reached_from("host", "b")


def named(kind: str, name: str, /, meta: Mapping[str, Any] = {}, **fields: Any) -> Object:
    return convert(KINDS[kind], {"metadata": {"name": name, **meta}, **fields})


def node(name: str) -> Object:
    return named("Node", name, {"labels": {"host": name}})


def zoned(name: str, labels: Mapping[str, str]) -> Object:
    return named("Node", name, {"labels": labels})


def a_pod(*volumes: Mapping[str, Any], name: str = "incoming", on: str = "", namespace: str = "default") -> Pod:
    spec = {"nodeName": on, "volumes": [{"name": f"v{at}", **volume} for at, volume in enumerate(volumes)]}
    return convert(Pod, {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"}, "spec": spec})


def mount(claim: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": claim}}


def claim(name: str, volume: str = "", meta: Mapping[str, Any] = {}, size: str = "1Gi", **spec: Any) -> Object:
    """A claim, bound if it has a volume."""
    asked = {"requests": {"storage": size}}
    filled = {"accessModes": ["ReadWriteOnce"], "resources": asked, "volumeName": volume, **spec}
    described = {"namespace": "default", "uid": f"uid-{name}", "annotations": BOUND if volume else {}, **meta}
    return named("PersistentVolumeClaim", name, described, spec=filled)


UNBOUND = claim("u", storageClassName="wait")


def volume(
    name: str, size: str = "10Gi", meta: Mapping[str, Any] = {}, phase: str = "Available", **spec: Any
) -> Object:
    filled = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "wait", **spec}
    return named("PersistentVolume", name, meta, spec=filled, status={"phase": phase})


def csi(driver: str, handle: str) -> dict[str, Any]:
    return {"csi": {"driver": driver, "volumeHandle": handle}}


def wait(name: str = "wait", provisioner: str = "kubernetes.io/no-provisioner", **fields: Any) -> Object:
    return named("StorageClass", name, provisioner=provisioner, volumeBindingMode="WaitForFirstConsumer", **fields)


def limits(node_name: str, *moved: str, **counts: int) -> Object:
    """A CSINode; a driver's dots are written as underscores."""
    drivers = [{"name": driver.replace("_", "."), "allocatable": {"count": count}} for driver, count in counts.items()]
    return named("CSINode", node_name, {"annotations": {MIGRATED: ",".join(moved)}}, spec={"drivers": drivers})


def attachment(name: str, attacher: str, node_name: str, pv: str | None) -> Object:
    source = {} if pv is None else {"persistentVolumeName": pv}
    return named("VolumeAttachment", name, spec={"attacher": attacher, "nodeName": node_name, "source": source})


def cluster_of(*objects: Object) -> ClusterState:
    state = ClusterState()
    for found in objects:
        state.apply(Put(found))
    return state


def said(plugin: Any, pod: Pod, state: ClusterState) -> dict[str, tuple[str, ...]]:
    """The reasons that a plugin has against each node; {} for SKIP; "" stands for the cluster if it refuses the pod."""
    cluster = Cluster(state)
    answer = plugin.pre_filter(pod, cluster)
    if isinstance(answer, RejectPod):
        assert not answer.resolvable
        return {"": answer.reasons}
    if answer is SKIP:
        return {}
    found: dict[str, tuple[str, ...]] = dict.fromkeys(cluster.nodes.names, ())
    for reject in plugin.filter(pod, cluster.nodes):
        assert reject.resolvable is (reject.reason in (DISK, IN_USE, TOO_MANY))
        for at in np.flatnonzero(reject.rows).tolist():
            found[cluster.nodes.names[at]] += (reject.reason,)
    return found
