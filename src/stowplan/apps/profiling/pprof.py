"""A CPU profile in pprof's format, which `go tool pprof`, speedscope, Grafana and others read: gzipped protobuf.

The message has tables (texts, functions, locations), and samples that name locations by number. Few kinds of fields are
needed, so they are written here: numbers as varints, and everything else with its length before it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable

from stowplan.apps.profiling.cpu_sampler import INTERVAL, CpuProfile, StackFrame

# The numbers of fields in profile.proto.
SAMPLE_TYPE, SAMPLE, MAPPING, LOCATION, FUNCTION, TEXT = 1, 2, 3, 4, 5, 6
TIME, DURATION, PERIOD_TYPE, PERIOD, DEFAULT_TYPE = 9, 10, 11, 12, 14
FIRST = 1  # the id of the only mapping


def encoded(profile: CpuProfile, interval: float = INTERVAL) -> bytes:
    """Return the profile as a file: its samples have a number and a CPU time, and the name of the thread as a label."""
    return gzip.compress(_Encoder().message(profile, interval), mtime=0)


class _Encoder:
    """The tables of one message."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str, int], int] = {}
        self._locations: dict[StackFrame, int] = {}

    def message(self, profile: CpuProfile, interval: float) -> bytes:
        cpu = self._value_type("cpu", "nanoseconds")
        parts = [_bytes(SAMPLE_TYPE, self._value_type("samples", "count")), _bytes(SAMPLE_TYPE, cpu)]
        for (thread, stack), values in profile.stacks.items():
            label = _number(1, self._text("thread")) + _number(2, self._text(thread))
            locations = _bytes(1, _packed(map(self._location, stack)))
            parts.append(_bytes(SAMPLE, locations + _bytes(2, _packed(values)) + _bytes(3, label)))
        complete = b"".join(_number(field, 1) for field in (7, 8, 9))  # functions, files and lines are known
        parts.append(_bytes(MAPPING, _number(1, FIRST) + _number(5, self._text("stowplan")) + complete))
        parts += [_bytes(LOCATION, self._location_message(*each)) for each in self._locations.items()]
        parts += [_bytes(FUNCTION, self._function_message(*each)) for each in self._functions.items()]
        parts += [_number(TIME, profile.started), _number(DURATION, round(profile.seconds * 1e9))]
        parts += [_bytes(PERIOD_TYPE, cpu), _number(PERIOD, round(interval * 1e9))]
        parts.append(_number(DEFAULT_TYPE, self._text("cpu")))
        return b"".join((*parts, *(_bytes(TEXT, text.encode(errors="replace")) for text in self._texts)))

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _value_type(self, kind: str, unit: str) -> bytes:
        return _number(1, self._text(kind)) + _number(2, self._text(unit))

    def _location(self, frame: StackFrame) -> int:
        return self._locations.setdefault(frame, len(self._locations) + 1)

    def _location_message(self, frame: StackFrame, number: int) -> bytes:
        key = frame.function, frame.file, frame.first_line
        function = self._functions.setdefault(key, len(self._functions) + 1)
        line = _number(1, function) + _number(2, frame.line)
        return _number(1, number) + _number(2, FIRST) + _bytes(4, line)

    def _function_message(self, function: tuple[str, str, int], number: int) -> bytes:
        name, file, first_line = function
        texts = _number(2, self._text(name)) + _number(3, self._text(name)) + _number(4, self._text(file))
        return _number(1, number) + texts + _number(5, first_line)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _packed(values: Iterable[int]) -> bytes:
    return b"".join(map(_varint, values))


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
