"""The arguments of a plugin, checked and converted by the annotations of its constructor.

    class Budget:
        def __init__(self, percent: int, teams: list[Team] = ()) -> None: ...

    {"percent": "ten"}   →  ….args.percent: found "ten", expected an integer

Types are those that msgspec knows: numbers, texts, lists, mappings, Literal, enums, `| None`, and msgspec Structs or
dataclasses, whose fields may be written in camelCase. Of a union of Structs the tag tells which one is meant. A
parameter without an annotation, or with one that msgspec does not know, gets its argument as it is in the file.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect as types

from stowplan.framework.config.document import WORDS, camel, hint, reworded, shown, snake, suggestion, under
from stowplan.objects.errors import ConfigError

RECORDS = (types.StructType, types.DataclassType, types.TypedDictType)
LISTS = (types.ListType, types.SetType, types.FrozenSetType, types.VarTupleType, types.CollectionType)
SIMPLE: dict[type[types.Type], tuple[type, ...]] = {
    types.IntType: (int,),
    types.FloatType: (int, float),
    types.StrType: (str,),
    types.BoolType: (bool,),
    types.NoneType: (type(None),),
}
NAMES = {types.IntType: "int", types.FloatType: "float", types.StrType: "str", types.BoolType: "bool"}


class Misfit(NamedTuple):
    """A value that is not what its type says."""

    path: str
    found: Any
    kind: types.Type

    def error(self) -> ConfigError:
        names = [NAMES[type(each)] for each in _members(self.kind) if type(each) in NAMES]
        return ConfigError(
            f"found {shown(self.found)}, expected {in_words(self.kind)}",
            path=self.path,
            remedy=next(filter(None, (hint(self.found, name) for name in names)), ""),
        )


def converted(plugin: type, arguments: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the arguments as keywords of the plugin's constructor. `where`: the place of the arguments in the file."""
    annotations = dict(_annotations(plugin))
    keywords = {}
    for given, value in arguments.items():
        name = snake(given)
        known = annotations.get(name)
        keywords[name] = value if known is None else _converted(value, *known, under(where, given))
    return keywords


def examples(plugin: type) -> dict[str, str]:
    """Return how each argument can be written in YAML on one line, by its name in a file."""
    known = dict(_annotations(plugin))
    return {camel(name): _example(known[name][1]) if name in known else "VALUE" for name in _parameters(plugin)}


def _parameters(plugin: type) -> list[str]:
    return [
        name
        for name, parameter in inspect.signature(plugin).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _example(kind: types.Type) -> str:
    kind = next((each for each in _members(kind) if not isinstance(each, types.NoneType)), kind)
    if isinstance(kind, types.LiteralType | types.EnumType):
        return str(_choices(kind)[0])
    if isinstance(kind, LISTS):
        return f"[{_example(kind.item_type)}]"
    if isinstance(kind, types.DictType):
        return f"{{{_example(kind.key_type)}: {_example(kind.value_type)}}}"
    if isinstance(kind, RECORDS):
        return "{…}"
    return {types.IntType: "1", types.FloatType: "0.5", types.BoolType: "true"}.get(type(kind), "VALUE")


def _converted(value: Any, annotation: Any, kind: types.Type, path: str) -> Any:
    misfit = next(_misfits(value, kind, path), None)
    if misfit is not None:
        raise misfit.error()
    named = _with_field_names(value, kind, path)
    try:
        return msgspec.convert(named, annotation)
    except msgspec.ValidationError as error:  # a bound, a pattern, a date
        found = reworded(str(error), named, path)
        where = path + _as_written(found.path.removeprefix(path), value)
        raise ConfigError(found.problem, path=where, remedy=found.remedy) from None


def _as_written(path: str, value: Any) -> str:
    """Return a path in Python's names, such as `[0].max_per_node`, with the names that the value in the file has."""
    parts = []
    for key, index in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", path):
        if key and isinstance(value, Mapping):
            key = next((each for each in value if key in (each, snake(str(each)))), key)
            value = value.get(key)
        elif index.isdigit() and isinstance(value, list):
            value = value[int(index)]
        parts.append(f".{key}" if key else f"[{index}]")
    return "".join(parts)


def _annotations(plugin: type) -> Iterator[tuple[str, tuple[Any, types.Type]]]:
    """Yield each parameter whose type is known, with its annotation and what msgspec knows of it."""
    owner = next((each for each in plugin.__mro__ if "__init__" in vars(each)), plugin)
    names = {**vars(sys.modules.get(owner.__module__, object)), **vars(owner)}
    for name, parameter in inspect.signature(plugin).parameters.items():
        annotation = parameter.annotation
        if annotation is parameter.empty or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        try:
            annotation = _resolved(annotation, names)
            kind = types.type_info(annotation)
        except Exception:  # a name that is not there at run time, or a type that msgspec does not know
            continue
        if not _unknown(kind, set()):
            yield name, (annotation, kind)


def _resolved(annotation: Any, names: dict[str, Any]) -> Any:
    """Return the type that an annotation means, if it is a text: `from __future__ import annotations`."""
    while isinstance(annotation, str):  # there may be quotes inside
        holder = SimpleNamespace(__annotations__={"it": annotation})
        annotation = typing.get_type_hints(holder, names, include_extras=True)["it"]
    return annotation


def _unknown(kind: types.Type, seen: set[type]) -> bool:
    """True if a part of the type is nothing that a file can have."""
    if isinstance(kind, RECORDS):
        if getattr(kind, "array_like", False):
            return True
        if kind.cls in seen:
            return False
        seen.add(kind.cls)
        return any(_unknown(field.type, seen) for field in kind.fields)
    if isinstance(kind, LISTS):
        return _unknown(kind.item_type, seen)
    if isinstance(kind, types.DictType):
        return _unknown(kind.key_type, seen) or _unknown(kind.value_type, seen)
    if isinstance(kind, types.UnionType):
        return any(_unknown(each, seen) for each in kind.types)
    return isinstance(kind, types.CustomType)


# --- names of fields -------------------------------------------------------------------------------------------------


def _with_field_names(value: Any, kind: types.Type, path: str) -> Any:
    """Return the value with the names that fields have in Python, for all Structs and dataclasses in it."""
    records = _records(value, kind)
    if isinstance(value, Mapping) and records:
        if len(records) > 1:
            raise _untagged(value, records, path)
        return _renamed(value, records[0], path)
    for each in _members(kind):
        if isinstance(each, LISTS) and isinstance(value, list):
            return [_with_field_names(item, each.item_type, f"{path}[{i}]") for i, item in enumerate(value)]
        if isinstance(each, types.DictType) and isinstance(value, Mapping):
            return {key: _with_field_names(item, each.value_type, under(path, str(key))) for key, item in value.items()}
    return value


def _records(value: Any, kind: types.Type) -> list[Any]:
    """Return the Struct or dataclass that a value may be; all of a union if its tag is none of theirs."""
    records = [each for each in _members(kind) if isinstance(each, RECORDS)]
    if len(records) < 2 or not isinstance(value, Mapping):
        return records
    return [each for each in records if _tagged(value, each)] or records


def _tagged(value: Mapping[Any, Any], record: Any) -> bool:
    field = getattr(record, "tag_field", None)
    return field is not None and field in value and value[field] == record.tag


def _untagged(value: Mapping[Any, Any], records: list[Any], path: str) -> ConfigError:
    field, tags = records[0].tag_field, ", ".join(shown(each.tag) for each in records)
    if field not in value:
        return ConfigError(f'"{field}" is missing', path=path, remedy=f"choose one of {tags}")
    return ConfigError(f"found {shown(value[field])}, expected one of {tags}", path=under(path, field))


def _renamed(value: Mapping[Any, Any], record: Any, path: str) -> dict[str, Any]:
    fields = {field.encode_name: field.type for field in record.fields}
    renamed: dict[str, Any] = {}
    tag_field = getattr(record, "tag_field", None)
    for given, item in value.items():
        if given == tag_field is not None:
            renamed[given] = item
            continue
        name = given if given in fields else snake(str(given))
        if name not in fields:
            known = [camel(field) for field in sorted(fields)]
            remedy = suggestion(str(given), known) or f"known here: {', '.join(known)}"
            raise ConfigError("unknown field", path=under(path, str(given)), remedy=remedy)
        if name in renamed:
            raise ConfigError(f"{shown(given)} is given twice, in two spellings", path=path, remedy="give it once")
        renamed[name] = _with_field_names(item, fields[name], under(path, str(given)))
    missing = [field.encode_name for field in record.fields if field.required and field.encode_name not in renamed]
    if missing:
        raise ConfigError(f'"{camel(missing[0])}" is missing', path=path)
    return renamed


# --- values ----------------------------------------------------------------------------------------------------------


def _misfits(value: Any, kind: types.Type, path: str) -> Iterator[Misfit]:
    if isinstance(kind, types.UnionType):
        yield from _union_misfits(value, kind, path)
    elif type(kind) in SIMPLE:
        if not isinstance(value, SIMPLE[type(kind)]) or (isinstance(value, bool) and type(kind) is not types.BoolType):
            yield Misfit(path, value, kind)
    elif isinstance(kind, types.LiteralType | types.EnumType):
        if value not in _choices(kind):
            yield Misfit(path, value, kind)
    elif isinstance(kind, LISTS):
        if isinstance(value, list | tuple):
            for i, item in enumerate(value):
                yield from _misfits(item, kind.item_type, f"{path}[{i}]")
        else:
            yield Misfit(path, value, kind)
    elif isinstance(kind, types.DictType):
        if isinstance(value, Mapping):
            for key, item in value.items():
                yield from _misfits(key, kind.key_type, under(path, str(key)))
                yield from _misfits(item, kind.value_type, under(path, str(key)))
        else:
            yield Misfit(path, value, kind)
    elif isinstance(kind, RECORDS):
        if isinstance(value, Mapping):
            of = {field.encode_name: field.type for field in kind.fields}
            for given, item in value.items():
                field = of.get(given) or of.get(snake(str(given)))
                yield from _misfits(item, field, under(path, str(given))) if field is not None else ()
        else:
            yield Misfit(path, value, kind)


def _union_misfits(value: Any, kind: types.UnionType, path: str) -> Iterator[Misfit]:
    records = _records(value, kind)
    if isinstance(value, Mapping) and len(records) > 1:
        return  # which one is meant is told when its fields are named
    others = [each for each in kind.types if not isinstance(each, RECORDS)]
    found = [list(_misfits(value, each, path)) for each in (*records, *others)]
    if not all(found):
        return
    deeper = [misfits for misfits in found if misfits[0].path != path]  # the right container with a wrong content
    if deeper:
        yield from deeper[0]
    else:
        yield Misfit(path, value, kind)


def _members(kind: types.Type) -> tuple[types.Type, ...]:
    return kind.types if isinstance(kind, types.UnionType) else (kind,)


def _choices(kind: types.LiteralType | types.EnumType) -> list[Any]:
    return list(kind.values) if isinstance(kind, types.LiteralType) else [each.value for each in kind.cls]


def in_words(kind: types.Type) -> str:
    """Return what a type expects, as a person would say it."""
    members = [each for each in _members(kind) if not isinstance(each, types.NoneType)] or [kind]
    return " or ".join(dict.fromkeys(map(_member_in_words, members)))


def _member_in_words(kind: types.Type) -> str:
    if isinstance(kind, types.LiteralType | types.EnumType):
        choices = [shown(each) for each in _choices(kind)]
        return choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    if isinstance(kind, types.NoneType):
        return "null"
    if isinstance(kind, LISTS):
        return WORDS["array"]
    if isinstance(kind, (types.DictType, *RECORDS)):
        return WORDS["object"]
    return WORDS[NAMES[type(kind)]] if type(kind) in NAMES else type(kind).__name__.removesuffix("Type").lower()
