"""CEL, the part that knows the language: parsing and type checking, by Google's own library (cel-cpp, in Python's
hands).

Why this one: of the libraries there are, only it checks types, and a wrong type must be the placement's fault before
any cluster is looked at (`"a" + 1` and `semver(x, true)` are refused by Open Cluster Management). It also knows
optional fields (`a.?b`, `a[?b]`) and hands out the checked syntax tree. cel-python and common-expression-language do
not check types, the latter hands out no tree, and none of the three can count what an evaluation costs; so the tree is
evaluated here (`cel_run`), with cel-go's own measure of cost. Functions of the standard still run in the library
(`delegate`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from stowplan.cel import environment
from stowplan.objects.errors import StowplanError

LONGEST = 16384  # characters


class CelSyntaxError(StowplanError):
    """An expression that does not parse, names what is not there, or mixes types; the text says where."""


@dataclass(slots=True)
class SyntaxNode:
    """A node of a checked tree. `kind` says which of the others mean something."""

    kind: str  # const, ident, select, call, list, map, fold
    name: str = ""  # of the identifier, field or function
    value: Any = None  # of a constant
    args: list[SyntaxNode] = field(default_factory=list)  # operands, elements, or keys and values in turn
    member: bool = False  # of a call: its first argument stood before the dot
    test: bool = False  # of a select: has()
    optional: frozenset[int] = frozenset()  # which elements or entries may be missing
    variables: tuple[str, str] = ("", "")  # of a fold: what runs, and what gathers


def parse(expression: str) -> SyntaxNode:
    """The checked tree of an expression."""
    if len(expression) > LONGEST:
        raise CelSyntaxError(f"an expression of {len(expression)} characters is too long; {LONGEST} are the most")
    try:
        compiled = environment.checker().compile(expression)
    except RuntimeError as error:
        text = str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
        raise CelSyntaxError(f"compilation failed: {environment.in_our_words(text)}") from None
    checked = dict(_fields(dict(_fields(compiled.serialize()))[2]))
    return _expression(checked[4])


# -- protocol buffers, as far as a syntax tree needs them (cel.expr.Expr)


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        value: Any
        match tag & 7:
            case 0:
                value, at = _number(data, at)
            case 1:
                value, at = data[at : at + 8], at + 8
            case 2:
                size, at = _number(data, at)
                value, at = data[at : at + size], at + size
            case wire:
                raise CelSyntaxError(f"a syntax tree in an unknown form (wire type {wire})")
        yield tag >> 3, value


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _expression(data: bytes) -> SyntaxNode:
    for number, value in _fields(data):
        if number in _FORMS:
            return _FORMS[number](value)
    raise CelSyntaxError("a syntax tree with an empty node")


def _constant(data: bytes) -> SyntaxNode:
    return SyntaxNode("const", value=next((environment.constant(*found) for found in _fields(data)), None))


def _identifier(data: bytes) -> SyntaxNode:
    return SyntaxNode("ident", dict(_fields(data))[1].decode())


def _select(data: bytes) -> SyntaxNode:
    parts = dict(_fields(data))
    return SyntaxNode("select", parts[2].decode(), args=[_expression(parts[1])], test=bool(parts.get(3)))


def _call(data: bytes) -> SyntaxNode:
    node = SyntaxNode("call")
    for number, value in _fields(data):
        if number == 1:
            node.args.insert(0, _expression(value))
            node.member = True
        elif number == 2:
            node.name = value.decode()
        elif number == 3:
            node.args.append(_expression(value))
    return node


def _list(data: bytes) -> SyntaxNode:
    node, optional = SyntaxNode("list"), set()
    for number, value in _fields(data):
        if number == 1:
            node.args.append(_expression(value))
        elif isinstance(value, int):
            optional.add(value)
        else:  # packed
            at = 0
            while at < len(value):
                index, at = _number(value, at)
                optional.add(index)
    node.optional = frozenset(optional)
    return node


def _struct(data: bytes) -> SyntaxNode:
    node, optional = SyntaxNode("map"), set()
    for number, value in _fields(data):
        if number == 1 and value:
            raise CelSyntaxError(f"compilation failed: a message {value.decode()} cannot be made here")
        if number == 2:
            entry = dict(_fields(value))
            if entry.get(5):
                optional.add(len(node.args) // 2)
            node.args += [_expression(entry[3]), _expression(entry[4])]
    node.optional = frozenset(optional)
    return node


def _fold(data: bytes) -> SyntaxNode:
    """range, initial value, condition, step, result."""
    parts = dict(_fields(data))
    args = [_expression(parts[number]) for number in (2, 4, 5, 6, 7)]
    return SyntaxNode("fold", args=args, variables=(parts[1].decode(), parts[3].decode()))


_FORMS = {3: _constant, 4: _identifier, 5: _select, 6: _call, 7: _list, 8: _struct, 9: _fold}


@cache
def delegate(function: str, member: bool, forms: tuple[str, ...]) -> Any:
    """A program of one call, for functions that the library has; `forms` is what becomes of each argument first."""
    arguments = [form.format(f"a{index}") for index, form in enumerate(forms)]
    before = f"{arguments.pop(0)}." if member else ""
    return environment.plain().compile(f"{before}{function}({', '.join(arguments)})").eval
