"""The file that the page serves, as pprof's own tool reads it."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stowplan.apps.profiling.cpu_sampler import CpuProfile, StackFrame
from stowplan.apps.profiling.pprof import _varint, encoded

STEP = StackFrame("stowplan.engine.scheduler.Scheduler.step", "/src/scheduler.py", 150, 166)
SCORE = StackFrame("stowplan.plugins.Flavour.score", "/src/flavour.py", 10, 12)
FILTER = StackFrame("stowplan.plugins.Fit.filter", "/src/fit.py", 20, 21)
PROFILE = CpuProfile(
    started=1_790_000_000_000_000_000,
    seconds=2.0,
    stacks={
        ("MainThread", (SCORE, STEP)): (30, 300_000_000),
        ("MainThread", (FILTER, STEP)): (70, 700_000_000),
        ("serving", (STEP,)): (1, 1_000_000),
    },
)


def test_the_same_profile_gives_the_same_bytes() -> None:
    assert encoded(PROFILE) == encoded(PROFILE)
    assert gzip.decompress(encoded(PROFILE)).count(b"MainThread") == 1, "each text is written once"


@pytest.mark.parametrize(
    ("value", "data"), [(0, b"\0"), (127, b"\x7f"), (300, b"\xac\x02"), (1 << 35, b"\x80" * 5 + b"\1")]
)
def test_numbers(value: int, data: bytes) -> None:
    assert _varint(value) == data


def read(data: bytes) -> dict[int, list[Any]]:
    """The fields of a message, by number: integers, or bytes."""
    found: dict[int, list[Any]] = {}
    while data:
        key, data = number(data)
        value: Any
        value, data = number(data)
        if key & 7 == 2:
            value, data = data[:value], data[value:]
        found.setdefault(key >> 3, []).append(value)
    return found


def number(data: bytes) -> tuple[int, bytes]:
    value, shift, at = 0, 0, 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, data[at:]


def numbers(data: bytes) -> list[int]:
    found = []
    while data:
        value, data = number(data)
        found.append(value)
    return found


def test_the_message_holds_every_stack() -> None:
    message = read(gzip.decompress(encoded(PROFILE)))
    texts = [text.decode() for text in message[6]]
    assert texts[0] == "", "the first text is empty, by definition"
    types = [[texts[each[0]] for each in read(data).values()] for data in message[1]]
    assert types == [["samples", "count"], ["cpu", "nanoseconds"]]
    names = {read(each)[1][0]: texts[read(each)[2][0]] for each in message[5]}
    lines = {read(each)[1][0]: read(read(each)[4][0]) for each in message[4]}
    stacks = []
    for sample in map(read, message[2]):
        stack = [(names[lines[each][1][0]], lines[each][2][0]) for each in numbers(sample[1][0])]
        label = {texts[key]: texts[value] for key, value in [[each[0] for each in read(sample[3][0]).values()]]}
        stacks.append((label, stack, numbers(sample[2][0])))
    assert stacks == [
        ({"thread": thread}, [(frame.function, frame.line) for frame in stack], [*values])
        for (thread, stack), values in PROFILE.stacks.items()
    ]
    assert (message[9], message[10], message[12]) == ([PROFILE.started], [2_000_000_000], [10_000_000])


def pprof(file: Path, *arguments: str) -> str:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go on the PATH")
    command = [go, "tool", "pprof", *arguments, str(file)]
    environment = os.environ | {"PPROF_TMPDIR": str(file.parent), "GOFLAGS": "-mod=mod"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=file.parent, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.full  # Go builds the tool first
def test_go_tool_pprof_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "cpu.pb.gz"
    file.write_bytes(encoded(PROFILE))
    top = pprof(file, "-top", "-cum")
    assert "File: stowplan" in top and "Type: cpu" in top and "Duration: 2s, Total samples = 1001ms" in top
    first = next(line for line in top.splitlines() if "Scheduler.step" in line).split()
    assert (first[0], first[3]) == ("1ms", "1001ms")
    assert [line.split()[0] for line in top.splitlines() if "Fit.filter" in line] == ["700ms"]
    assert "/src/fit.py:21" in pprof(file, "-top", "-lines")
    assert "serving" in pprof(file, "-tags"), "threads are labels"
