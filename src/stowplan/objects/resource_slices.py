"""Resource slices (resource.k8s.io/v1): the devices that drivers publish, in pools."""

from __future__ import annotations

from datetime import datetime

from stowplan.objects.meta import ApiValue, Object
from stowplan.objects.quantity import Quantity
from stowplan.objects.selectors import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm


class NodeRequirement(LabelSelectorRequirement, frozen=True, omit_defaults=True):
    """A condition on nodes. As a part of an allocation its JSON has no empty lists."""


class NodeTermOfDevices(NodeSelectorTerm, frozen=True, omit_defaults=True):
    match_expressions: tuple[NodeRequirement, ...] = ()
    match_fields: tuple[NodeRequirement, ...] = ()


class NodeSelectorOfDevices(NodeSelector, frozen=True, omit_defaults=True):
    node_selector_terms: tuple[NodeTermOfDevices, ...] = ()


class DeviceAttribute(ApiValue, frozen=True, rename={"integer": "int", "boolean": "bool"}):
    """The value of an attribute; one of these is set."""

    integer: int | None = None
    boolean: bool | None = None
    string: str | None = None
    version: str | None = None


class CapacityRange(ApiValue, frozen=True):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityPolicy(ApiValue, frozen=True):
    """Which amounts of a shareable device's capacity may be requested."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(ApiValue, frozen=True):
    value: Quantity = Quantity("0")
    request_policy: CapacityPolicy | None = None


class Counter(ApiValue, frozen=True):
    value: Quantity = Quantity("0")


class CounterSet(ApiValue, frozen=True):
    name: str = ""
    counters: dict[str, Counter] = {}


class CounterConsumption(ApiValue, frozen=True):
    counter_set: str = ""
    counters: dict[str, Counter] = {}


class DeviceTaint(ApiValue, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class Device(ApiValue, frozen=True):
    """A device. It belongs to nodes of its own only in a slice with `per_device_node_selection`."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str = ""
    node_selector: NodeSelectorOfDevices | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(ApiValue, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(ApiValue, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    node_selector: NodeSelectorOfDevices | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Object, frozen=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()

    @property
    def pool_id(self) -> tuple[str, str]:
        """The driver, and the name of the pool."""
        return self.spec.driver, self.spec.pool.name
