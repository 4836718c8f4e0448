"""PersistentVolumes, PersistentVolumeClaims and StorageClasses."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, forbidden_field, required, unsupported

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_SOURCES = (
    "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume", "flocker",
    "gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk", "portworxVolume",
    "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
)  # fmt: skip


def check_claim(claim: Document) -> Iterator[StatusCause]:
    spec = claim["spec"]
    yield from _modes(spec)
    if "storage" not in spec.get("resources", {}).get("requests", {}):
        yield required("spec.resources[storage]")


def check_volume(volume: Document) -> Iterator[StatusCause]:
    spec = volume["spec"]
    yield from _modes(spec)
    if "storage" not in spec.get("capacity", {}):
        yield required("spec.capacity")
    if not any(name in spec for name in _SOURCES):
        yield required("spec", "must specify a volume type")


def _modes(spec: Document) -> Iterator[StatusCause]:
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in spec.get("accessModes", ()):
        if mode not in _MODES:
            yield unsupported("spec.accessModes", mode, _MODES)


def check_claim_update(claim: Document, old: Document) -> Iterator[StatusCause]:
    """The volume and class of a claim can be set once; its size can grow."""
    free = ("resources", "volumeAttributesClassName")
    for key in claim["spec"].keys() | old["spec"].keys():
        if key in free or claim["spec"].get(key) == old["spec"].get(key):
            continue
        if key in ("volumeName", "storageClassName") and not old["spec"].get(key):
            continue
        why = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden_field("spec", why)
        return


def check_storage_class(document: Document) -> Iterator[StatusCause]:
    if not document.get("provisioner"):
        yield required("provisioner")
    if document.get("volumeBindingMode") not in ("Immediate", "WaitForFirstConsumer"):
        choices = ("Immediate", "WaitForFirstConsumer")
        yield unsupported("volumeBindingMode", document.get("volumeBindingMode"), choices)


def check_storage_class_update(document: Document, old: Document) -> Iterator[StatusCause]:
    for name in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
        if document.get(name) != old.get(name):
            yield forbidden_field(name, f"updates to {name} are forbidden.")
