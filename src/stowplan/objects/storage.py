"""Claims, volumes, storage classes and CSI objects: the fields that volume plugins read."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from stowplan.objects.meta import ApiValue, Object
from stowplan.objects.pod_parts import InTreeVolumeSource
from stowplan.objects.pods import Pod
from stowplan.objects.quantity import Quantity
from stowplan.objects.selectors import LabelSelector, NodeSelector, NodeTerm, compile_node_selector

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class StorageRequest(ApiValue, frozen=True):
    requests: dict[str, Quantity] = {}


class ClaimSpec(ApiValue, frozen=True):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    volume_mode: str | None = None
    selector: LabelSelector | None = None
    resources: StorageRequest = StorageRequest()
    volume_attributes_class_name: str | None = None


class ClaimStatus(ApiValue, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(Object, frozen=True):
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()

    @property
    def storage_class(self) -> str:
        """The name of the storage class; the old annotation takes precedence over the field."""
        return self.annotations.get("volume.beta.kubernetes.io/storage-class", self.spec.storage_class_name or "")

    @property
    def bound(self) -> bool:
        """True if the claim is fully bound: it names its volume, and the volume controller has finished."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.annotations

    def not_made_for(self, pod: Pod) -> str:
        """Return why this claim does not belong to an ephemeral volume of the pod; "" if it does."""
        owner = self.controller()
        if owner is not None and owner.uid == pod.uid and self.namespace == pod.namespace:
            return ""
        return f"PVC {self.key} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"


class ObjectReference(ApiValue, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSISource(ApiValue, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(ApiValue, frozen=True):
    required: NodeSelector | None = None


class VolumeSpec(InTreeVolumeSource, frozen=True):
    capacity: dict[str, Quantity] = {}
    storage_class_name: str = ""
    access_modes: tuple[str, ...] = ()
    volume_mode: str | None = None
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSISource | None = None


class VolumeStatus(ApiValue, frozen=True):
    phase: str = ""


class PersistentVolume(Object, frozen=True):
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()

    @property
    def storage_class(self) -> str:
        return self.annotations.get("volume.beta.kubernetes.io/storage-class", self.spec.storage_class_name)

    @property
    def node_terms(self) -> tuple[NodeTerm, ...] | None:
        """The nodes that can access the volume; None for all nodes."""
        return node_terms(None if self.spec.node_affinity is None else self.spec.node_affinity.required)


@lru_cache(maxsize=65536)
def node_terms(required: NodeSelector | None) -> tuple[NodeTerm, ...] | None:
    """Compile a volume's node affinity; None for none.

    kube-scheduler matches the affinity against the labels of a node only: conditions on fields must be valid, but every
    node meets them.
    """
    if required is None:
        return None
    return tuple(NodeTerm(term.labels, ()) for term in compile_node_selector(required))


class TopologyRequirement(ApiValue, frozen=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(ApiValue, frozen=True):
    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(Object, frozen=True):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] = ()

    @property
    def waits(self) -> bool:
        """True if a claim of this class is bound only when a pod needs it."""
        return self.volume_binding_mode == "WaitForFirstConsumer"


class DriverLimit(ApiValue, frozen=True):
    count: int | None = None


class CSINodeDriver(ApiValue, frozen=True):
    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    allocatable: DriverLimit | None = None


class CSINodeSpec(ApiValue, frozen=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Object, frozen=True):
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(ApiValue, frozen=True):
    storage_capacity: bool | None = None


class CSIDriver(Object, frozen=True):
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Object, frozen=True):
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None

    @property
    def limit(self) -> Quantity | None:
        """The size of the largest volume that can be provisioned; None if unknown."""
        return self.capacity if self.maximum_volume_size is None else self.maximum_volume_size


class AttachmentSource(ApiValue, frozen=True):
    persistent_volume_name: str | None = None
    inline_volume_spec: VolumeSpec | None = None


class AttachmentSpec(ApiValue, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Object, frozen=True):
    spec: AttachmentSpec = AttachmentSpec()


def not_found(resource: str, name: str) -> str:
    """Return the message of an API lister for a missing object."""
    return f'{resource} "{name}" not found'
