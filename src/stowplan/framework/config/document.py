"""A configuration document, from text to typed values, as strict as kube-scheduler's own decoder.

1. `parse` reads YAML or JSON text within bounds. A duplicate key, a list, an empty text and invalid text are errors.
2. `decode` rejects unknown fields, drops nulls (Go reads them as "not set") and converts the rest with msgspec. Errors
   of msgspec are reworded: with our path (`profiles[0].plugins`), the value found, and a remedy.
"""

from __future__ import annotations

import difflib
import json
import re
import types
import typing
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar, Union

import msgspec

from stowplan.framework.config import removed
from stowplan.objects import bounded_yaml
from stowplan.objects.errors import ConfigError

T = TypeVar("T")

MINIMAL = "the shortest one is: {apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}"


class ConfigValue(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part of a configuration document."""


class Seconds(float):
    """A Go duration of the file ("15s", "1m30s") as seconds."""


# --- 1. text ---------------------------------------------------------------------------------------------------------


def parse(
    text: str | bytes | Mapping[str, Any], *, kind: str = "KubeSchedulerConfiguration", minimal: str = MINIMAL
) -> dict[str, Any]:
    """Return the mapping in the text; errors name the `kind` that it should be, and the shortest one."""
    if isinstance(text, Mapping):
        return dict(text)
    value = _values(text)
    if value is None:
        raise ConfigError("the configuration is empty", remedy=minimal)
    if not isinstance(value, dict):
        raise ConfigError(f"found {shown(value)}, expected one {kind}", remedy=minimal)
    return value


def _values(text: str | bytes) -> Any:
    most = bounded_yaml.DEFAULT_LIMITS
    if len(text) <= most.characters and text.lstrip()[:1] in ("{", b"{"):
        try:
            return _shallow(json.loads(text, object_pairs_hook=_once, parse_constant=_no_number), most.depth)
        except (ValueError, RecursionError):
            pass  # a YAML flow mapping begins with a brace, too
    return bounded_yaml.load(text, most)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ConfigError(f'the key "{key}" appears twice')
        found[key] = value
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _shallow(value: Any, depth: int) -> Any:
    """Return the value if it is nested no deeper than this. Raises ValueError for half a surrogate pair."""
    level = [value]
    for _ in range(depth):
        level = [item for each in level for item in _items(each)]
        for each in level:
            if isinstance(each, str):
                each.encode()
        if not level:
            return value
    raise ConfigError("nested too deeply", remedy=f"expected at most {depth} levels")


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return (*value, *value.values())
    return value if isinstance(value, list) else ()


# --- 2. types --------------------------------------------------------------------------------------------------------


def decode(value: Any, kind: type[T], path: str = "") -> T:
    """Return `value` as a `kind`; `path` is its place in the document."""
    value = _without_nulls(value, kind, path)
    try:
        return msgspec.convert(value, kind, dec_hook=_custom)
    except msgspec.ValidationError as error:
        raise reworded(str(error), value, path) from None
    except UnicodeEncodeError:
        raise ConfigError("found half a surrogate pair in a text", path=path) from None


def _without_nulls(value: Any, kind: Any, path: str) -> Any:
    kind, element = _structure(kind)
    if element is not None and isinstance(value, list):
        return [_without_nulls(item, element, f"{path}[{i}]") for i, item in enumerate(value)]
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, Mapping)):
        return value
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    for key in value:
        if key not in fields:
            where = under(path, str(key))
            remedy = removed.field(where) or suggestion(str(key), fields) or f"known here: {', '.join(sorted(fields))}"
            raise ConfigError("unknown field", path=where, remedy=remedy)
    return {key: _without_nulls(item, fields[key], under(path, key)) for key, item in value.items() if item is not None}


def _structure(kind: Any) -> tuple[Any, Any]:
    """Return the type without `| None`, and the type of its elements if it is a list."""
    if typing.get_origin(kind) in (Union, types.UnionType):
        kind = next(part for part in typing.get_args(kind) if part is not types.NoneType)
    if typing.get_origin(kind) in (list, tuple):
        return kind, typing.get_args(kind)[0]
    return kind, None


def _custom(kind: type, value: Any) -> Any:
    if kind is Seconds and isinstance(value, str) and (seconds := duration(value)) is not None:
        return seconds
    raise ValueError(f"Expected `{kind.__name__}`")


_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST_DURATION = 100  # characters; the search for parts takes the square of that
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


def duration(text: str) -> Seconds | None:
    """Return the seconds of a duration in Go's syntax; None: it is not a duration."""
    sign, rest = (-1.0, text[1:]) if text[:1] == "-" else (1.0, text.removeprefix("+"))
    if rest == "0":
        return Seconds(0)
    if not rest or len(rest) > _LONGEST_DURATION or _PART.sub("", rest):
        return None
    return Seconds(sign * sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(rest)))


# --- errors ----------------------------------------------------------------------------------------------------------

_MESSAGE = re.compile(r"^(?P<what>.*?)(?: - at `\$?(?P<at>.*)`)?$", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<kind>\w+)(?: \| null)?`(?P<bound> [<>]=? ?-?\d+)?")
_MISSING = re.compile(r"missing required field `(.*)`")
WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "Seconds": 'a duration such as "15s" or "1m30s"',
}


def reworded(message: str, value: Any, path: str) -> ConfigError:
    """Return msgspec's message about a value as an error with our path, the value found, and a remedy."""
    parts = _MESSAGE.match(message)
    what, at = (parts["what"], parts["at"] or "") if parts else (message, "")
    where = under(path, at.removeprefix("."))
    if missing := _MISSING.search(what):
        return ConfigError(f'"{missing[1]}" is missing', path=where)
    found = _at(value, at)
    if expected := _EXPECTED.match(what):
        kind, bound = expected["kind"], expected["bound"] or ""
        problem = f"found {shown(found)}, expected {WORDS.get(kind, kind)}{bound}"
        return ConfigError(problem, path=where, remedy=hint(found, kind))
    return ConfigError(f"found {shown(found)}: {what}", path=where)


def hint(found: Any, kind: str) -> str:
    """Return what helps if quotes, or YAML's words for true and false, made a value of a wrong kind."""
    if isinstance(found, bool) and kind == "str":
        return "YAML reads yes, no, on and off as true and false: put it in quotes"
    if kind in ("int", "float") and isinstance(found, str) and found.removeprefix("-").isdigit():
        return "write it without quotes"
    if kind == "bool" and found in ("true", "false"):
        return "write it without quotes"
    return ""


def _at(value: Any, at: str) -> Any:
    before, *_ = at.split("[...]")  # msgspec does not tell which key of a mapping it was
    for key, index in re.findall(r"\.(\w+)|\[(\d+)\]", before):
        value = value[key] if key else value[int(index)]
    return value


def under(path: str, name: str) -> str:
    """Return the path of `name` inside `path`; `name` may be a path itself, or an index such as `[0]`."""
    return f"{path}.{name}" if path and name and not name.startswith("[") else path + name


def shown(value: Any) -> str:
    """Return a value as it would be written in the file, short enough for one line."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    try:
        text = json.dumps(value, default=str, ensure_ascii=False).encode(errors="replace").decode()
    except ValueError:
        return "a number that is too long"
    return text if len(text) <= 60 else f"{text[:57]}..."


def flag(name: str, given: Any) -> bool:
    """Return an argument that must be true or false."""
    if not isinstance(given, bool):
        raise ConfigError(f"{name}: found {shown(given)}, expected true or false")
    return given


def snake(name: str) -> str:
    """Return the name in snake_case: minCandidateNodes → min_candidate_nodes, cacheTTLSeconds → cache_ttl_seconds."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def camel(name: str) -> str:
    """Return the name as it is written in a file, min_candidate_nodes → minCandidateNodes, if `snake` leads back."""
    first, *others = name.split("_")
    found = first + "".join(word[:1].upper() + word[1:] for word in others)
    return found if snake(found) == name else name


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `did you mean "score"?`, or an empty text if no known word is similar."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=2, cutoff=0.72)
    return f"did you mean {' or '.join(shown(by_lower[name]) for name in near)}?" if near else ""


def one_of(value: str, allowed: Collection[str], path: str) -> None:
    """Raise an error if the word is not one of the allowed ones."""
    if value not in allowed:
        raise ConfigError(f"found {shown(value)}, expected one of {', '.join(sorted(allowed))}", path=path)
