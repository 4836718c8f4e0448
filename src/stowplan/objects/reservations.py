"""ResourceReservation: room on nodes that is held for the pods of an application or a group.

A pod's reservation has the name in the pod's annotation `scheduling.kubenexus.io/reservation`, or else the name of its
application or of its group (`applications.identity`), in the pod's namespace. A reservation that a pod owns, for
example a Spark driver, is in force while that pod has a node. A reservation of a user is always in force.

`slots` has the valid entries of the spec, `problems` what is wrong with the others.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from functools import cached_property

import msgspec

from stowplan.objects import quantity, requests
from stowplan.objects.applications import APPLICATIONS, DRIVER, NAMES, POD_GROUP, ROLES, identity
from stowplan.objects.meta import ApiValue, Condition, Object
from stowplan.objects.pod_parts import Container, PodSpec, ResourceRequirements
from stowplan.objects.pods import Pod, once_per_pod

GROUP, VERSION, KIND = "scheduling.kubenexus.io", "v1alpha1", "ResourceReservation"
NAMED = f"{GROUP}/reservation"
GPU = "nvidia.com/gpu"
_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
PROPER = re.compile(rf"{_PART}(\.{_PART})*")
LONGEST = 253
_LABELS = frozenset((*APPLICATIONS, *ROLES, *NAMES, POD_GROUP))


class Reserved(ApiValue, frozen=True):
    """Room on a node. The flat fields are an older form; `resources` takes precedence over them."""

    node: str = ""
    resources: dict[str, str | int | float] = {}
    cpu: str | int | float | None = None
    memory: str | int | float | None = None
    gpu: str | int | float | None = None

    @property
    def quantities(self) -> dict[str, str]:
        flat = {"cpu": self.cpu, "memory": self.memory, GPU: self.gpu}
        given = {name: amount for name, amount in flat.items() if amount is not None} | self.resources
        return {name: str(amount) for name, amount in given.items()}


class ResourceReservationSpec(ApiValue, frozen=True):
    """`ttlSeconds`: a reservation without an owner is deleted if no pod uses it for so long; 0: never."""

    reservations: dict[str, Reserved] = {}
    ttl_seconds: int = 0


class ResourceReservationStatus(ApiValue, frozen=True):
    """`pods`: the pod's name by slot. `reserved` and `taken` are numbers of slots."""

    pods: dict[str, str] = {}
    reserved: int = 0
    taken: int = 0
    conditions: tuple[Condition, ...] = ()


class ReservedSlot(msgspec.Struct, frozen=True):
    """A slot on a node. The amounts are in the units of the columns and include the one pod."""

    node: str
    amounts: dict[str, int]


class ResourceReservation(Object, frozen=True, dict=True):
    spec: ResourceReservationSpec = ResourceReservationSpec()
    status: ResourceReservationStatus = ResourceReservationStatus()

    @property
    def owner(self) -> str:
        """The uid of the pod that owns the reservation; "" for none."""
        return next((each.uid for each in self.metadata.owner_references if each.kind == "Pod"), "")

    @cached_property
    def slots(self) -> dict[str, ReservedSlot]:
        """The valid slots by name."""
        found = ((name, _slot(each)) for name, each in sorted(self.spec.reservations.items(), key=_order))
        return {name: slot for name, slot in found if isinstance(slot, ReservedSlot)}

    @cached_property
    def problems(self) -> tuple[str, ...]:
        found = ((name, _slot(each)) for name, each in self.spec.reservations.items())
        return tuple(f"spec.reservations.{name}{slot}" for name, slot in found if isinstance(slot, str))


def reservation_of(pod: Pod) -> str:
    """Return the namespace/name of the reservation that holds room for this pod; "" for most pods."""
    metadata = pod.metadata
    if (
        not metadata.annotations.get(NAMED)
        and _LABELS.isdisjoint(metadata.labels)
        and pod.spec.scheduling_group is None
    ):
        return ""
    return _reservation_of(pod)


@once_per_pod
def _reservation_of(pod: Pod) -> str:
    own = pod.annotations.get(NAMED, "")
    who = identity(pod)
    name = own or who.application or who.group or (pod.name if who.role == DRIVER else "")
    return f"{pod.namespace}/{object_name(name)}" if name else ""


def object_name(name: str) -> str:
    """Return a valid object name: invalid characters are replaced, and a checksum makes it unique."""
    if PROPER.fullmatch(name) and len(name) <= LONGEST:
        return name
    proper = re.sub("[^a-z0-9]+", "-", name.lower())[: LONGEST - 9].strip("-")
    return f"{proper or 'app'}-{zlib.crc32(name.encode()):08x}"


def amounts(resources: dict[str, str]) -> dict[str, int]:
    """Return the amounts of a pod with these requests, including the one pod. ValueError for an invalid quantity."""
    taken = {name: quantity.of(name, text) for name, text in resources.items() if requests.is_counted(name)}
    return {"pods": 1, **taken}


def slot_as_pod(reservation: Object, name: str, reserved: Reserved) -> Pod:
    """Return a pod that stands for a slot: with its node and requests, without a uid and labels."""
    asked = {resource: quantity.Quantity(text) for resource, text in reserved.quantities.items()}
    container = Container(resources=ResourceRequirements(requests=asked))
    metadata = msgspec.structs.replace(reservation.metadata, name=name, uid="", labels={}, annotations={})
    return Pod(metadata=metadata, spec=PodSpec(node_name=reserved.node, containers=(container,)))


def vacated(old: ResourceReservation | None, new: ResourceReservation | None) -> Iterator[Pod]:
    """Yield the slots that a change of a reservation releases, as pods; of equal slots on one node only one."""
    kept = {} if new is None else new.spec.reservations
    before = {} if old is None else {name: old.spec.reservations[name] for name in old.slots}
    given_up = {name: reserved for name, reserved in before.items() if kept.get(name) != reserved}
    alike = {(reserved.node, *sorted(reserved.quantities.items())): name for name, reserved in given_up.items()}
    for name in alike.values():
        assert old is not None
        yield slot_as_pod(old, name, given_up[name])


def _order(item: tuple[str, Reserved]) -> tuple[str, int, str]:
    """executor-2 before executor-10."""
    stem = item[0].rstrip("0123456789")
    return stem, int(item[0][len(stem) :] or 0), item[0]


def _slot(reserved: Reserved) -> ReservedSlot | str:
    """Return the slot, or what is wrong with it."""
    if not reserved.node:
        return ".node is empty: it must name a node"
    for resource, text in reserved.quantities.items():
        try:
            negative = quantity.nanos(text) < 0
        except ValueError as error:
            return f".resources.{resource}: {error}"
        if negative:
            return f".resources.{resource} is {text}: it must not be negative"
    return ReservedSlot(reserved.node, amounts(reserved.quantities))
