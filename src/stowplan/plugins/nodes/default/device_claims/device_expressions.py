"""CEL expressions about devices: the environment they are checked in, and whether one is true of a device.

The one variable is `device`: its driver, attributes and capacity (by domain, then by name), and whether it allows
several allocations. A name without a domain belongs to the driver's. An unknown domain is an empty map.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, ClassVar, TypeAlias

from stowplan.cel import collections
from stowplan.cel.environment import Environment
from stowplan.cel.evaluation import CelEvaluation
from stowplan.cel.kubernetes import CelQuantity, SemanticVersion, parse_version
from stowplan.cel.syntax import CelSyntaxError
from stowplan.cel.values import CelError, CostError, type_name
from stowplan.objects.quantity import nanos
from stowplan.objects.resource_slices import Device, DeviceAttribute

MOST_COST = 1_000_000
MOST_EXPRESSIONS = 1024  # that are kept compiled
MOST_ANSWERS = 1 << 16  # of one expression

Matches: TypeAlias = "bool | str"  # a text says why the expression failed

ENVIRONMENT = Environment({"device": "map<string, dyn>"}, collections.FUNCTIONS, binds=True)


class ByDomain(dict[str, Any]):
    """Attributes or capacities by domain: every domain is there, those that nobody names are empty."""

    cel_type: ClassVar = "map"

    def __contains__(self, domain: object) -> bool:
        return isinstance(domain, str)

    def __missing__(self, domain: str) -> dict[str, Any]:
        return {}


class DeviceExpression:
    """One expression, compiled, with its answers about devices that are alike."""

    def __init__(self, text: str) -> None:
        self.problem, self._answers = "", dict[bytes, Matches]()
        try:
            self._run = ENVIRONMENT.compile(text).run
        except CelSyntaxError as error:
            self.problem = f"CEL compile error: {error}"

    def matches(self, driver: str, device: Device, alike: bytes) -> Matches:
        """Return if the expression is true of a device, or why it fails. `alike`: see `PooledDevice`."""
        if self.problem:
            return self.problem
        found = self._answers.get(alike)
        if found is None:
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            found = self._answers[alike] = self._evaluate(driver, device)
        return found

    def _evaluate(self, driver: str, device: Device) -> Matches:
        try:
            found = self._run({"device": document(driver, device)}, CelEvaluation(MOST_COST))
        except (CelError, CostError) as error:
            return f"CEL runtime error: {error}"
        except Exception as error:  # an expression is a tenant's
            return f"CEL runtime error: {type(error).__name__}"
        return found if isinstance(found, bool) else f"CEL runtime error: {_no_bool(found)}"


class DeviceExpressions:
    """Compiled expressions by their text; the least recently used are dropped."""

    def __init__(self) -> None:
        self._compiled: OrderedDict[str, DeviceExpression] = OrderedDict()

    def __call__(self, text: str) -> DeviceExpression:
        found = self._compiled.get(text)
        if found is None:
            found = self._compiled[text] = DeviceExpression(text)
            if len(self._compiled) > MOST_EXPRESSIONS:
                self._compiled.popitem(last=False)
        else:
            self._compiled.move_to_end(text)
        return found


def document(driver: str, device: Device) -> dict[str, Any]:
    """Return a device as expressions see it."""
    attributes, capacities = ByDomain(), ByDomain()
    for name, attribute in device.attributes.items():
        _put(attributes, driver, name, _value(attribute))
    for name, capacity in device.capacity.items():
        _put(capacities, driver, name, CelQuantity(nanos(capacity.value)))
    return {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacities,
        "allowMultipleAllocations": device.allow_multiple_allocations,
    }


def _put(by_domain: ByDomain, driver: str, name: str, value: Any) -> None:
    domain, slash, short = name.partition("/")
    by_domain.setdefault(domain if slash else driver, {})[short if slash else name] = value


def _value(attribute: DeviceAttribute) -> Any:
    if attribute.version is not None:
        version = parse_version(attribute.version)
        return CelError(f"parse semantic version: {attribute.version}") if version is None else version
    values = (attribute.integer, attribute.boolean, attribute.string)
    return next((value for value in values if value is not None), None)


_CONVERSIONS = {  # how cel-go says that a value of a type is no bool
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "double": "type conversion error from Double to 'bool'",
    "string": "unsupported native conversion from string to 'bool'",
}
_NAMES = {"Quantity": "kubernetes.Quantity", "Semver": "kubernetes.Semver"}


def _no_bool(found: Any) -> str:
    kind = "Semver" if isinstance(found, SemanticVersion) else type_name(found)
    problem = _CONVERSIONS.get(kind, f"type conversion error from '{kind}' to 'bool'")
    return f"CEL result of type {_NAMES.get(kind, kind)} could not be converted to bool: {problem}"
