"""VolumeZone: the node must be in the zone and region of the labels of the pod's bound volumes.

Nodes without any zone or region label pass: a cluster with a single zone needs no labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.cause_texts import condition
from stowplan.framework.causes import Cause, Detail, NodeCause
from stowplan.framework.decision import SKIP, Reject, RejectPod, Skip
from stowplan.framework.interfaces import Wake
from stowplan.objects.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_SEPARATOR
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import LabelRequirement
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, not_found
from stowplan.plugins.nodes.default import claim_causes

REASON = "node(s) had no available volume zone"
SUCCESSOR = {BETA_ZONE: ZONE, BETA_REGION: REGION}
KEYS = (BETA_ZONE, BETA_REGION, ZONE, REGION)


class VolumeZone:
    reads = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass")
    local = "node"
    ignores_requests = True

    def pre_filters_by_shape(self, pod: Pod) -> bool:
        return not pod.shape.volumes

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | Skip | None:
        zones = _zones(pod, cluster)
        if isinstance(zones, str):
            return RejectPod((zones,), resolvable=False)
        return None if zones else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        zones = _zones(pod, nodes.cluster)
        elsewhere = np.zeros(len(nodes), np.bool_)
        for zone in () if isinstance(zones, str) else zones:
            elsewhere |= ~_matches(zone, nodes)
        if elsewhere.any():
            yield Reject(elsewhere & _labelled(nodes), REASON, resolvable=False)

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        for name in dict.fromkeys(_claim_names(pod)):
            claim = nodes.cluster.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")
            volume = None if claim is None else nodes.cluster.get(PersistentVolume, claim.spec.volume_name)
            for zone in () if volume is None else _zones_of(volume):
                rows = ~_matches(zone, nodes) & _labelled(nodes)
                if volume is not None and rows.any():
                    text = f"volume {volume.name} of claim {name} is in {condition(zone)}"
                    details: dict[str, Detail] = {"volume": volume.name, "claim": f"{pod.namespace}/{name}"}
                    details |= {"key": zone.key, "values": zone.values}
                    yield NodeCause(rows, Cause("volume-zone", text, details))

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterator[Cause]:
        return claim_causes.problems(pod, cluster, claim_causes.OF_ZONES)

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("StorageClass", ("Add",), hint="class_waits_for_pod")
        yield Wake("Node", ("Add", "UpdateNodeLabel"))
        yield Wake("PersistentVolumeClaim", ("Add", "Update"), hint="is_claimed")
        yield Wake("PersistentVolume", ("Add", "Update"), hint="volume_moved")

    def class_waits_for_pod(self, pod: Pod, old: StorageClass | None, new: StorageClass | None) -> bool:  # noqa: ARG002
        return new is not None and new.waits

    def is_claimed(self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:  # noqa: ARG002
        return new is not None and new.namespace == pod.namespace and new.name in _claim_names(pod)

    def volume_moved(self, pod: Pod, old: PersistentVolume | None, new: PersistentVolume | None) -> bool:  # noqa: ARG002
        return new is not None and (old is None or _zones_of(old) != _zones_of(new))


def _claim_names(pod: Pod) -> list[str]:
    """Return the claims that the pod names; as in kube-scheduler, without those of ephemeral volumes."""
    mounted = (volume.persistent_volume_claim for volume in pod.shape.volumes)
    return [claim.claim_name for claim in mounted if claim is not None]


def _zones(pod: Pod, cluster: Cluster) -> list[LabelRequirement] | str:
    """Return the zones and regions of the pod's bound volumes; a text if they cannot be found out."""
    zones: list[LabelRequirement] = []
    for name in _claim_names(pod):
        if not name:
            return "PersistentVolumeClaim had no name"
        claim = cluster.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")
        if claim is None:
            return not_found("persistentvolumeclaim", name)
        if not claim.spec.volume_name:
            if problem := _not_waiting(claim, cluster):
                return problem
            continue
        volume = cluster.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            return not_found("persistentvolume", claim.spec.volume_name)
        zones += _zones_of(volume)
    return zones


def _not_waiting(claim: PersistentVolumeClaim, cluster: Cluster) -> str:
    """Return why an unbound claim is a problem; empty if its class waits for a pod."""
    name = claim.storage_class
    if not name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = cluster.get(StorageClass, name)
    if storage_class is None:
        return not_found("storageclass.storage.k8s.io", name)
    if storage_class.volume_binding_mode is None:
        return f'VolumeBindingMode not set for StorageClass "{name}"'
    return "" if storage_class.waits else "PersistentVolume had no name"


def _zones_of(volume: PersistentVolume) -> list[LabelRequirement]:
    """Return the zones and regions in a volume's labels. Two underscores join several values."""
    found: list[LabelRequirement] = []
    for key in KEYS:
        values = [value.strip() for value in volume.labels.get(key, "").split(ZONE_SEPARATOR)]
        if all(values):  # a label with an empty value is ignored
            found.append(LabelRequirement(key, "In", tuple(sorted(set(values)))))
    return found


def _matches(zone: LabelRequirement, nodes: Nodes) -> Bools:
    """Return the nodes with this label. A node without the beta label may have its successor."""
    label = nodes.label(zone.key)
    there = label.meets(zone)
    if zone.key in SUCCESSOR:
        successor = LabelRequirement(SUCCESSOR[zone.key], "In", zone.values)
        there |= ~label.present & nodes.label(successor.key).meets(successor)
    return there


def _labelled(nodes: Nodes) -> Bools:
    labelled: Bools = np.logical_or.reduce([nodes.label(key).present for key in KEYS])
    return labelled
