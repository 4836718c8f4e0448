"""What a dump has of each kind: the fields that the engine, explanations and the embedded controllers read.

The types of `stowplan.objects` say what decisions read. The types here add what else a cluster needs that is made of a
dump: the templates of workloads, and fields without which an API server refuses an object. Every other field is left
out: the environment and commands of containers, most of the status, managed fields.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from stowplan.objects import kinds, storage
from stowplan.objects.meta import ApiValue, Object, ObjectMeta
from stowplan.objects.nodes import NodeSpec, NodeStatus
from stowplan.objects.pod_parts import ClaimVolume, PodSpec, PodStatus, Volume
from stowplan.objects.quantity import Quantity
from stowplan.objects.selectors import LabelSelector
from stowplan.objects.storage import CSINodeDriver, VolumeSpec
from stowplan.objects.workloads import MapSelectorSpec, ReplicasSpec, StatefulSetSpec


class _FileSystem(ApiValue, frozen=True):
    path: str = ""
    server: str = ""
    type: str = ""


class _DumpedClaimTemplate(ApiValue, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: storage.ClaimSpec = storage.ClaimSpec()


class _DumpedEphemeralVolume(ApiValue, frozen=True):
    volume_claim_template: _DumpedClaimTemplate | None = None


class _DumpedVolume(Volume, frozen=True):
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: _DumpedEphemeralVolume | None = None  # type: ignore[assignment]


class _DumpedPodSpec(PodSpec, frozen=True):
    volumes: tuple[_DumpedVolume, ...] = ()
    restart_policy: str = ""
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None


class _DumpedPod(Object, frozen=True):
    spec: _DumpedPodSpec = _DumpedPodSpec()
    status: PodStatus = PodStatus()


class _DumpedTemplate(ApiValue, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _DumpedPodSpec = _DumpedPodSpec()


class _DumpedNodeStatus(NodeStatus, frozen=True):
    capacity: dict[str, Quantity] = {}


class _DumpedNode(Object, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: _DumpedNodeStatus = _DumpedNodeStatus()


class _DumpedPort(ApiValue, frozen=True):
    port: int = 0
    protocol: str = ""
    name: str = ""


class _DumpedServiceSpec(MapSelectorSpec, frozen=True):
    ports: tuple[_DumpedPort, ...] = ()


class _DumpedService(Object, frozen=True):
    spec: _DumpedServiceSpec = _DumpedServiceSpec()


class _DumpedCondition(ApiValue, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _DumpedWorkloadStatus(ApiValue, frozen=True):
    """What explanations read of it: how far a workload came, and why it could not create its pods."""

    succeeded: int = 0
    desired_number_scheduled: int = 0
    conditions: tuple[_DumpedCondition, ...] = ()


class _RollingUpdate(ApiValue, frozen=True):
    max_surge: int | str = 0
    max_unavailable: int | str = 0
    partition: int = 0


class _UpdateStrategy(ApiValue, frozen=True):
    type: str = ""
    rolling_update: _RollingUpdate = _RollingUpdate()


class _DumpedController(Object, frozen=True):
    status: _DumpedWorkloadStatus = _DumpedWorkloadStatus()


class _ReplicationControllerSpec(MapSelectorSpec, frozen=True):
    replicas: int | None = None
    template: _DumpedTemplate = _DumpedTemplate()


class _DumpedReplicationController(_DumpedController, frozen=True):
    spec: _ReplicationControllerSpec = _ReplicationControllerSpec()


class _TemplatedSpec(ReplicasSpec, frozen=True):
    template: _DumpedTemplate = _DumpedTemplate()
    strategy: _UpdateStrategy = _UpdateStrategy()
    update_strategy: _UpdateStrategy = _UpdateStrategy()
    paused: bool = False
    revision_history_limit: int | None = None


class _DumpedWorkload(_DumpedController, frozen=True):
    spec: _TemplatedSpec = _TemplatedSpec()


class _DumpedStatefulSetSpec(StatefulSetSpec, frozen=True):
    template: _DumpedTemplate = _DumpedTemplate()
    service_name: str = ""
    pod_management_policy: str = ""
    update_strategy: _UpdateStrategy = _UpdateStrategy()
    volume_claim_templates: tuple[_DumpedClaimTemplate, ...] = ()


class _DumpedStatefulSet(_DumpedController, frozen=True):
    spec: _DumpedStatefulSetSpec = _DumpedStatefulSetSpec()


class _DumpedJobSpec(ApiValue, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = ""
    backoff_limit: int | None = None
    suspend: bool = False
    manual_selector: bool = False
    selector: LabelSelector | None = None
    template: _DumpedTemplate = _DumpedTemplate()


class _DumpedJob(_DumpedController, frozen=True):
    spec: _DumpedJobSpec = _DumpedJobSpec()


class _DumpedVolumeSpec(VolumeSpec, frozen=True):
    """With the sources that every API server knows: a volume without a source is refused."""

    persistent_volume_reclaim_policy: str = ""
    local: _FileSystem | None = None
    host_path: _FileSystem | None = None
    nfs: _FileSystem | None = None


class _DumpedPersistentVolume(Object, frozen=True):
    spec: _DumpedVolumeSpec = _DumpedVolumeSpec()
    status: storage.VolumeStatus = storage.VolumeStatus()


class _DumpedStorageClass(storage.StorageClass, frozen=True):
    reclaim_policy: str = ""


class _DumpedDriver(CSINodeDriver, frozen=True):
    topology_keys: tuple[str, ...] = ()


class _DumpedCSINodeSpec(ApiValue, frozen=True):
    drivers: tuple[_DumpedDriver, ...] = ()


class _DumpedCSINode(Object, frozen=True):
    spec: _DumpedCSINodeSpec = _DumpedCSINodeSpec()


class _LimitRangeLimit(ApiValue, frozen=True):
    type: str = ""
    default: dict[str, Quantity] = {}
    default_request: dict[str, Quantity] = {}
    max: dict[str, Quantity] = {}
    min: dict[str, Quantity] = {}
    max_limit_request_ratio: dict[str, Quantity] = {}


class _DumpedLimitRangeSpec(ApiValue, frozen=True):
    limits: tuple[_LimitRangeLimit, ...] = ()


class _DumpedLimitRange(Object, frozen=True):
    spec: _DumpedLimitRangeSpec = _DumpedLimitRangeSpec()


class _QuotaScope(ApiValue, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class _QuotaScopes(ApiValue, frozen=True):
    match_expressions: tuple[_QuotaScope, ...] = ()


class _DumpedQuotaSpec(ApiValue, frozen=True):
    hard: dict[str, Quantity] = {}
    scopes: tuple[str, ...] = ()
    scope_selector: _QuotaScopes | None = None


class _DumpedQuotaStatus(ApiValue, frozen=True):
    hard: dict[str, Quantity] = {}
    used: dict[str, Quantity] = {}


class _DumpedQuota(Object, frozen=True):
    spec: _DumpedQuotaSpec = _DumpedQuotaSpec()
    status: _DumpedQuotaStatus = _DumpedQuotaStatus()


class _DumpedLeaseSpec(ApiValue, frozen=True):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    renew_time: datetime | None = None


class _DumpedLease(Object, frozen=True):
    spec: _DumpedLeaseSpec = _DumpedLeaseSpec()


class _About(ApiValue, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _DumpedEvent(Object, frozen=True):
    """Only plain dumps have events: their notes are free text."""

    regarding: _About = _About()
    involved_object: _About = _About()
    type: str = ""
    reason: str = ""
    action: str = ""
    note: str = ""
    message: str = ""
    count: int = 0
    deprecated_count: int = 0
    series: dict[str, Any] = {}
    source: dict[str, Any] = {}
    deprecated_source: dict[str, Any] = {}
    reporting_controller: str = ""
    reporting_instance: str = ""
    reporting_component: str = ""
    event_time: datetime | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    deprecated_first_timestamp: datetime | None = None
    deprecated_last_timestamp: datetime | None = None


_OWN: dict[str, type[msgspec.Struct]] = {
    "Pod": _DumpedPod,
    "Node": _DumpedNode,
    "Service": _DumpedService,
    "ReplicationController": _DumpedReplicationController,
    "ReplicaSet": _DumpedWorkload,
    "Deployment": _DumpedWorkload,
    "DaemonSet": _DumpedWorkload,
    "StatefulSet": _DumpedStatefulSet,
    "Job": _DumpedJob,
    "PersistentVolume": _DumpedPersistentVolume,
    "StorageClass": _DumpedStorageClass,
    "CSINode": _DumpedCSINode,
    "LimitRange": _DumpedLimitRange,
    "ResourceQuota": _DumpedQuota,
    "Lease": _DumpedLease,
    "Event": _DumpedEvent,
}
_AS_READ = (
    "Namespace", "PodDisruptionBudget", "PriorityClass", "PersistentVolumeClaim", "CSIDriver", "CSIStorageCapacity",
    "VolumeAttachment", "DeviceClass", "ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "WorkloadPolicy",
    "ResourceReservation", "PodGroup", "SigsPodGroup",
)  # fmt: skip
# Names of attributes stand in expressions, too, where a substitute would not be found: such dumps do without them.
PLAIN_ONLY = ("Event", "ResourceSlice", "ResourceClaim", "ResourceClaimTemplate")

CONTENTS: dict[str, type[msgspec.Struct]] = {**_OWN, **{kind: kinds.KINDS[kind] for kind in _AS_READ}}
"""The type that has the dumped fields of each kind, by our name of the kind."""
