"""Resource claims (resource.k8s.io/v1): what pods ask of devices, and what was allocated for it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from stowplan.objects.devices import DeviceSelector, OpaqueConfiguration
from stowplan.objects.meta import ApiValue, Object, ObjectMeta
from stowplan.objects.pods import Pod
from stowplan.objects.quantity import Quantity
from stowplan.objects.resource_slices import NodeSelectorOfDevices

FINALIZER = "resource.kubernetes.io/delete-protection"
OF_EXTENDED_RESOURCES = "resource.kubernetes.io/extended-resource-claim"  # the annotation of claims that we make
MOST_RESULTS = 32  # devices that a claim may be allocated
ALL = "All"  # the allocation mode: all devices that the selectors match
FROM_CLASS, FROM_CLAIM = "FromClass", "FromClaim"


# -- what is asked for


class DeviceToleration(ApiValue, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequest(ApiValue, frozen=True):
    requests: dict[str, Quantity] = {}


class ExactDeviceRequest(ApiValue, frozen=True):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequest | None = None


class DeviceAlternative(ApiValue, frozen=True):
    """One of the alternatives of a request, in the order of preference."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequest | None = None


class DeviceRequest(ApiValue, frozen=True):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceAlternative, ...] = ()


class DeviceConstraint(ApiValue, frozen=True):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimConfiguration(ApiValue, frozen=True):
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceClaim(ApiValue, frozen=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[ClaimConfiguration, ...] = ()


class ResourceClaimSpec(ApiValue, frozen=True):
    devices: DeviceClaim = DeviceClaim()


# -- what was allocated


class AllocatedDevice(ApiValue, frozen=True):
    """One device of an allocation (DeviceRequestAllocationResult). With `share_id` it is a share of the device."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] = {}

    @property
    def device_id(self) -> tuple[str, str, str]:
        return self.driver, self.pool, self.device


class AllocatedConfiguration(ApiValue, frozen=True):
    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class AllocatedDevices(ApiValue, frozen=True):
    results: tuple[AllocatedDevice, ...] = ()
    config: tuple[AllocatedConfiguration, ...] = ()


class AllocationResult(ApiValue, frozen=True):
    devices: AllocatedDevices = msgspec.field(default_factory=AllocatedDevices)  # in the JSON even if empty
    node_selector: NodeSelectorOfDevices | None = None
    allocation_timestamp: datetime | None = None


class ClaimConsumer(ApiValue, frozen=True):
    """Who uses a claim: a pod, as a rule."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(ApiValue, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None


class DeviceStatus(ApiValue, frozen=True):
    """What a driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[DeviceCondition, ...] = msgspec.field(default_factory=lambda: ())  # in the JSON even if empty
    data: Any = None
    network_data: Any = None


class ResourceClaimStatus(ApiValue, frozen=True):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ClaimConsumer, ...] = ()
    devices: tuple[DeviceStatus, ...] = ()


class ResourceClaimMeta(ObjectMeta, frozen=True):
    generate_name: str = ""
    finalizers: tuple[str, ...] = ()


class ResourceClaim(Object, frozen=True):
    metadata: ResourceClaimMeta = ResourceClaimMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def allocation(self) -> AllocationResult | None:
        return self.status.allocation

    def reserved_by(self, uid: str) -> bool:
        """True if the pod with this uid may use the claim."""
        return any(each.uid == uid for each in self.status.reserved_for)

    def with_allocation_of(self, assumed: ResourceClaim) -> ResourceClaim | None:
        """Return this version of the claim with the allocation that it will have; None if that cannot be any more."""
        if self.allocation is not None or self.terminating or self.uid != assumed.uid or assumed.allocation is None:
            return None
        status = msgspec.structs.replace(self.status, allocation=assumed.allocation)
        return msgspec.structs.replace(self, status=status)

    def belongs_to(self, pod: Pod) -> bool:
        """True if the claim was made for this pod."""
        owner = self.controller()
        return owner is not None and owner.uid == pod.uid and self.namespace == pod.namespace


class ResourceClaimTemplateSpec(ApiValue, frozen=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Object, frozen=True):
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
