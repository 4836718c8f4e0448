"""YAML from somebody else, within bounds: the text of a request body or of a configuration file as plain values.

YAML is small on the wire and large in memory: 400 bytes of aliases to aliases are ten million values. So the values are
made in one pass over the events of the parser, and each limit is checked before memory is taken:

1. `characters`: the size of the text.
2. `nodes`: scalars, lists and mappings, where an alias counts as much as what it stands for. A merge key (`<<`) is an
   alias like any other.
3. `depth`: how deep lists and mappings are nested, through aliases, too. An alias inside its own anchor has no depth.

The pass keeps a stack of its own, so no text can exhaust Python's. An error is a `ConfigError` with the line.

Values are those of JSON, read as the API server reads YAML: y, n, on and off are booleans, 2.0 is 2, 22:30 and
2024-01-31 are strings, and the key 1 is "1". An alias is a copy of what it stands for: to change one changes no other.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from stowplan.objects.errors import ConfigError

_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml, if PyYAML has it: ten times as fast
_TAG = "tag:yaml.org,2002:"
_BOOLEANS = {
    form: word in ("y", "yes", "true", "on")
    for word in ("y", "yes", "true", "on", "n", "no", "false", "off")
    for form in (word, word.capitalize(), word.upper())
}
_LETTERS = frozenset("yYnN")
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_INT = re.compile(r"[-+]?(0b[01][01_]*|0x[0-9a-fA-F][0-9a-fA-F_]*|0[0-7_]*|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LONGEST_NUMBER = 400  # characters; a longer one is a text, as one beyond a float's range is


@dataclass(frozen=True)
class YamlLimits:
    """How much a text may hold; the documents of one text are counted together."""

    characters: int = 3 * 1024 * 1024
    nodes: int = 100_000
    depth: int = 100


DEFAULT_LIMITS = YamlLimits()


def load(text: str | bytes, limits: YamlLimits = DEFAULT_LIMITS, *, unique_keys: bool = True) -> Any:
    """Return the value of a text with one document; None if it has none. Documents without a value do not count."""
    found = [value for value in load_all(text, limits, unique_keys=unique_keys) if value is not None]
    if len(found) > 1:
        raise ConfigError(f"found {len(found)} documents, expected one")
    return found[0] if found else None


def load_all(
    text: str | bytes, limits: YamlLimits = DEFAULT_LIMITS, *, unique_keys: bool = True, letters: bool = False
) -> list[Any]:
    """Return the value of each document. Raises ConfigError for text that is not YAML, or beyond the limits.

    `unique_keys`: a key that appears twice in a mapping is an error; otherwise its last value counts.
    `letters`: y and n are letters, as writers of YAML other than Go's take them; without it they are booleans.
    """
    if len(text) > limits.characters:
        raise ConfigError(f"found a text of {len(text):,} characters, expected at most {limits.characters:,}")
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"line {line}: not UTF-8 text: found the byte 0x{error.object[error.start]:02x}") from None
    try:
        return _Reading(limits, unique_keys, letters).documents(yaml.parse(decoded, _PARSER))
    except UnicodeEncodeError:
        raise ConfigError("not YAML: found half a surrogate pair") from None
    except yaml.MarkedYAMLError as error:
        line_of = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ConfigError(f"{line_of}not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"not YAML: {' '.join(str(error).split())}") from None


@dataclass
class _Open:
    """A list or mapping that has begun: its value so far, and what it counts."""

    value: list[Any] | dict[str, Any]
    line: int
    anchor: str | None
    nodes: int = 1
    height: int = 1
    key: str | None = None  # of a mapping, when the next value is this key's
    merging: bool = False  # the next value is that of a merge key
    merged: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Anchored:
    """What an alias stands for; `value` is none while its list or mapping is still open."""

    value: Any
    nodes: int
    height: int
    is_open: bool = False


class _Reading:
    """One pass over the events of a text."""

    def __init__(self, limits: YamlLimits, unique_keys: bool, letters: bool) -> None:
        self._limits, self._unique_keys, self._letters = limits, unique_keys, letters
        self._nodes = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}

    def documents(self, events: Iterator[yaml.Event]) -> list[Any]:
        found: list[Any] = []
        for event in events:
            line = event.start_mark.line + 1 if event.start_mark else 0
            match event:
                case yaml.DocumentStartEvent():
                    self._anchors.clear()
                case yaml.ScalarEvent():
                    self._count(1, 0, line)
                    merges = self._awaits_key() and event.value == "<<" and event.implicit[0] and not event.anchor
                    value = _MERGE if merges else _scalar(event, line, self._letters)
                    self._add(_Anchored(value, 1, 0), event.anchor, line, found)
                case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                    self._begin(event, line)
                case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                    self._end(found)
                case yaml.AliasEvent():
                    self._add(self._aliased(event.anchor or "", line), None, line, found)
        return found

    def _awaits_key(self) -> bool:
        if not self._open:
            return False
        top = self._open[-1]
        return isinstance(top.value, dict) and top.key is None and not top.merging

    def _count(self, nodes: int, height: int, line: int) -> None:
        """Check the limits for `nodes` more, which are nested `height` deep where the pass stands."""
        self._nodes += nodes
        if self._nodes > self._limits.nodes:
            most = f"expected at most {self._limits.nodes:,}, each alias counted as what it stands for"
            raise ConfigError(f"line {line}: found more than {self._limits.nodes:,} values", remedy=most)
        if len(self._open) + height > self._limits.depth:
            raise ConfigError(f"line {line}: nested too deeply", remedy=f"expected at most {self._limits.depth} levels")

    def _begin(self, event: yaml.SequenceStartEvent | yaml.MappingStartEvent, line: int) -> None:
        self._count(1, 1, line)
        is_list = isinstance(event, yaml.SequenceStartEvent)
        if self._awaits_key():
            raise ConfigError(f"line {line}: found a {'list' if is_list else 'mapping'} as a key, expected a text")
        if event.tag not in (None, "!", f"{_TAG}{'seq' if is_list else 'map'}"):
            raise _unknown_tag(event.tag, line)
        self._open.append(_Open([] if is_list else {}, line, event.anchor))
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(None, 0, 0, is_open=True)

    def _end(self, found: list[Any]) -> None:
        ended = self._open.pop()
        if isinstance(ended.value, dict):
            for key, value in ended.merged.items():
                ended.value.setdefault(key, value)
        self._add(_Anchored(ended.value, ended.nodes, ended.height), ended.anchor, ended.line, found)

    def _aliased(self, name: str, line: int) -> _Anchored:
        anchored = self._anchors.get(name)
        if anchored is None:
            raise ConfigError(f'line {line}: not YAML: found the undefined alias "{name}"')
        if anchored.is_open:
            raise ConfigError(f'line {line}: the alias "{name}" stands inside of what it stands for')
        self._count(anchored.nodes, anchored.height, line)
        return _Anchored(_copied(anchored.value), anchored.nodes, anchored.height)

    def _add(self, one: _Anchored, anchor: str | None, line: int, found: list[Any]) -> None:
        """Put a whole value where it belongs: into the innermost open list or mapping, or among the documents."""
        if anchor is not None:
            self._anchors[anchor] = one
        if not self._open:
            found.append(one.value)
            return
        top = self._open[-1]
        top.nodes, top.height = top.nodes + one.nodes, max(top.height, one.height + 1)
        if isinstance(top.value, list):
            top.value.append(one.value)
        elif top.merging:
            top.merging = False
            for mapping in _mappings(one.value, line):
                for key, value in mapping.items():
                    top.merged.setdefault(key, value)
        elif top.key is not None:
            top.value[top.key], top.key = one.value, None
        elif one.value is _MERGE:
            top.merging = True
        else:
            top.key = _key(one.value, line)
            if self._unique_keys and top.key in top.value:
                raise ConfigError(f'line {line}: the key "{top.key}" appears twice')


# --- values ----------------------------------------------------------------------------------------------------------

_MERGE = object()


def _scalar(event: yaml.ScalarEvent, line: int, letters: bool) -> Any:
    text, tag = event.value, event.tag
    if tag is None or tag == "!":
        return implied(text) if event.implicit[0] and not (letters and text in _LETTERS) else text
    try:
        return _TAGGED[tag.removeprefix(_TAG)](text)
    except KeyError:
        raise _unknown_tag(tag, line) from None
    except ValueError:
        raise ConfigError(
            f"line {line}: found {text[:60]!r}, expected what the tag !!{tag.removeprefix(_TAG)} says"
        ) from None


def implied(text: str) -> Any:
    """Return the value of a plain scalar."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] not in "+-.0123456789" or len(text) > _LONGEST_NUMBER:
        return text
    try:
        return _number(text)
    except ValueError:
        return text


def _boolean(text: str) -> bool:
    if text not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text]


def _null(text: str) -> None:
    if text not in _NULLS:
        raise ValueError(text)


def _number(text: str) -> int | float:
    """Return an integer of 64 bits, or a float; raises ValueError for what is neither."""
    if _INT.fullmatch(text):
        number = _integer(text.replace("_", ""))
        if -(1 << 63) <= number < 1 << 64:
            return number
    elif not _FLOAT.fullmatch(text):
        raise ValueError(text)
    found = float(text.replace("_", ""))
    if math.isinf(found):
        raise ValueError(text)
    return int(found) if found.is_integer() and abs(found) < 1 << 63 else found


def _integer(text: str) -> int:
    digits = text.lstrip("+-")
    if digits[:2] in ("0b", "0x"):
        return int(text, 0)
    return int(text, 8) if digits[0] == "0" else int(text)


def _binary(text: str) -> str:
    return base64.b64decode(text, validate=False).decode()


_TAGGED: dict[str, Callable[[str], Any]] = {
    "str": str, "int": _number, "float": _number, "bool": _boolean, "null": _null, "binary": _binary,
    "timestamp": str,
}  # fmt: skip


def _key(value: Any, line: int) -> str:
    """Return a key as the API server makes JSON of it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:.17g}" if isinstance(value, float) else str(value)
    found = "no value" if value is None else f"a {'list' if isinstance(value, list) else 'mapping'}"
    raise ConfigError(f"line {line}: found {found} as a key, expected a text")


def _mappings(value: Any, line: int) -> list[dict[str, Any]]:
    """Return what a merge key merges; of several mappings the first one wins."""
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in found):
        raise ConfigError(f"line {line}: found a merge key (<<) without a mapping, expected one or a list of them")
    return found


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _unknown_tag(tag: str, line: int) -> ConfigError:
    return ConfigError(f"line {line}: found the tag {tag[:60]!r}, expected a plain value")
