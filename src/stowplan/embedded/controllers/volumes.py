"""PersistentVolumes and claims: a claim is bound to a volume that fits, or a volume is provisioned for it.

A claim with WaitForFirstConsumer is not bound until a scheduler has chosen a node for it (the annotation
`volume.kubernetes.io/selected-node`) or has bound a volume to it. A claim that names no class gets the default class as
soon as there is one. A provisioned volume can be used in the zone of that
node, like the disks of cloud providers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.embedded.admission.storage import default_class
from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import (
    Action,
    CreateDocument,
    DeleteDocument,
    RecordEvent,
    SetStatus,
    UpdateObject,
)
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.embedded.validation.workloads import selector
from stowplan.objects import quantity, selectors

CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED, _BOUND_BY_CONTROLLER = "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"
_PROVISIONED = "pv.kubernetes.io/provisioned-by"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_ZONE = "topology.kubernetes.io/zone"
_PROTECTION = "kubernetes.io/pvc-protection"
_COMPONENT = "persistentvolume-controller"


class ClaimController:
    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == CLAIMS:
            return (change.key,) if change.now is not None else ()
        if change.collection == VOLUMES:
            reference = change.document["spec"].get("claimRef")
            return [f"{reference.get('namespace')}/{reference.get('name')}"] if reference else self._unbound()
        if change.collection == CLASSES:
            return self._unbound()
        if change.collection == "pods" and change.now is None:
            return [f"{change.document['metadata']['namespace']}/{name}" for name in _used(change.document)]
        return ()

    def _unbound(self) -> list[str]:
        found = self._store.all(CLAIMS)
        return [queries.key_of(each.document) for each in found if not each.document["spec"].get("volumeName")]

    def reconcile(self, key: str, _now: float) -> Iterator[Action]:
        claim = self._store.get(CLAIMS, key)
        if claim is None:
            return
        if queries.terminating(claim):
            yield from self._release(claim)
            return
        volume = self._volume_for(claim)
        if volume is None and not claim["spec"].get("volumeName"):
            if "storageClassName" not in claim["spec"] and (name := default_class(self._store)):
                yield UpdateObject(CLAIMS, {**claim, "spec": {**claim["spec"], "storageClassName": name}})
                return  # the claim comes again
            yield from self._provision(claim)
            volume = self._volume_for(self._store.get(CLAIMS, key) or claim)
        if volume is not None:
            yield from self._bind(claim, volume)

    def _release(self, claim: Document) -> Iterator[Action]:
        """Remove the protection finalizer once no pod uses the claim."""
        namespace, name = claim["metadata"]["namespace"], claim["metadata"]["name"]
        pods = (stored.document for stored in self._store.all("pods", namespace))
        if not any(name in _used(pod) and queries.phase(pod) not in ("Succeeded", "Failed") for pod in pods):
            left = [each for each in claim["metadata"].get("finalizers", ()) if each != _PROTECTION]
            yield UpdateObject(CLAIMS, {**claim, "metadata": {**claim["metadata"], "finalizers": left}})

    def _volume_for(self, claim: Document) -> Document | None:
        """The volume that refers to the claim or that the claim names, or else the smallest volume that fits."""
        name = claim["spec"].get("volumeName")
        if name:
            found = self._store.get(VOLUMES, name)
            taken = found is not None and found["spec"].get("claimRef") and not _is_reserved_for(found, claim)
            return None if taken else found
        volumes = [stored.document for stored in self._store.all(VOLUMES)]
        reserved = next((volume for volume in volumes if _is_reserved_for(volume, claim)), None)
        if reserved is not None or self._waits_for_consumer(claim):
            return reserved
        fitting = [volume for volume in volumes if _fits(volume, claim)]
        return min(fitting, key=lambda volume: quantity.nanos(volume["spec"]["capacity"]["storage"]), default=None)

    def _class(self, claim: Document) -> Document | None:
        name = claim["spec"].get("storageClassName", "")
        return self._store.get(CLASSES, name) if name else None

    def _waits_for_consumer(self, claim: Document) -> bool:
        found = self._class(claim)
        waits = found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"
        return waits and SELECTED_NODE not in claim["metadata"].get("annotations", {})

    def _provision(self, claim: Document) -> Iterator[Action]:
        storage_class = self._class(claim)
        if storage_class is None:
            yield _without_class(claim)
        elif self._waits_for_consumer(claim):
            message = "waiting for first consumer to be created before binding"
            yield RecordEvent(claim, "WaitForFirstConsumer", message, _COMPONENT)
        elif storage_class["provisioner"] != _NO_PROVISIONER and not claim["spec"].get("selector"):
            volume = self._new_volume(claim, storage_class)
            message = f"Successfully provisioned volume {volume['metadata']['name']}"
            event = RecordEvent(claim, "ProvisioningSucceeded", message, storage_class["provisioner"])
            yield CreateDocument(VOLUMES, "", volume, event)

    def _new_volume(self, claim: Document, storage_class: Document) -> Document:
        metadata, provisioner = claim["metadata"], storage_class["provisioner"]
        name = f"pvc-{metadata['uid']}"
        spec = {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"], "volumeMode": claim["spec"]["volumeMode"],
            "persistentVolumeReclaimPolicy": storage_class["reclaimPolicy"],
            "storageClassName": storage_class["metadata"]["name"],
            "csi": {"driver": provisioner, "volumeHandle": name}, "claimRef": _reference(claim),
        }  # fmt: skip
        node = self._store.get("nodes", metadata.get("annotations", {}).get(SELECTED_NODE, ""))
        zone = node["metadata"].get("labels", {}).get(_ZONE) if node else None
        if zone:
            term = {"matchExpressions": [{"key": _ZONE, "operator": "In", "values": [zone]}]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
        return {"metadata": {"name": name, "annotations": {_PROVISIONED: provisioner}}, "spec": spec}

    def _bind(self, claim: Document, volume: Document) -> Iterator[Action]:
        """Write the references of both, then the status."""
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("uid") != claim["metadata"]["uid"]:
            metadata = _annotated(volume, {_BOUND_BY_CONTROLLER: "yes"}) if not reference else volume["metadata"]
            spec = {**volume["spec"], "claimRef": _reference(claim)}
            yield UpdateObject(VOLUMES, {**volume, "metadata": metadata, "spec": spec})
        annotations = claim["metadata"].get("annotations", {})
        if claim["spec"].get("volumeName") != volume["metadata"]["name"] or _BIND_COMPLETED not in annotations:
            more = {_BIND_COMPLETED: "yes"} | ({} if claim["spec"].get("volumeName") else {_BOUND_BY_CONTROLLER: "yes"})
            spec = {**claim["spec"], "volumeName": volume["metadata"]["name"]}
            yield UpdateObject(CLAIMS, {**claim, "metadata": _annotated(claim, more), "spec": spec})
        status = {
            "phase": "Bound", "accessModes": volume["spec"]["accessModes"], "capacity": volume["spec"]["capacity"],
        }  # fmt: skip
        if claim.get("status") != status:
            yield SetStatus(CLAIMS, queries.key_of(claim), claim["metadata"]["uid"], status)


class VolumeController:
    """The phase of volumes, and their deletion after that of their claims."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == VOLUMES:
            return (change.key,) if change.now is not None else ()
        if change.collection == CLAIMS and (name := change.document["spec"].get("volumeName")):
            return (name,)
        return ()

    def reconcile(self, key: str, _now: float) -> Iterator[Action]:
        volume = self._store.get(VOLUMES, key)
        if volume is None:
            return
        reference = volume["spec"].get("claimRef")
        claim = self._store.get(CLAIMS, f"{reference['namespace']}/{reference['name']}") if reference else None
        bound = claim is not None and reference.get("uid") in (None, claim["metadata"]["uid"])
        if queries.terminating(volume) and not bound:
            yield UpdateObject(VOLUMES, {**volume, "metadata": {**volume["metadata"], "finalizers": []}})
            return
        released = bool(reference) and not bound and bool(reference.get("uid"))
        phase = "Bound" if bound else "Released" if released else "Available"
        if volume.get("status", {}).get("phase") != phase:
            yield SetStatus(VOLUMES, key, volume["metadata"]["uid"], {"phase": phase})
        if released and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            yield DeleteDocument(VOLUMES, key, volume["metadata"]["uid"])


def _without_class(claim: Document) -> Action:
    """Tell why nothing is provisioned for a claim without a class, or of one that is not there."""
    name = claim["spec"].get("storageClassName")
    if name:
        message = f'storageclass.storage.k8s.io "{name}" not found'
        return RecordEvent(claim, "ProvisioningFailed", message, _COMPONENT, "Warning")
    message = "no persistent volumes available for this claim and no storage class is set"
    return RecordEvent(claim, "FailedBinding", message, _COMPONENT)


def _used(pod: Document) -> list[str]:
    """The names of the claims that a pod uses."""
    found = []
    for volume in pod["spec"].get("volumes", ()):
        if "persistentVolumeClaim" in volume:
            found.append(volume["persistentVolumeClaim"].get("claimName", ""))
        elif "ephemeral" in volume:
            found.append(f"{pod['metadata']['name']}-{volume['name']}")
    return found


def _reference(claim: Document) -> Document:
    metadata = claim["metadata"]
    return {
        "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": metadata["namespace"],
        "name": metadata["name"], "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
    }  # fmt: skip


def _is_reserved_for(volume: Document, claim: Document) -> bool:
    reference, metadata = volume["spec"].get("claimRef"), claim["metadata"]
    if not reference:
        return False
    same = (reference.get("namespace"), reference.get("name")) == (metadata["namespace"], metadata["name"])
    return same and reference.get("uid") in (None, "", metadata["uid"])


def _fits(volume: Document, claim: Document) -> bool:
    offered, requested = volume["spec"], claim["spec"]
    if offered.get("claimRef") or queries.terminating(volume):
        return False
    if offered.get("storageClassName", "") != requested.get("storageClassName", ""):
        return False
    if offered.get("volumeMode") != requested.get("volumeMode") or not {*requested["accessModes"]} <= {
        *offered["accessModes"]
    }:
        return False
    if quantity.nanos(offered["capacity"]["storage"]) < quantity.nanos(requested["resources"]["requests"]["storage"]):
        return False
    label_selector = requested.get("selector")
    return label_selector is None or selectors.matches(selector(label_selector), volume["metadata"].get("labels", {}))


def _annotated(document: Document, more: dict[str, str]) -> Document:
    metadata = document["metadata"]
    return {**metadata, "annotations": {**metadata.get("annotations", {}), **more}}
