"""VolumeZone: a bound volume that is labelled with a zone or region wants its pod there.

Nodes that carry no zone or region label at all pass: clusters of a single zone need not label anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.interfaces import Wake
from stowplan.framework.verdict import SKIP, Refuse, Reject, Skip
from stowplan.objects.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_SEPARATOR
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import LabelRequirement
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, not_found

REASON = "node(s) had no available volume zone"
SUCCESSOR = {BETA_ZONE: ZONE, BETA_REGION: REGION}
KEYS = (BETA_ZONE, BETA_REGION, ZONE, REGION)


class VolumeZone:
    reads = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass")
    local = "node"

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Refuse | Skip | None:
        places = _places(pod, cluster)
        if isinstance(places, str):
            return Refuse((places,), resolvable=False)
        return None if places else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        places = _places(pod, nodes.cluster)
        elsewhere = np.zeros(len(nodes), np.bool_)
        for place in () if isinstance(places, str) else places:
            elsewhere |= ~_there(place, nodes)
        if elsewhere.any():
            yield Reject(elsewhere & _labelled(nodes), REASON, resolvable=False)

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("StorageClass", ("Add",), hint="waits_for_a_pod")
        yield Wake("Node", ("Add", "UpdateNodeLabel"))
        yield Wake("PersistentVolumeClaim", ("Add", "Update"), hint="is_claimed")
        yield Wake("PersistentVolume", ("Add", "Update"), hint="moved")

    def waits_for_a_pod(self, pod: Pod, old: StorageClass | None, new: StorageClass | None) -> bool:  # noqa: ARG002
        return new is not None and new.waits

    def is_claimed(self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:  # noqa: ARG002
        return new is not None and new.namespace == pod.namespace and new.name in _claim_names(pod)

    def moved(self, pod: Pod, old: PersistentVolume | None, new: PersistentVolume | None) -> bool:  # noqa: ARG002
        return new is not None and (old is None or _places_of(old) != _places_of(new))


def _claim_names(pod: Pod) -> list[str]:
    """Ephemeral volumes are left out: kube-scheduler looks at claims that the pod names itself."""
    mounted = (volume.persistent_volume_claim for volume in pod.shape.volumes)
    return [claim.claim_name for claim in mounted if claim is not None]


def _places(pod: Pod, cluster: Cluster) -> list[LabelRequirement] | str:
    """Where the pod's bound volumes are; a text if that cannot be told."""
    places: list[LabelRequirement] = []
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
        places += _places_of(volume)
    return places


def _not_waiting(claim: PersistentVolumeClaim, cluster: Cluster) -> str:
    """Why an unbound claim is a problem: it should have been bound by now, unless its class waits for a pod."""
    name = claim.storage_class
    if not name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = cluster.get(StorageClass, name)
    if storage_class is None:
        return not_found("storageclass.storage.k8s.io", name)
    if storage_class.volume_binding_mode is None:
        return f'VolumeBindingMode not set for StorageClass "{name}"'
    return "" if storage_class.waits else "PersistentVolume had no name"


def _places_of(volume: PersistentVolume) -> list[LabelRequirement]:
    """What a volume's labels say; several zones are joined by two underscores, and a label with a gap says nothing."""
    found: list[LabelRequirement] = []
    for key in KEYS:
        values = [value.strip() for value in volume.labels.get(key, "").split(ZONE_SEPARATOR)]
        if all(values):
            found.append(LabelRequirement(key, "In", tuple(sorted(set(values)))))
    return found


def _there(place: LabelRequirement, nodes: Nodes) -> Bools:
    """Nodes labelled with this place. One without the beta label may say so under its successor."""
    label = nodes.label(place.key)
    there = label.meets(place)
    if place.key in SUCCESSOR:
        successor = LabelRequirement(SUCCESSOR[place.key], "In", place.values)
        there |= ~label.present & nodes.label(successor.key).meets(successor)
    return there


def _labelled(nodes: Nodes) -> Bools:
    labelled: Bools = np.logical_or.reduce([nodes.label(key).present for key in KEYS])
    return labelled
