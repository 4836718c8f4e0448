"""CEL, the part that runs a checked tree, and counts what that costs in cel-go's own measure.

A tree becomes nested functions once, and is run for each cluster. Cost is what makes a user's expression harmless: each
name, field and call counts one, a list ten, a map thirty, what walks over a text or a list counts its length; beyond
the limit the run ends. Errors are values in CEL: `false && error` is false, whichever comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from stowplan.cel import functions
from stowplan.cel.syntax import SyntaxNode
from stowplan.cel.values import CelError, CostError, Optional, equal, typed

LIST_COST, MAP_COST = 10, 30
Scope: TypeAlias = "dict[str, Any]"
Run: TypeAlias = "Callable[[Scope, Meter], Any]"
_ATTRIBUTES = ("ident", "select")


class Meter:
    """What a run has cost so far, and which scores it may ask for."""

    __slots__ = ("cost", "limit", "scores")

    def __init__(self, limit: int, scores: Callable[[Any, str], Any]) -> None:
        self.cost, self.limit, self.scores = 0, limit, scores

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CostError("operation cancelled: actual cost limit exceeded")


def build(node: SyntaxNode) -> Run:
    """A function that runs the tree."""
    return _BUILDERS[node.kind](node)


def _constant(node: SyntaxNode) -> Run:
    value = node.value
    return lambda _scope, _meter: value


def _identifier(node: SyntaxNode) -> Run:
    name = node.name.removeprefix(".")

    def run(scope: Scope, meter: Meter) -> Any:
        meter.charge(1)
        if name not in scope:
            return typed(name)
        found = scope[name]
        if isinstance(found, CelError):  # what a fold has gathered so far
            raise found
        return found

    return run


def _is_attribute(node: SyntaxNode) -> bool:
    """A name with fields and indexes behind it, which cel-go looks up as one."""
    return node.kind in _ATTRIBUTES or (node.kind == "call" and node.name in ("_[_]", "_[?_]", "_?._"))


def _operand(node: SyntaxNode) -> Run:
    """What a field is taken of: a name, or the result of something else, which counts one more."""
    inner = build(node)
    if _is_attribute(node):
        return inner

    def run(scope: Scope, meter: Meter) -> Any:
        found = inner(scope, meter)
        meter.charge(1)
        return found

    return run


def _select(node: SyntaxNode) -> Run:
    operand, name = _operand(node.args[0]), node.name

    def run(scope: Scope, meter: Meter) -> Any:
        holder = operand(scope, meter)
        meter.charge(1)
        return field(holder, name)

    def test(scope: Scope, meter: Meter) -> Any:
        holder = operand(scope, meter)
        meter.charge(1)
        if isinstance(holder, Optional):
            return holder.there and isinstance(holder.value, dict) and name in holder.value
        if not isinstance(holder, dict):
            raise CelError(f"no such overload: has({name})")
        return name in holder

    return test if node.test else run


def field(holder: Any, name: Any) -> Any:
    if isinstance(holder, Optional):
        return holder if not holder.there else maybe(holder.value, name)
    if not isinstance(holder, dict):
        raise CelError(f"no such field: {name}")
    if name not in holder:
        raise CelError(f"no such key: {name}")
    return holder[name]


def maybe(holder: Any, key: Any) -> Optional:
    """`a.?b` and `a[?b]`."""
    if isinstance(holder, Optional):
        return holder if not holder.there else maybe(holder.value, key)
    if isinstance(holder, list):
        fits = isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(holder)
        return Optional(holder[key], True) if fits else Optional()
    if isinstance(holder, dict):
        return Optional(holder[key], True) if key in holder else Optional()
    raise CelError(f"no such field: {key}")


def _index(node: SyntaxNode) -> Run:
    operand, key = _operand(node.args[0]), build(node.args[1])
    own = 0 if _is_attribute(node.args[1]) else 1
    find = maybe if node.name in ("_[?_]", "_?._") else functions.index

    def run(scope: Scope, meter: Meter) -> Any:
        holder = operand(scope, meter)
        found = key(scope, meter)
        meter.charge(own)
        return find(holder, found)

    return run


def _call(node: SyntaxNode) -> Run:
    special = _SPECIAL.get(node.name)
    if special is not None:
        return special(node)
    arguments, function = [build(each) for each in node.args], functions.find(node.name, node.member)
    cost = functions.COSTS.get(node.name)

    def run(scope: Scope, meter: Meter) -> Any:
        values, failed = [], None
        for argument in arguments:
            try:
                values.append(argument(scope, meter))
            except CelError as error:
                if len(arguments) > 2:  # cel-go stops there; with two it looks at both first
                    raise
                values.append(error)
                failed = failed or error
        meter.charge(1 if cost is None else cost(values))
        if failed is not None:
            raise failed
        found = function(meter, *values)
        if isinstance(found, str) and len(found) > functions.LONG:
            meter.charge(len(found) // 10)
        return found

    return run


def _and(node: SyntaxNode) -> Run:
    return _logical(node, False)


def _or(node: SyntaxNode) -> Run:
    return _logical(node, True)


def _logical(node: SyntaxNode, decisive: bool) -> Run:
    sides = [build(each) for each in node.args]

    def run(scope: Scope, meter: Meter) -> Any:
        failed: CelError | None = None
        for side in sides:
            try:
                found = side(scope, meter)
            except CelError as error:
                failed = failed or error
                continue
            if found is decisive:
                return decisive
            if found is not (not decisive):
                failed = failed or CelError("no such overload")
        if failed is not None:
            raise failed
        return not decisive

    return run


def _conditional(node: SyntaxNode) -> Run:
    condition, then, otherwise = (build(each) for each in node.args)

    def run(scope: Scope, meter: Meter) -> Any:
        found = condition(scope, meter)
        if not isinstance(found, bool):
            raise CelError("no such overload")
        return then(scope, meter) if found else otherwise(scope, meter)

    return run


def _not_false(node: SyntaxNode) -> Run:
    inner = build(node.args[0])

    def run(scope: Scope, meter: Meter) -> Any:
        try:
            found = inner(scope, meter)
        except CelError:
            found = True
        meter.charge(1)
        return found is not False

    return run


def _list(node: SyntaxNode) -> Run:
    elements, optional = [build(each) for each in node.args], node.optional

    def run(scope: Scope, meter: Meter) -> Any:
        found = []
        for place, element in enumerate(elements):
            value = element(scope, meter)
            if place not in optional:
                found.append(value)
            elif value.there:
                found.append(value.value)
        meter.charge(LIST_COST)
        return found

    return run


def _map(node: SyntaxNode) -> Run:
    parts, optional = [build(each) for each in node.args], node.optional

    def run(scope: Scope, meter: Meter) -> Any:
        found: dict[Any, Any] = {}
        for place in range(len(parts) // 2):
            key, value = parts[2 * place](scope, meter), parts[2 * place + 1](scope, meter)
            if place in optional:
                if not value.there:
                    continue
                value = value.value
            if key in found or not isinstance(key, str | int):
                raise CelError(f"bad key {key!r} of a map")
            found[key] = value
        meter.charge(MAP_COST)
        return found

    return run


def _fold(node: SyntaxNode) -> Run:
    """all, exists, map, filter and their like. A gathered list is its own, so it may grow in place."""
    variable, gathered = node.variables
    over, first, condition, step, result = (build(each) for each in _growing(node))

    def run(scope: Scope, meter: Meter) -> Any:
        items = over(scope, meter)
        if isinstance(items, dict):
            items = list(items)
        elif not isinstance(items, list):
            raise CelError("no such overload: neither a list nor a map")
        inner = dict(scope)
        inner[gathered] = first(scope, meter)
        for item in items:
            inner[variable] = item
            if condition(inner, meter) is not True:
                break
            inner[gathered] = settle(step, inner, meter)
        inner.pop(variable, None)
        found = settle(result, inner, meter)
        if isinstance(found, CelError):
            raise found
        return found

    def settle(part: Run, inner: Scope, meter: Meter) -> Any:
        try:
            return part(inner, meter)
        except CelError as error:
            return error

    return run


def _growing(node: SyntaxNode) -> list[SyntaxNode]:
    """Mark `gathered + [x]` in a step: the list is appended to, instead of copied each time."""
    gathered = node.variables[1]
    step = node.args[3]
    for each in (step, *step.args):
        if each.kind == "call" and each.name == "_+_" and each.args[1].kind == "list":
            grown = each.args[0]
            if grown.kind == "ident" and grown.name == gathered:
                each.name = "append"
    return node.args


def _append(node: SyntaxNode) -> Run:
    gathered, added = (build(each) for each in node.args)

    def run(scope: Scope, meter: Meter) -> Any:
        found, more = gathered(scope, meter), added(scope, meter)
        meter.charge(1)
        found.extend(more)
        return found

    return run


def _equality(node: SyntaxNode) -> Run:
    left, right = (build(each) for each in node.args)
    wanted = node.name == "_==_"

    def run(scope: Scope, meter: Meter) -> Any:
        values, failed = [], None
        for side in (left, right):
            try:
                values.append(side(scope, meter))
            except CelError as error:
                values.append(error)
                failed = failed or error
        meter.charge(functions.shorter(values))
        if failed is not None:
            raise failed
        return equal(values[0], values[1]) is wanted

    return run


_SPECIAL: dict[str, Callable[[SyntaxNode], Run]] = {
    "_&&_": _and,
    "_||_": _or,
    "_?_:_": _conditional,
    "_[_]": _index,
    "_[?_]": _index,
    "_?._": _index,
    "_==_": _equality,
    "_!=_": _equality,
    "@not_strictly_false": _not_false,
    "__not_strictly_false__": _not_false,
    "append": _append,
}
_BUILDERS: dict[str, Callable[[SyntaxNode], Run]] = {
    "const": _constant,
    "ident": _identifier,
    "select": _select,
    "call": _call,
    "list": _list,
    "map": _map,
    "fold": _fold,
}
