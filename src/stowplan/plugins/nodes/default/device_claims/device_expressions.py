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
from stowplan.cel.syntax import CelSyntaxError, SyntaxNode
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
        self.attributes: frozenset[str] | None = frozenset()  # the names of those that it reads; None: it may read any
        try:
            compiled = ENVIRONMENT.compile(text)
            self._run, self.attributes = compiled.run, attributes_read(compiled.tree)
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


def attributes_read(tree: SyntaxNode) -> frozenset[str] | None:
    """Return under which names an expression may find the attributes that it reads; None if that cannot be told.

    `device.attributes["a.example.com"].model` is published as `a.example.com/model`, or by the driver a.example.com
    itself as `model`. What else there is of a device (its capacity, say) is not looked at here.
    """
    names: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        domain = _domain(node.args[0]) if node.kind == "select" and node.args else None
        if domain is not None:
            names |= {node.name, f"{domain}/{node.name}"}
        elif node.kind == "ident" and node.name.removeprefix(".") == "device":
            return None
        elif node.kind == "select" and _is_device(node.args[0]):
            if node.name == "attributes":
                return None
        else:
            waiting += node.args
    return frozenset(names)


def _is_device(node: SyntaxNode) -> bool:
    return node.kind == "ident" and node.name.removeprefix(".") == "device"


def _domain(node: SyntaxNode) -> str | None:
    """Return the domain of `device.attributes["domain"]`; None for anything else."""
    if node.kind != "call" or node.name != "_[_]" or node.args[1].kind != "const":
        return None
    holder, domain = node.args[0], node.args[1].value
    of_device = holder.kind == "select" and holder.name == "attributes" and _is_device(holder.args[0])
    return domain if of_device and not holder.test and isinstance(domain, str) else None


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
