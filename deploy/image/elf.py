"""What a program or library needs of others: read from the ELF file, since another machine's loader cannot be asked.

Only 64 bits and the lower byte first: that is amd64 and arm64. The names and numbers are those of the specification.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
MACHINE = {62: "amd64", 183: "arm64"}
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NEEDED, DT_STRTAB, DT_SONAME, DT_RPATH, DT_RUNPATH = 1, 5, 14, 15, 29
DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF


@dataclass(frozen=True)
class Linked:
    """What the loader reads of a file. `versions`: of each library, which versions of its symbols are needed."""

    machine: str
    name: str = ""  # the name that others ask for
    interpreter: str = ""
    needed: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    versions: dict[str, frozenset[str]] = field(default_factory=dict)
    defines: frozenset[str] = frozenset()


def is_elf(data: bytes) -> bool:
    return data.startswith(MAGIC)


def read(data: bytes) -> Linked:
    machine, at, size, count = header(data)
    segments = [struct.unpack_from("<IIQQQQQQ", data, at + size * each) for each in range(count)]
    loads = [(address, offset, length) for kind, _, offset, address, _, length, *_ in segments if kind == PT_LOAD]
    interpreter = next((text(data, each[2]) for each in segments if each[0] == PT_INTERP), "")
    dynamic = next((each for each in segments if each[0] == PT_DYNAMIC), None)
    if dynamic is None:
        return Linked(machine, interpreter=interpreter)
    tags = list(struct.iter_unpack("<qQ", data[dynamic[2] : dynamic[2] + dynamic[5] // 16 * 16]))
    values = dict(tags)
    strings = offset_of(values[DT_STRTAB], loads)

    def named(tag: int) -> tuple[str, ...]:
        return tuple(text(data, strings + value) for key, value in tags if key == tag)

    found = Tables(data, strings)
    return Linked(
        machine,
        name=next(iter(named(DT_SONAME)), ""),
        interpreter=interpreter,
        needed=named(DT_NEEDED),
        search=tuple(filter(None, ":".join(named(DT_RUNPATH) or named(DT_RPATH)).split(":"))),
        versions=found.needed(offset_of(values[DT_VERNEED], loads), values[DT_VERNEEDNUM])
        if DT_VERNEED in values
        else {},
        defines=found.defined(offset_of(values[DT_VERDEF], loads), values[DT_VERDEFNUM])
        if DT_VERDEF in values
        else frozenset(),
    )


def header(data: bytes) -> tuple[str, int, int, int]:
    """Return the machine, and where the program headers are, how large each is, and how many there are."""
    (number,) = struct.unpack_from("<H", data, 18)
    (at,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    return MACHINE.get(number, f"machine {number}"), at, size, count


def offset_of(address: int, loads: list[tuple[int, int, int]]) -> int:
    """Return where in the file is what the loader puts at an address."""
    return next(offset + address - start for start, offset, length in loads if start <= address < start + length)


def text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


class Tables:
    """The two tables of versions: each is a chain of entries, and each entry has a chain of its own."""

    def __init__(self, data: bytes, strings: int) -> None:
        self.data, self.strings = data, strings

    def needed(self, at: int, count: int) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for _ in range(count):
            _, inner_count, file, inner, following = struct.unpack_from("<HHIII", self.data, at)
            names, place = set(), at + inner
            for _ in range(inner_count):
                _, flags, _, name, step = struct.unpack_from("<IHHII", self.data, place)
                if not flags & 2:  # a weak one may be missing
                    names.add(text(self.data, self.strings + name))
                place += step
            found[text(self.data, self.strings + file)] = frozenset(names)
            at += following
        return found

    def defined(self, at: int, count: int) -> frozenset[str]:
        found = set()
        for _ in range(count):
            _, _, _, _, _, inner, following = struct.unpack_from("<HHHHIII", self.data, at)
            (name,) = struct.unpack_from("<I", self.data, at + inner)
            found.add(text(self.data, self.strings + name))
            at += following
        return frozenset(found)
