"""Build the image: fetch its parts, then let the image's own Python assemble them, once for each architecture.

That Python is unpacked from the same packages, for this machine, and started by its own loader with its own libraries.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deploy.image import fetching, layout, locks
from deploy.image.contents import distribution
from deploy.image.selection import MACHINES, PYTHON

ROOT = Path(__file__).parents[2]
LARGEST = 90_000_000  # bytes that a node fetches
LOADERS = {"amd64": "ld-linux-x86-64.so.2", "arm64": "ld-linux-aarch64.so.1"}
Tell = Callable[[str], None]


class BuildError(Exception):
    """The image cannot be built, here or at all."""


@dataclass(frozen=True)
class Image:
    folder: Path  # an OCI layout
    archive: Path  # the same as one tar file
    digest: str
    sizes: dict[str, int]  # compressed, by architecture


def image(out: Path, architectures: Sequence[str], plugins: Sequence[Path], tell: Tell) -> Image:
    for plugin in plugins:
        if plugin.suffix != ".whl" or not plugin.is_file():
            raise BuildError(f"{plugin}: not a wheel; expected a file whose name ends in .whl")
    cache = cache_folder()
    home = interpreter(cache, tell)
    with tempfile.TemporaryDirectory() as scratch:
        tell("building Stowplan's wheel")
        wheel = fetching.stowplan(cache, Path(scratch) / "wheel")
        version = wheel.name.split("-")[1]
        out.mkdir(parents=True, exist_ok=True)
        folder = out / f"stowplan-{version}"
        shutil.rmtree(folder, ignore_errors=True)
        described, date = [], 0
        for architecture in architectures:
            lock = locks.read(architecture)
            date = epoch(lock)
            tell(f"{architecture}: fetching {len(lock.packages)} packages and {len(locks.wheels())} wheels")
            files = fetching.packages(lock, cache)
            job = {
                "architecture": architecture,
                "date": date,
                "version": version,
                "packages": [asdict(each) for each in files],
                "files": list(map(str, files.values())),
                "wheels": list(map(str, fetching.libraries(architecture, cache))),
                "stowplan": str(wheel),
                "launcher": str(ROOT / "deploy" / "launcher.py"),
                "plugins": list(map(str, plugins)),
                "cache": str(cache),
                "out": str(folder),
                "bom": str(out / f"stowplan-{version}-{architecture}.cdx.json"),
            }
            tell(f"{architecture}: assembling")
            described.append(assembled(job, home))
    digest = layout.index(described, version, folder)
    archive = out / f"stowplan-{version}.oci.tar"
    layout.archive(folder, archive, date)
    sizes = {name: layout.compressed(each) for name, each in layout.manifests(folder).items()}
    for name, size in sizes.items():
        if size > LARGEST:
            raise BuildError(f"the image for {name} has {size:,} bytes; at most {LARGEST:,} are allowed")
    return Image(folder, archive, digest, sizes)


def epoch(lock: locks.Lock) -> int:
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given and not given.isdigit():
        raise BuildError(f"SOURCE_DATE_EPOCH is {given!r}; expected seconds since 1970")
    return int(given or lock.date)


def machine() -> str:
    """Return the architecture of this machine."""
    names = {kernel: architecture for architecture, kernel in MACHINES.items()}
    if platform.system() != "Linux" or platform.machine() not in names:
        known = " or ".join(MACHINES.values())
        raise BuildError(f"needs Linux on {known}, this is {platform.system()} on {platform.machine()}")
    return names[platform.machine()]


def interpreter(cache: Path, tell: Tell) -> Path:
    """Unpack the image's own Python for this machine, once for each lock."""
    architecture = machine()
    name = fetching.sha256(locks.place(architecture).read_bytes() + distribution_source())[:16]
    folder = cache / f"python-{architecture}-{name}"
    if not folder.exists():
        tell(f"unpacking Python {PYTHON} of the image")
        files = fetching.packages(locks.read(architecture), cache)
        part = folder.with_name(f"{folder.name}.{os.getpid()}")
        part.mkdir(parents=True)
        distribution((each, file.read_bytes()) for each, file in files.items()).write(part)
        fetching.settle(part, folder)
    return folder


def distribution_source() -> bytes:
    """What decides how the packages are unpacked, beside their content."""
    modules = (Path(__file__).with_name(f"{name}.py") for name in ("selection", "contents", "archives"))
    return b"".join(each.read_bytes() for each in modules)


def command(home: Path) -> list[str]:
    architecture = machine()
    libraries = home / "usr" / "lib" / f"{MACHINES[architecture]}-linux-gnu"
    program = home / "usr" / "bin" / f"python{PYTHON}"
    return [str(libraries / LOADERS[architecture]), "--library-path", str(libraries), str(program)]


def assembled(job: dict[str, Any], home: Path) -> layout.Descriptor:
    prefix = str(home / "usr")
    environment = {
        "PYTHONHOME": prefix,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        "PATH": os.environ.get("PATH", ""),
    }
    python = command(home)
    words = [*python, "-S", "-m", "deploy.image.assembly"]
    text = json.dumps(job | {"python": python, "home": prefix})
    done = subprocess.run(words, input=text, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(done.stderr.strip() or f"the assembly ended with {done.returncode}")
    described: layout.Descriptor = json.loads(done.stdout)
    return described


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stowplan" / "image"


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
