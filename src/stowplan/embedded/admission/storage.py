"""PersistentVolumes, PersistentVolumeClaims, StorageClasses and CSIDrivers."""

from __future__ import annotations

from stowplan.embedded.admission.context import AdmissionContext
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
PROTECTION = {
    "persistentvolumes": "kubernetes.io/pv-protection",
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
}


def volume(document: Document) -> None:
    document["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")
    document["spec"].setdefault("volumeMode", "Filesystem")


def claim(document: Document) -> None:
    document.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def storage_class(document: Document) -> None:
    document.setdefault("reclaimPolicy", "Delete")
    document.setdefault("volumeBindingMode", "Immediate")


def csi_driver(document: Document) -> None:
    spec = document["spec"]
    for name, value in (
        ("attachRequired", True), ("podInfoOnMount", False), ("storageCapacity", False), ("requiresRepublish", False),
        ("seLinuxMount", False), ("fsGroupPolicy", "ReadWriteOnceWithFSType"), ("volumeLifecycleModes", ["Persistent"]),
    ):  # fmt: skip
        spec.setdefault(name, value)


def admit_volume(document: Document, _context: AdmissionContext) -> None:
    document["status"] = {"phase": "Pending"}
    _protect(document, PROTECTION["persistentvolumes"])


def admit_claim(document: Document, context: AdmissionContext) -> None:
    document["status"] = {"phase": "Pending"}
    _protect(document, PROTECTION["persistentvolumeclaims"])
    if "storageClassName" not in document["spec"] and (name := default_class(context.store)):
        document["spec"]["storageClassName"] = name


def _protect(document: Document, finalizer: str) -> None:
    """Add the finalizer that protects an object in use."""
    finalizers = document["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


def default_class(store: DocumentStore) -> str:
    """The newest of the default classes; "" if there is none."""
    newest, found = "", ""
    for stored in store.all("storageclasses.storage.k8s.io"):
        metadata = stored.document["metadata"]
        is_default = metadata.get("annotations", {}).get(_DEFAULT_CLASS) == "true"
        if is_default and metadata["creationTimestamp"] > newest:
            newest, found = metadata["creationTimestamp"], str(metadata["name"])
    return found
