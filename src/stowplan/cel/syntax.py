"""The checked syntax tree of an expression, decoded from the message that the CEL library returns (cel.expr.Expr)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from stowplan.cel.values import UInt
from stowplan.objects.errors import StowplanError


class CelSyntaxError(StowplanError):
    """An expression that does not parse, names what is not declared, or mixes types. The text says where."""


@dataclass(slots=True)
class SyntaxNode:
    """A node of a tree. `kind` says which of the other fields are used."""

    kind: str  # const, ident, select, call, list, map, fold
    name: str = ""  # of the identifier, field or function
    value: Any = None  # of a constant
    args: list[SyntaxNode] = field(default_factory=list)  # operands, elements, or keys and values in turn
    member: bool = False  # of a call: its first argument stood before the dot
    test: bool = False  # of a select: has()
    optional: frozenset[int] = frozenset()  # which elements or entries may be missing
    variables: tuple[str, str] = ("", "")  # of a fold: the loop variable, and the accumulator

    def walk(self) -> Iterator[SyntaxNode]:
        """Iterate over this node and all nodes below."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.args)


def decode(message: bytes) -> SyntaxNode:
    """Decode an expression that the library has compiled and serialized."""
    checked = dict(_fields(dict(_fields(message))[2]))
    return _expression(checked[4])


# -- protocol buffers, as far as a syntax tree needs them


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
    """Return a varint, and where the next value begins."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


# -- nodes


def _expression(data: bytes) -> SyntaxNode:
    for number, value in _fields(data):
        if number in _NODES:
            return _NODES[number](value)
    raise CelSyntaxError("a syntax tree with an empty node")


def _constant(data: bytes) -> SyntaxNode:
    return SyntaxNode("const", value=next((_value(*found) for found in _fields(data)), None))


def _value(number: int, value: Any) -> Any:
    """Return the value of a constant; the field's number says its type."""
    match number:
        case 2:
            return bool(value)
        case 3:
            return value - (1 << 64) if value >> 63 else value
        case 4:
            return UInt(value)
        case 5:
            return struct.unpack("<d", value)[0]
        case 6:
            return value.decode()
        case 7:
            return bytes(value)
        case _:
            return None


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


def _map(data: bytes) -> SyntaxNode:
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
    """Decode a comprehension: range, initial value, condition, step, result."""
    parts = dict(_fields(data))
    args = [_expression(parts[number]) for number in (2, 4, 5, 6, 7)]
    return SyntaxNode("fold", args=args, variables=(parts[1].decode(), parts[3].decode()))


_NODES: dict[int, Callable[[bytes], SyntaxNode]] = {
    3: _constant,
    4: _identifier,
    5: _select,
    6: _call,
    7: _list,
    8: _map,
    9: _fold,
}
