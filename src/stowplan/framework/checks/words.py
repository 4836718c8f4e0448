"""The words of a plugin: the texts and numbers in its code and its arguments that a cluster could have.

A plugin that acts on pods with the label `heavy=true` has both words in its code. Random clusters that use them as
labels, annotations, taints, namespaces and resources find by themselves what the plugin acts on. The same holds for the
words of objects that are given to the checks: a pod's label may have to name one of them.
"""

from __future__ import annotations

import dis
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

import msgspec

from stowplan.objects.meta import Object

WORD = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_./]{0,200}[A-Za-z0-9])?")
SHORT = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
NAMESPACE = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
RESOURCE = re.compile(r"[a-z0-9.-]+\.[a-z]+/[-A-Za-z0-9_.]+")
NOT_ABOUT_PODS = ("wakes_on", "gauges", "reorders_on")  # names of kinds, actions and metrics
DEEPEST, MOST = 4, 40


@dataclass(frozen=True)
class Words:
    """In the order in which the code has them: a value often comes right after its key.

    `given` are the texts of given objects, and `spaces` their namespaces.
    """

    texts: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    given: tuple[str, ...] = ()
    spaces: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """What can be the value of a label."""
        return tuple(text for text in self.texts if SHORT.fullmatch(text))

    @property
    def namespaces(self) -> tuple[str, ...]:
        return (*(text for text in self.texts if NAMESPACE.fullmatch(text)), *self.spaces)

    @property
    def resources(self) -> tuple[str, ...]:
        return tuple(text for text in self.texts if RESOURCE.fullmatch(text))

    def __bool__(self) -> bool:
        return bool(self.texts or self.numbers or self.given)


def words_of(plugin: object, *more: object) -> Words:
    """Return the words of a plugin, and of other objects such as its twin."""
    found = [word for each in (plugin, *more) if each is not None for word in _of_instance(each)]
    texts = dict.fromkeys(word for word in found if isinstance(word, str) and WORD.fullmatch(word))
    numbers = dict.fromkeys(word for word in found if isinstance(word, int) and abs(word) < 2**31)
    return Words(tuple(texts)[:MOST], tuple(numbers)[:MOST])


def with_objects(words: Words, objects: Iterable[Object]) -> Words:
    """Return the words, and those of these objects: names, namespaces, labels, and the texts in the spec."""
    found, spaces = list[str | int](), dict[str, None]()
    for each in objects:
        metadata, spec = each.metadata, getattr(each, "spec", None)
        found += (metadata.name, *(word for pair in metadata.labels.items() for word in pair), *_of_value(spec, 0))
        spaces |= {metadata.namespace: None} if metadata.namespace else {}
    texts = dict.fromkeys(word for word in found if isinstance(word, str) and SHORT.fullmatch(word))
    return replace(words, given=tuple(texts)[:MOST], spaces=tuple(spaces)[:MOST])


def _of_instance(plugin: object) -> Iterator[str | int]:
    seen: set[int] = set()
    yield from _of_value(getattr(plugin, "__dict__", {}), 0)
    for each in type(plugin).__mro__[:-1]:
        for name, value in vars(each).items():
            if name.startswith("__") and name != "__init__":
                continue
            if isinstance(value, FunctionType):
                yield from _of_function(value, seen, 0)
            else:
                yield from _of_value(value, 0)


def _of_function(function: FunctionType, seen: set[int], depth: int) -> Iterator[str | int]:
    if id(function) in seen or depth > DEEPEST or function.__name__ in NOT_ABOUT_PODS:
        return
    seen.add(id(function))
    here = function.__module__.rpartition(".")[0]
    for code in codes_of(function.__code__):
        documentation = function.__doc__ if code is function.__code__ else None
        names = _keyword_names(code)
        for const in code.co_consts:
            if const != documentation and const not in names:
                yield from _of_value(const, 0)
        for name in code.co_names:
            used = function.__globals__.get(name)
            if isinstance(used, FunctionType):
                if used.__module__ == function.__module__ or (here and used.__module__.startswith(f"{here}.")):
                    yield from _of_function(used, seen, depth + 1)
            elif used is not None and name.upper() == name:  # a constant
                yield from _of_value(used, 0)


def _keyword_names(code: CodeType) -> list[tuple[str, ...]]:
    """Return the constants that are names of keyword arguments in calls."""
    steps = list(dis.get_instructions(code))
    following = [*steps[1:], None]
    return [
        code.co_consts[step.arg] if step.opname == "KW_NAMES" else step.argval
        for step, then in zip(steps, following, strict=True)
        if step.arg is not None and (step.opname == "KW_NAMES" or (then is not None and then.opname == "CALL_KW"))
    ]


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code, and that of the functions and comprehensions in it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from codes_of(const)


def _of_value(value: Any, depth: int) -> Iterator[str | int]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, int) and not isinstance(value, bool):
        yield int(value)
    elif depth > DEEPEST:
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not (isinstance(key, str) and key.startswith("__")):
                yield from _of_value(key, depth + 1) if depth else ()  # not the names of attributes
                yield from _of_value(item, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value if isinstance(value, list | tuple) else sorted(value, key=str):
            yield from _of_value(item, depth + 1)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _of_value(getattr(value, name), depth + 1)
