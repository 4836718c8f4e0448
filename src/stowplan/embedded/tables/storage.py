"""PersistentVolumes, PersistentVolumeClaims, StorageClasses, CSI drivers and nodes, VolumeAttachments."""

from __future__ import annotations

from stowplan.embedded.documents import Document
from stowplan.embedded.tables.columns import NAME, Column, Row, TablePrinter, columns
from stowplan.embedded.timestamps import age

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def _age(document: Document, now: float) -> str:
    return age(document["metadata"].get("creationTimestamp"), now)


def _phase(document: Document) -> str:
    phase = document.get("status", {}).get("phase", "")
    return "Terminating" if "deletionTimestamp" in document["metadata"] else str(phase)


def _modes(modes: list[str]) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes)


def _claim(document: Document, now: float) -> Row:
    spec, status = document["spec"], document.get("status", {})
    bound = bool(spec.get("volumeName"))
    size = status.get("capacity", {}).get("storage", "") if bound else ""
    modes = _modes(status.get("accessModes", [])) if bound else ""
    name = document["metadata"]["name"]
    row = [name, _phase(document), spec.get("volumeName", ""), size, modes, spec.get("storageClassName", "")]
    return [*row, "<unset>", _age(document, now), spec.get("volumeMode", "<unset>")]


def _volume(document: Document, now: float) -> Row:
    spec, status = document["spec"], document.get("status", {})
    claim = spec.get("claimRef")
    row = [document["metadata"]["name"], spec.get("capacity", {}).get("storage", "")]
    row += [_modes(spec.get("accessModes", [])), spec.get("persistentVolumeReclaimPolicy", ""), _phase(document)]
    row += [f"{claim.get('namespace')}/{claim.get('name')}" if claim else "", spec.get("storageClassName", "")]
    return [*row, "<unset>", status.get("reason", ""), _age(document, now), spec.get("volumeMode", "<unset>")]


def _class(document: Document, now: float) -> Row:
    metadata = document["metadata"]
    default = metadata.get("annotations", {}).get("storageclass.kubernetes.io/is-default-class") == "true"
    name = f"{metadata['name']} (default)" if default else metadata["name"]
    row = [name, document.get("provisioner", ""), document.get("reclaimPolicy", "Delete")]
    row += [document.get("volumeBindingMode", "Immediate"), bool(document.get("allowVolumeExpansion"))]
    return [*row, _age(document, now)]


def _driver(document: Document, now: float) -> Row:
    spec = document["spec"]
    tokens = ",".join(each.get("audience", "") for each in spec.get("tokenRequests", ())) or "<unset>"
    row = [spec.get(name, False) for name in ("attachRequired", "podInfoOnMount", "storageCapacity")]
    row += [tokens, spec.get("requiresRepublish", False), ",".join(spec.get("volumeLifecycleModes", ()))]
    return [document["metadata"]["name"], *row, _age(document, now)]


def _csi_node(document: Document, now: float) -> Row:
    return [document["metadata"]["name"], len(document["spec"].get("drivers", ())), _age(document, now)]


def _attachment(document: Document, now: float) -> Row:
    spec = document["spec"]
    volume = spec.get("source", {}).get("persistentVolumeName", "")
    attached = document.get("status", {}).get("attached", False)
    return [
        document["metadata"]["name"],
        spec.get("attacher"),
        volume,
        spec.get("nodeName"),
        attached,
        _age(document, now),
    ]


def _booleans(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "boolean") for name in names)


PRINTERS = {
    "persistentvolumeclaims": TablePrinter(
        columns("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age",
                wide=("VolumeMode",)),
        _claim,
    ),
    "persistentvolumes": TablePrinter(
        columns("Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass",
                "VolumeAttributesClass", "Reason", "Age", wide=("VolumeMode",)),
        _volume,
    ),
    "storageclasses.storage.k8s.io": TablePrinter(
        columns("Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"), _class
    ),
    "csidrivers.storage.k8s.io": TablePrinter(
        (NAME, *_booleans("AttachRequired", "PodInfoOnMount", "StorageCapacity"), Column("TokenRequests"),
         *_booleans("RequiresRepublish"), Column("Modes"), Column("Age")),
        _driver,
    ),
    "csinodes.storage.k8s.io": TablePrinter(columns("Drivers", "Age", integers=("Drivers",)), _csi_node),
    "volumeattachments.storage.k8s.io": TablePrinter(
        (NAME, Column("Attacher", format="name"), Column("PV"), Column("Node"), *_booleans("Attached"), Column("Age")),
        _attachment,
    ),
}  # fmt: skip
