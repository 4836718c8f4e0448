"""Takes from a document the fields that a dump has (`contents`), and hands each value to a treatment.

What a value means follows from the type of its field, and for a few from its name: a text is a word, a mapping of texts
is a set of labels, a quantity an amount. So a field that is added to a type is in the dump, and its names are replaced,
without a further line here. A value that is not of its field's type is scrubbed: nothing that we do not know passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import inspect

from stowplan.objects.nodes import ContainerImage
from stowplan.objects.quantity import Quantity
from stowplan.objects.selectors import LabelSelectorRequirement
from stowplan.objects.storage import TopologyRequirement
from stowplan.objects.taints import Taint, Toleration

Document: TypeAlias = Mapping[str, Any]
LABELS = ("labels", "matchLabels", "nodeSelector", "selector")
IMAGES, ADDRESSES = ("image", "reference"), ("hostIP",)
TEXTS = ("message", "note")  # sentences
LEFT_OUT = ("resourceVersion",)
LISTS_OF_NAMED = ("volumes", "containerStatuses", "initContainerStatuses")  # a name alone says nothing in them
KEYED = (LabelSelectorRequirement, TopologyRequirement, Taint, Toleration)


class Treatment(Protocol):
    """What is done with each value of a dump. None: it is left out."""

    def word(self, text: str) -> str: ...

    def label(self, key: str, value: str) -> str: ...

    def annotation(self, key: str, value: str) -> str | None: ...

    def resource(self, name: str) -> str: ...

    def amount(self, value: Any) -> Any: ...

    def image(self, text: str) -> str: ...

    def address(self, text: str) -> str: ...

    def holder(self, text: str) -> str: ...

    def time(self, text: str) -> str | None: ...

    def text(self, text: str) -> str | None: ...

    def unknown(self, value: Any) -> Any: ...


Field: TypeAlias = Callable[[Any, Treatment], Any]


def dumped(kind: type[msgspec.Struct], document: Document, treatment: Treatment) -> dict[str, Any]:
    """Return what a dump has of a document. `kind`: the type that has the fields, of `CONTENTS` for example."""
    found = _of_type(kind)(document, treatment)
    known = {name: document[name] for name in ("apiVersion", "kind") if name in document}
    return {**known, "metadata": {}, **found}


@cache
def _of_type(kind: type[msgspec.Struct]) -> Field:
    return _field("", inspect.type_info(kind))


def _field(name: str, kind: inspect.Type) -> Field:
    match kind:
        case inspect.StructType():
            return _keyed(kind) if issubclass(kind.cls, KEYED) else _struct(kind)
        case inspect.VarTupleType() | inspect.ListType():
            return _many(name, _field(name, kind.item_type))
        case inspect.DictType():
            return _mapping(name, kind)
        case inspect.UnionType():
            return _union(name, kind)
        case inspect.CustomType():
            return _amount
        case inspect.StrType():
            return _text(name)
        case inspect.DateTimeType():
            return _time
        case inspect.IntType() | inspect.BoolType() | inspect.FloatType():
            return _amount
    return _unknown


def _union(name: str, kind: inspect.UnionType) -> Field:
    """The field of the one type that is not None; a number or a text, such as 3 or "30%", is an amount."""
    found = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
    if len(found) == 1:
        return _field(name, found[0])
    structs = [each for each in found if isinstance(each, inspect.StructType)]
    if structs:
        return _struct(structs[0])
    return _amount


def _struct(kind: inspect.StructType) -> Field:
    fields = {each.encode_name: _field(each.encode_name, each.type) for each in kind.fields}
    wanted = {name: field for name, field in fields.items() if name not in LEFT_OUT}
    if kind.cls is ContainerImage:
        wanted["names"] = _many("names", _image)

    def struct(value: Any, treatment: Treatment) -> Any:
        if not isinstance(value, dict):
            return treatment.unknown(value)
        found = {}
        for name, each in value.items():
            field = wanted.get(name)
            if field is not None and each is not None and (kept := field(each, treatment)) is not None:
                found[name] = kept
        return found

    return struct


def _keyed(kind: inspect.StructType) -> Field:
    """A condition on a key, whose values are those of that key."""
    rest = {"operator", "effect"} & {each.encode_name for each in kind.fields}

    def keyed(value: Any, treatment: Treatment) -> Any:
        if not isinstance(value, dict) or not isinstance(key := value.get("key", ""), str):
            return treatment.unknown(value)
        found = {"key": treatment.word(key)} if key else {}
        found |= {name: treatment.word(value[name]) for name in rest if isinstance(value.get(name), str)}
        if isinstance(one := value.get("value"), str):
            found["value"] = treatment.label(key, one)
        if isinstance(many := value.get("values"), list):
            found["values"] = [_label(key, each, treatment) for each in many]  # type: ignore[assignment]
        return found

    return keyed


def _label(key: str, value: Any, treatment: Treatment) -> Any:
    return treatment.label(key, value) if isinstance(value, str) else treatment.unknown(value)


def _many(name: str, field: Field) -> Field:
    with_more = name in LISTS_OF_NAMED

    def many(value: Any, treatment: Treatment) -> Any:
        if not isinstance(value, list):
            return treatment.unknown(value)
        found = [field(each, treatment) for each in value if each is not None]
        return [each for each in found if not isinstance(each, dict) or each.keys() != {"name"}] if with_more else found

    return many


def _mapping(name: str, kind: inspect.DictType) -> Field:
    if name == "annotations":
        return _annotations
    if isinstance(kind.value_type, inspect.StrType) and name in LABELS:
        return _labels
    if name == "resources" or (isinstance(kind.value_type, inspect.CustomType) and kind.value_type.cls is Quantity):
        return _amounts
    if isinstance(kind.value_type, inspect.AnyType):
        return _unknown
    field = _field("", kind.value_type)

    def mapping(value: Any, treatment: Treatment) -> Any:
        if not isinstance(value, dict):
            return treatment.unknown(value)
        return {treatment.word(str(key)): field(each, treatment) for key, each in value.items()}

    return mapping


def _labels(value: Any, treatment: Treatment) -> Any:
    if not isinstance(value, dict):
        return treatment.unknown(value)
    return {treatment.word(key): _label(key, each, treatment) for key, each in value.items() if each is not None}


def _annotations(value: Any, treatment: Treatment) -> Any:
    if not isinstance(value, dict):
        return treatment.unknown(value)
    found = ((key, treatment.annotation(key, each)) for key, each in value.items() if isinstance(each, str))
    return {treatment.word(key): each for key, each in found if each is not None} or None


def _amounts(value: Any, treatment: Treatment) -> Any:
    if not isinstance(value, dict):
        return treatment.unknown(value)
    return {treatment.resource(name): treatment.amount(each) for name, each in value.items() if each is not None}


def _text(name: str) -> Field:
    chosen = {
        **dict.fromkeys(IMAGES, _image),
        **dict.fromkeys(ADDRESSES, _address),
        **dict.fromkeys(TEXTS, _sentence),
        "holderIdentity": _holder,
        "extendedResourceName": _resource,
    }
    return chosen.get(name, _word)


def _word(value: Any, treatment: Treatment) -> Any:
    return treatment.word(value) if isinstance(value, str) else treatment.unknown(value)


def _image(value: Any, treatment: Treatment) -> Any:
    return treatment.image(value) if isinstance(value, str) else treatment.unknown(value)


def _address(value: Any, treatment: Treatment) -> Any:
    return treatment.address(value) if isinstance(value, str) else treatment.unknown(value)


def _holder(value: Any, treatment: Treatment) -> Any:
    return treatment.holder(value) if isinstance(value, str) else treatment.unknown(value)


def _resource(value: Any, treatment: Treatment) -> Any:
    return treatment.resource(value) if isinstance(value, str) else treatment.unknown(value)


def _sentence(value: Any, treatment: Treatment) -> Any:
    return treatment.text(value) if isinstance(value, str) else treatment.unknown(value)


def _time(value: Any, treatment: Treatment) -> Any:
    return treatment.time(value) if isinstance(value, str) else treatment.unknown(value)


def _amount(value: Any, treatment: Treatment) -> Any:
    return treatment.amount(value)


def _unknown(value: Any, treatment: Treatment) -> Any:
    return treatment.unknown(value)
