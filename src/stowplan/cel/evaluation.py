"""Running a checked syntax tree, and counting what that costs in cel-go's own measure.

A tree becomes nested functions once, and these run for each evaluation. The cost bounds the time of any expression:
each name, field and call costs 1, a list 10, a map 30, and a function that reads a string or a list costs by its
length. What values take is counted, too, before they are made (`sizes`). An evaluation that exceeds one of the two
limits ends. Errors are values in CEL: `false && error` is false, in either order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from stowplan.cel import costs, functions, sizes
from stowplan.cel.functions import Function
from stowplan.cel.syntax import SyntaxNode
from stowplan.cel.values import CelError, CostError, Optional, as_type, equal, type_named

Scope: TypeAlias = dict[str, Any]  # variables and their values
Functions: TypeAlias = Mapping[str, Function]  # those that the environment adds
Run: TypeAlias = "Callable[[Scope, CelEvaluation], Any]"
_ATTRIBUTES = ("ident", "select")


class CelEvaluation:
    """One evaluation of an expression: its cost so far, what its values took, and the functions bound for it."""

    __slots__ = ("cost", "functions", "limit", "taken")

    def __init__(self, limit: int, functions: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self.cost, self.limit, self.functions = 0, limit, functions or {}
        self.taken = 0

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CostError("operation cancelled: actual cost limit exceeded")

    def take(self, size: int) -> None:
        """Count bytes that are about to be taken. What is freed again counts, too: it took time."""
        self.taken += size
        if self.taken > sizes.MOST:
            raise sizes.too_large()


def build(node: SyntaxNode, own: Functions) -> Run:
    """Return a function that runs the tree. `own` are the functions that the environment adds."""
    return _BUILDERS[node.kind](node, own)


def _constant(node: SyntaxNode, _: Functions) -> Run:
    value = node.value
    return lambda _scope, _evaluation: value


def _identifier(node: SyntaxNode, _: Functions) -> Run:
    name = node.name.removeprefix(".")

    def run(scope: Scope, evaluation: CelEvaluation) -> Any:
        evaluation.charge(1)
        if name not in scope:
            return type_named(name)
        found = scope[name]
        if isinstance(found, CelError):  # the accumulator of a fold
            raise found
        return found

    return run


def _is_attribute(node: SyntaxNode) -> bool:
    """True for a name followed by fields and indexes, which cel-go looks up as one."""
    return node.kind in _ATTRIBUTES or (node.kind == "call" and node.name in ("_[_]", "_[?_]", "_?._"))


def _operand(node: SyntaxNode, own: Functions) -> Run:
    """Build what a field is selected from. It costs 1 more if it is not a name or a field itself."""
    inner = build(node, own)
    if _is_attribute(node):
        return inner

    def run(scope: Scope, evaluation: CelEvaluation) -> Any:
        found = inner(scope, evaluation)
        evaluation.charge(1)
        return found

    return run


def _select(node: SyntaxNode, own: Functions) -> Run:
    operand, name = _operand(node.args[0], own), node.name

    def run(scope: Scope, evaluation: CelEvaluation) -> Any:
        holder = operand(scope, evaluation)
        evaluation.charge(1)
        return select(holder, name)

    def test(scope: Scope, evaluation: CelEvaluation) -> Any:
        holder = operand(scope, evaluation)
        evaluation.charge(1)
        if isinstance(holder, Optional):
            return holder.present and isinstance(holder.value, dict) and name in holder.value
        if not isinstance(holder, dict):
            raise CelError(f"no such overload: has({name})")
        return name in holder

    return test if node.test else run


def select(holder: Any, name: Any) -> Any:
    """Evaluate `a.b`."""
    if isinstance(holder, Optional):
        return holder if not holder.present else select_optional(holder.value, name)
    if not isinstance(holder, dict):
        raise CelError(f"no such field: {name}")
    if name not in holder:
        raise CelError(f"no such key: {name}")
    return holder[name]


def select_optional(holder: Any, key: Any) -> Optional:
    """Evaluate `a.?b` and `a[?b]`."""
    if isinstance(holder, Optional):
        return holder if not holder.present else select_optional(holder.value, key)
    if isinstance(holder, list):
        fits = isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(holder)
        return Optional(holder[key], True) if fits else Optional()
    if isinstance(holder, dict) and isinstance(key, str | int):
        return Optional(holder[key], True) if key in holder else Optional()
    raise CelError(f"no such field: {sizes.shown(key)}")


def _index(node: SyntaxNode, own: Functions) -> Run:
    operand, key = _operand(node.args[0], own), build(node.args[1], own)
    key_cost = 0 if _is_attribute(node.args[1]) else 1
    find = select_optional if node.name in ("_[?_]", "_?._") else functions.index

    def run(scope: Scope, evaluation: CelEvaluation) -> Any:
        holder = operand(scope, evaluation)
        found = key(scope, evaluation)
        evaluation.charge(key_cost)
        return find(holder, found)

    return run


def _call(node: SyntaxNode, own: Functions) -> Run:
    special = _SPECIAL.get(node.name)
    if special is not None:
        return special(node, own)
    arguments, function = [build(each, own) for each in node.args], _function(node, own)
    cost = own[node.name].cost if node.name in own else costs.COSTS.get(node.name)

    def run(scope: Scope, evaluation: CelEvaluation) -> Any:
        values, failed = [], None
        for argument in arguments:
            try:
                values.append(argument(scope, evaluation))
            except CelError as error:
                if len(arguments) > 2:  # cel-go evaluates both of two arguments, and else stops at the first error
                    raise
                values.append(error)
                failed = failed or error
        evaluation.charge(1 if cost is None else cost(values))
        if failed is not None:
            raise failed
        try:
            found = function(evaluation, *values)
        except TypeError:  # arguments of types that are only known now
            raise CelError("no such overload") from None
        evaluation.charge(costs.of_result(found))
        return found

    return run


def _function(node: SyntaxNode, own: Functions) -> Callable[..., Any]:
    """Return the function that a node calls. Its first argument is the evaluation."""
    name = node.name
    if name in own and own[name].call is None:
        return lambda evaluation, *values: evaluation.functions[name](*values)
    call = functions.metered(own[name]) if name in own else functions.find(name, node.member)
    return lambda evaluation, *values: call(evaluation.take, *values)


def _and(node: SyntaxNode, own: Functions) -> Run:
    return _logical(node, own, False)


def _or(node: SyntaxNode, own: Functions) -> Run:
    return _logical(node, own, True)


def _logical(node: SyntaxNode, own: Functions, decisive: bool) -> Run:
    sides = [build(each, own) for each in node.args]

    def run(scope: Scope, evaluation: CelEvaluation) -> Any:
        failed: CelError | None = None
        for side in sides:
            try:
                found = side(scope, evaluation)
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


def _conditional(node: SyntaxNode, own: Functions) -> Run:
    condition, then, otherwise = (build(each, own) for each in node.args)

    def run(scope: Scope, evaluation: CelEvaluation) -> Any:
        found = condition(scope, evaluation)
        if not isinstance(found, bool):
            raise CelError("no such overload")
        return then(scope, evaluation) if found else otherwise(scope, evaluation)

    return run


def _not_false(node: SyntaxNode, own: Functions) -> Run:
    inner = build(node.args[0], own)

    def run(scope: Scope, evaluation: CelEvaluation) -> Any:
        try:
            found = inner(scope, evaluation)
        except CelError:
            found = True
        evaluation.charge(1)
        return found is not False

    return run


def _list(node: SyntaxNode, own: Functions) -> Run:
    constants = [each.value for each in node.args if each.kind == "const"]
    if constants and len(constants) == len(node.args) and not node.optional:
        return _constant_list(constants)
    elements, optional = [build(each, own) for each in node.args], node.optional

    def run(scope: Scope, evaluation: CelEvaluation) -> Any:
        evaluation.take(sizes.SLOT * len(elements))
        found = []
        for place, element in enumerate(elements):
            value = element(scope, evaluation)
            if place not in optional:
                found.append(value)
            elif as_type(value, Optional).present:
                found.append(value.value)
        evaluation.charge(costs.LIST_COST)
        return found

    return run


def _constant_list(values: list[Any]) -> Run:
    """Build a list of constants, which is made once: no list is changed but the one that a fold appends to."""

    def run(_: Scope, evaluation: CelEvaluation) -> Any:
        evaluation.charge(costs.LIST_COST)
        return values

    return run


def _map(node: SyntaxNode, own: Functions) -> Run:
    parts, optional = [build(each, own) for each in node.args], node.optional

    def run(scope: Scope, evaluation: CelEvaluation) -> Any:
        evaluation.take(sizes.ENTRY * len(parts) // 2)
        found: dict[Any, Any] = {}
        for place in range(len(parts) // 2):
            key, value = parts[2 * place](scope, evaluation), parts[2 * place + 1](scope, evaluation)
            if place in optional:
                if not as_type(value, Optional).present:
                    continue
                value = value.value
            if not isinstance(key, str | int) or key in found:
                raise CelError(f"bad key {sizes.shown(key)} of a map")
            found[key] = value
        evaluation.charge(costs.MAP_COST)
        return found

    return run


def _fold(node: SyntaxNode, own: Functions) -> Run:
    """Build a comprehension: all, exists, map, filter and so on."""
    variable, accumulator = node.variables
    over, first, condition, step, result = (build(each, own) for each in _append_in_place(node))

    def run(scope: Scope, evaluation: CelEvaluation) -> Any:
        items = over(scope, evaluation)
        if isinstance(items, dict):
            evaluation.take(sizes.SLOT * len(items))
            items = list(items)
        elif not isinstance(items, list):
            raise CelError("no such overload: neither a list nor a map")
        inner = dict(scope)
        inner[accumulator] = first(scope, evaluation)
        for item in items:
            inner[variable] = item
            if condition(inner, evaluation) is not True:
                break
            inner[accumulator] = result_or_error(step, inner, evaluation)
        inner.pop(variable, None)
        found = result_or_error(result, inner, evaluation)
        if isinstance(found, CelError):
            raise found
        return found

    def result_or_error(part: Run, inner: Scope, evaluation: CelEvaluation) -> Any:
        try:
            return part(inner, evaluation)
        except CelError as error:
            return error

    return run


def _append_in_place(node: SyntaxNode) -> list[SyntaxNode]:
    """Replace `accumulator + [x]` in the step: the list is appended to, and not copied each time.

    That is safe because nothing else refers to the list.
    """
    accumulator, step = node.variables[1], node.args[3]
    for each in (step, *step.args):
        if each.kind == "call" and each.name == "_+_" and each.args[1].kind == "list":
            grown = each.args[0]
            if grown.kind == "ident" and grown.name == accumulator:
                each.name = "append"
    return node.args


def _append(node: SyntaxNode, own: Functions) -> Run:
    accumulator, added = (build(each, own) for each in node.args)

    def run(scope: Scope, evaluation: CelEvaluation) -> Any:
        found, more = accumulator(scope, evaluation), added(scope, evaluation)
        evaluation.charge(1)
        evaluation.take(sizes.SLOT * len(more))
        found.extend(more)
        return found

    return run


def _equality(node: SyntaxNode, own: Functions) -> Run:
    left, right = (build(each, own) for each in node.args)
    wanted = node.name == "_==_"

    def run(scope: Scope, evaluation: CelEvaluation) -> Any:
        values, failed = [], None
        for side in (left, right):
            try:
                values.append(side(scope, evaluation))
            except CelError as error:
                values.append(error)
                failed = failed or error
        evaluation.charge(costs.of_equality(values))
        if failed is not None:
            raise failed
        return equal(values[0], values[1], evaluation.take) is wanted

    return run


_SPECIAL: dict[str, Callable[[SyntaxNode, Functions], Run]] = {
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
_BUILDERS: dict[str, Callable[[SyntaxNode, Functions], Run]] = {
    "const": _constant,
    "ident": _identifier,
    "select": _select,
    "call": _call,
    "list": _list,
    "map": _map,
    "fold": _fold,
}
