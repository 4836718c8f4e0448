"""The parts of a pod's spec and status that decisions read.

Names of volumes, and fields of containers that differ between the pods of one template without a meaning for the
scheduler (environment, the names of token volumes), are not decoded. So pods of one template stay alike.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from stowplan.objects.meta import ApiValue
from stowplan.objects.quantity import Quantity
from stowplan.objects.selectors import LabelSelector, NodeSelector, NodeSelectorTerm
from stowplan.objects.taints import Toleration


class ResourceRequirements(ApiValue, frozen=True):
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}


class ContainerPort(ApiValue, frozen=True):
    container_port: int = 0
    host_port: int = 0
    protocol: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")


class RestartRule(ApiValue, frozen=True):
    action: str = ""


class Container(ApiValue, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] = ()

    @property
    def sidecar(self) -> bool:
        """True for an init container that keeps running."""
        return self.restart_policy == "Always"


class PreferredNodeTerm(ApiValue, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(ApiValue, frozen=True):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredNodeTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(ApiValue, frozen=True):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class WeightedPodAffinityTerm(ApiValue, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(ApiValue, frozen=True):
    """Affinity or anti-affinity to other pods."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(ApiValue, frozen=True):
    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: PodAffinity = PodAffinity()
    pod_anti_affinity: PodAffinity = PodAffinity()


class TopologySpreadConstraint(ApiValue, frozen=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class ClaimVolume(ApiValue, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class DiskVolume(ApiValue, frozen=True):
    """A GCE persistent disk (pdName), an EBS volume (volumeID) or an Azure disk (diskURI, kind)."""

    pd_name: str = ""
    volume_id: str = msgspec.field(default="", name="volumeID")
    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None
    read_only: bool = False
    partition: int = 0


class ISCSIVolume(ApiValue, frozen=True):
    iqn: str = ""
    target_portal: str = ""
    lun: int = 0
    read_only: bool = False


class RBDVolume(ApiValue, frozen=True):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class ImageVolume(ApiValue, frozen=True):
    reference: str = ""


class InlineVolume(ApiValue, frozen=True):
    """An inline volume of a kind of which only the presence or the driver is read."""

    driver: str = ""
    volume_path: str = ""
    volume_id: str = msgspec.field(default="", name="volumeID")
    share_name: str = ""


class InTreeVolumeSource(ApiValue, frozen=True):
    """In-tree volumes that CSI drivers replace (`csi_migration.py`); pods and PersistentVolumes share these fields."""

    gce_persistent_disk: DiskVolume | None = None
    aws_elastic_block_store: DiskVolume | None = None
    azure_disk: DiskVolume | None = None
    azure_file: InlineVolume | None = None
    cinder: InlineVolume | None = None
    vsphere_volume: InlineVolume | None = None
    portworx_volume: InlineVolume | None = None


class ClaimSpecOfTemplate(ApiValue, frozen=True):
    storage_class_name: str | None = None


class ClaimTemplate(ApiValue, frozen=True):
    spec: ClaimSpecOfTemplate = ClaimSpecOfTemplate()


class EphemeralVolume(ApiValue, frozen=True):
    volume_claim_template: ClaimTemplate | None = None


class Volume(InTreeVolumeSource, frozen=True):
    """A volume. Its name is read only if a claim is named after it (`ephemeral`)."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None
    image: ImageVolume | None = None
    csi: InlineVolume | None = None


class SchedulingGate(ApiValue, frozen=True):
    name: str = ""


class SchedulingGroup(ApiValue, frozen=True):
    pod_group_name: str | None = None


class PodResourceClaim(ApiValue, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(ApiValue, frozen=True):
    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    overhead: dict[str, Quantity] = {}
    node_selector: dict[str, str] = {}
    affinity: Affinity = Affinity()
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduler_name: str = ""
    host_network: bool = False
    host_users: bool | None = None


class PodCondition(ApiValue, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerStatus(ApiValue, frozen=True):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Quantity] = {}


class PodClaimStatus(ApiValue, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(ApiValue, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: datetime | None = None
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Quantity] = {}
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()
