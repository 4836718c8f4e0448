"""What some claims ask for, compiled, and what they can tell of a device.

Pods of one template ask the same, each with claims of its own: so a question does not know the names of its claims.
Devices that no request and no constraint of a question tells apart have the same trait, whatever else differs. The
search knows traits only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stowplan.columns.devices.pools import PooledDevice
from stowplan.objects.devices import DeviceClass, DeviceSelector
from stowplan.objects.resource_claims import (
    ALL,
    CapacityRequest,
    DeviceAlternative,
    DeviceConstraint,
    DeviceRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from stowplan.objects.resource_slices import Device, DeviceAttribute, DeviceTaint
from stowplan.plugins.nodes.default.device_claims.capacities import CapacityAmount, amounts
from stowplan.plugins.nodes.default.device_claims.device_expressions import DeviceExpressions

MOST_DEVICES = 1 << 16  # whose traits are kept
EXACT_COUNT = "ExactCount"
Attribute: TypeAlias = tuple[str, object]  # the type of an attribute, and its value


class FatalError(Exception):
    """What ends the whole decision, in kube-scheduler's words.

    `claim`: the text goes on after this claim's key, or after its name if there is something `before` that.
    """

    def __init__(self, text: str, claim: int | None = None, *, before: str = "") -> None:
        super().__init__(text)
        self.text, self.claim, self.before = text, claim, before

    def message(self, keys: Sequence[str]) -> str:
        """Return the whole text. `keys`: those of the claims."""
        if self.claim is None:
            return self.text
        key = keys[self.claim]
        return f"{self.before}claim {key.partition('/')[2] if self.before else key}{self.text}"


@dataclass(frozen=True, eq=False)
class OneRequest:
    """A request, or one alternative of a request.

    number   its place among all requests and alternatives of the question
    name     its own name; `full_name` is with the request that it is an alternative of
    """

    number: int
    claim: int
    name: str
    parent: str
    device_class: DeviceClass
    spec: ExactDeviceRequest | DeviceAlternative

    @property
    def full_name(self) -> str:
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def base_name(self) -> str:
        """The name of the request itself."""
        return self.parent or self.name

    @property
    def takes_all(self) -> bool:
        return self.spec.allocation_mode == ALL

    @property
    def admin_access(self) -> bool:
        return isinstance(self.spec, ExactDeviceRequest) and bool(self.spec.admin_access)

    @property
    def has_admin_field(self) -> bool:
        return isinstance(self.spec, ExactDeviceRequest) and self.spec.admin_access is not None

    @property
    def tolerations(self) -> tuple[DeviceToleration, ...]:
        return self.spec.tolerations

    @property
    def capacity(self) -> CapacityRequest | None:
        return self.spec.capacity


@dataclass(frozen=True, eq=False)
class RequestOfClaim:
    """A request with its alternatives, of which one is enough; without alternatives it is one itself."""

    options: tuple[OneRequest, ...]
    is_list: bool


@dataclass(frozen=True, eq=False)
class OneConstraint:
    """A constraint. `requests`: the names of those that it is about; empty for all."""

    number: int
    attribute: str
    distinct: bool
    requests: frozenset[str]

    def covers(self, request: OneRequest) -> bool:
        if not self.requests or request.base_name in self.requests:
            return True
        return bool(request.parent) and request.full_name in self.requests


@dataclass(frozen=True, eq=False)
class ClaimQuestion:
    claim: int
    requests: tuple[RequestOfClaim, ...]
    constraints: tuple[OneConstraint, ...]


class Trait:
    """What a question can tell of a device.

    matches      by request: True, False, or why an expression failed
    tolerated    by request: all taints that matter are tolerated
    amounts      by request: what it takes of each capacity; None if the device cannot give it
    attributes   by constraint: the attribute that it is about; None if the device does not have it
    counters     True if the device consumes counters: then its pool matters, too
    """

    __slots__ = ("amounts", "attributes", "counters", "key", "matches", "shareable", "tolerated")

    def __init__(
        self,
        matches: tuple[bool | str, ...],
        tolerated: tuple[bool, ...],
        taken: tuple[dict[str, CapacityAmount] | None, ...],
        attributes: tuple[Attribute | None, ...],
        device: Device,
    ) -> None:
        self.matches, self.tolerated, self.amounts, self.attributes = matches, tolerated, taken, attributes
        self.shareable, self.counters = device.allow_multiple_allocations, bool(device.consumes_counters)
        consumed = tuple(None if each is None else tuple(sorted(each.items())) for each in taken)
        counters = tuple(
            (used.counter_set, tuple(sorted((name, str(each.value)) for name, each in used.counters.items())))
            for used in device.consumes_counters
        )
        self.key = (matches, tolerated, consumed, attributes, self.shareable, counters)


class DeviceQuestion:
    def __init__(
        self, claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass], expressions: DeviceExpressions
    ) -> None:
        """`classes` has every class that the claims name."""
        self._expressions = expressions
        self.all_requests: list[OneRequest] = []
        self.constraints: list[OneConstraint] = []
        self.claims = [self._claim(number, claim, classes) for number, claim in enumerate(claims)]
        self.has_lists = any(request.is_list for claim in self.claims for request in claim.requests)
        self.takes_all = any(request.takes_all for request in self.all_requests)
        self.traits: list[Trait] = []
        self._number_of: dict[object, int] = {}
        self._of_device: dict[Hashable, int] = {}
        self._names = self._attribute_names()

    def _claim(self, number: int, claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> ClaimQuestion:
        wanted = claim.spec.devices
        requests = tuple(self._request(number, request, classes) for request in wanted.requests)
        return ClaimQuestion(number, requests, tuple(map(self._constraint, wanted.constraints)))

    def _request(self, claim: int, request: DeviceRequest, classes: Mapping[str, DeviceClass]) -> RequestOfClaim:
        parent = request.name if request.first_available else ""
        named: list[tuple[str, ExactDeviceRequest | DeviceAlternative]] = (
            [(each.name, each) for each in request.first_available]
            if request.first_available
            else [(request.name, request.exactly or ExactDeviceRequest())]
        )
        options = []
        for name, spec in named:
            device_class = classes[spec.device_class_name]
            options.append(OneRequest(len(self.all_requests), claim, name, parent, device_class, spec))
            self.all_requests.append(options[-1])
        return RequestOfClaim(tuple(options), bool(request.first_available))

    def _constraint(self, constraint: DeviceConstraint) -> OneConstraint:
        distinct = constraint.match_attribute is None
        name = (constraint.distinct_attribute if distinct else constraint.match_attribute) or ""
        made = OneConstraint(len(self.constraints), name, distinct, frozenset(constraint.requests))
        self.constraints.append(made)
        return made

    def trait_of(self, pooled: PooledDevice) -> int:
        """Return the number of a device's trait."""
        alike = self._alike(pooled)
        number = self._of_device.get(alike)
        if number is None:
            if len(self._of_device) >= MOST_DEVICES:
                self._of_device.clear()
            trait = self._trait(pooled)
            number = self._number_of.setdefault(trait.key, len(self.traits))
            if number == len(self.traits):
                self.traits.append(trait)
            self._of_device[alike] = number
        return number

    def _alike(self, pooled: PooledDevice) -> Hashable:
        """Return the same for devices that differ only in attributes which nothing here reads."""
        if self._names is None:
            return pooled.alike
        found = pooled.device.attributes
        return pooled.unattributed, tuple([found.get(name) for name in self._names])

    def _attribute_names(self) -> tuple[str, ...] | None:
        """Return under which names attributes are read; None if an expression may read any."""
        names: set[str] = set()
        for request in self.all_requests:
            for selector in (*request.device_class.spec.selectors, *request.spec.selectors):
                read = self._expressions("" if selector.cel is None else selector.cel.expression).attributes
                if read is None:
                    return None
                names |= read
        for constraint in self.constraints:
            names |= {constraint.attribute, constraint.attribute.partition("/")[2]}
        return tuple(sorted(names))

    def _trait(self, pooled: PooledDevice) -> Trait:
        device, driver = pooled.device, pooled.slice.spec.driver
        return Trait(
            tuple(self._matches(request, pooled) for request in self.all_requests),
            tuple(tolerates(request.tolerations, device.taints) for request in self.all_requests),
            tuple(amounts(device.capacity, request.capacity) for request in self.all_requests),
            tuple(attribute(device, driver, constraint.attribute) for constraint in self.constraints),
            device,
        )

    def _matches(self, request: OneRequest, pooled: PooledDevice) -> bool | str:
        of_class = self._all_true(request.device_class.spec.selectors, pooled)
        if isinstance(of_class, tuple):
            return f"class {request.device_class.name}: selector #{of_class[0]}: {of_class[1]}"
        own = of_class and self._all_true(request.spec.selectors, pooled)
        if isinstance(own, tuple):
            return f": selector #{own[0]}: {own[1]}"
        return own and pooled.selected

    def _all_true(self, selectors: Iterable[DeviceSelector], pooled: PooledDevice) -> bool | tuple[int, str]:
        for number, selector in enumerate(selectors):
            expression = self._expressions("" if selector.cel is None else selector.cel.expression)
            found = expression.matches(pooled.slice.spec.driver, pooled.device, pooled.alike)
            if found is not True:
                return found if found is False else (number, found)
        return True

    def failure(self, request: OneRequest, text: str) -> FatalError:
        """Return the error of an expression that failed; `text` is from `Trait.matches`."""
        return FatalError(text, request.claim if text.startswith(":") else None)


def tolerates(tolerations: Sequence[DeviceToleration], taints: Iterable[DeviceTaint]) -> bool:
    """True if all taints that keep a device from being allocated are tolerated."""
    keeping = (taint for taint in taints if taint.effect in ("NoSchedule", "NoExecute"))
    return all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in keeping)


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (toleration.operator in ("Equal", "") and toleration.value == taint.value)


def attribute(device: Device, driver: str, name: str) -> Attribute | None:
    """Look an attribute up by its full name, or without the domain if that is the driver's."""
    found = device.attributes.get(name)
    if found is None:
        domain, slash, short = name.partition("/")
        found = device.attributes.get(short) if slash and domain == driver else None
    return None if found is None else _typed(found)


def _typed(found: DeviceAttribute) -> Attribute | None:
    fields = (("string", found.string), ("int", found.integer), ("bool", found.boolean), ("version", found.version))
    return next(((kind, value) for kind, value in fields if value is not None), None)
