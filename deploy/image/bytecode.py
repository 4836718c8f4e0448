"""Compile modules, each to the same bytes whenever and wherever that is done.

What `marshal` writes depends a little on what else the process has in memory: it notes which strings are shared. So a
process of its own, which has loaded nothing else, compiles each module in a fork of itself. The result depends on the
Python, the path and the source only, and is kept in a cache under their hash.

The files are checked by no time and no hash when they are read (PEP 552): the file system of a container is read-only,
and a copy may change times.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from typing import BinaryIO

UNCHECKED = 0b01  # a hash of the source, which is not compared
ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}  # sets in constants have a fixed order
SIZES = struct.Struct("<II")
WORKERS = os.cpu_count() or 1


class CompileError(Exception):
    """A module does not compile."""


def place(path: str) -> str:
    """Return where the compiled form of a module belongs."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/__pycache__/{name.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc"


def compiled(sources: Mapping[str, bytes], cache: Path, python: Sequence[str], home: str) -> dict[str, bytes]:
    """Compile modules by their paths in the image, with an interpreter and its PYTHONHOME."""
    cache.mkdir(parents=True, exist_ok=True)
    kept = {path: cache / key(path, source) for path, source in sources.items()}
    wanted = [path for path in sorted(sources) if not kept[path].exists()]
    batches = [batch for batch in (wanted[each::WORKERS] for each in range(WORKERS)) if batch]
    command = [*python, "-S", __file__]
    environment = {**ENVIRONMENT, "PYTHONHOME": home}
    running = [
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in batches
    ]
    for process, batch in zip(running, batches, strict=True):
        # It reads all before it answers, so neither side waits for the other.
        output, _ = process.communicate(b"".join(job(path, sources[path]) for path in batch))
        if process.returncode:
            raise CompileError(f"the compiler ended with {process.returncode}")
        for path, data in zip(batch, answers(output), strict=True):
            part = kept[path].with_suffix(f".{os.getpid()}")
            part.write_bytes(data)
            part.replace(kept[path])
    return {path: file.read_bytes() for path, file in kept.items()}


def key(path: str, source: bytes) -> str:
    return hashlib.sha256(b"\0".join([MAGIC_NUMBER, sys.version.encode(), path.encode(), source])).hexdigest()


def job(path: str, source: bytes) -> bytes:
    name = f"/{path}".encode()
    return SIZES.pack(len(name), len(source)) + name + source


def answers(output: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(output):
        (size,) = struct.unpack_from("<I", output, at)
        found.append(output[at + 4 : at + 4 + size])
        at += 4 + size
    return found


# -- the process that compiles


def serve(jobs: BinaryIO, out: BinaryIO) -> None:
    data, at = jobs.read(), 0
    while at < len(data):
        name, source = SIZES.unpack_from(data, at)
        at += SIZES.size
        path, text = data[at : at + name].decode(), data[at + name : at + name + source]
        at += name + source
        answer = in_a_fork(path, text)
        out.write(struct.pack("<I", len(answer)) + answer)


def in_a_fork(path: str, source: bytes) -> bytes:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = compile(source, path, "exec", dont_inherit=True, optimize=0)
        with open(writing, "wb") as pipe:  # noqa: PTH123 (a pipe has no path)
            pipe.write(MAGIC_NUMBER + struct.pack("<I", UNCHECKED) + source_hash(source) + marshal.dumps(code))
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:  # noqa: PTH123
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise CompileError(f"{path} does not compile")
    return answer


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
