"""runc, the runtime below containerd and Docker, from Debian's packages; and containers of the image that it starts.

A runc on the PATH is used; otherwise its package is fetched and unpacked into the cache, once. Starting a container as
another user takes root, and cgroups that the machine lets it make; `why_not` says what is missing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from deploy.image import build, fetching, layout
from deploy.image.archives import unpack_package
from deploy.image.locks import LockError
from deploy.image.renewal import private_apt, run
from deploy.image.tree import Tree

PACKAGES = ("runc", "libseccomp2")  # the C library is the machine's
NAMESPACES = (
    "pid",
    "mount",
    "ipc",
    "uts",
    "cgroup",
)  # the network is the machine's: a control plane is on its loopback
TMPFS = {"type": "tmpfs", "source": "tmpfs"}
MOUNTS = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", **TMPFS, "options": ["nosuid", "mode=755"]},
    {"destination": "/tmp", **TMPFS, "options": ["nosuid", "nodev", "mode=1777"]},
]


@dataclass(frozen=True)
class Runtime:
    program: Path
    libraries: Path | None

    def command(self, *words: str) -> list[str]:
        """The command for root of this machine; libraries that are not the machine's are named to the loader."""
        known = [f"LD_LIBRARY_PATH={self.libraries}"] if self.libraries else []
        return ["/usr/bin/env", *known, str(self.program), *words]


def found() -> Runtime:
    if there := shutil.which("runc"):
        return Runtime(Path(there), None)
    folder = build.cache_folder() / "runc"
    if not folder.exists():
        fetch(folder)
    (libraries,) = (folder / "usr" / "lib").glob("*-linux-gnu")
    return Runtime(folder / "usr" / "sbin" / "runc", libraries)


def fetch(folder: Path) -> None:
    """Fetch the packages as apt does, with the signatures of Debian checked."""
    tree = Tree()
    with tempfile.TemporaryDirectory() as scratch:
        environment = os.environ | {"APT_CONFIG": str(private_apt(Path(scratch), build.machine()))}
        run("apt-get", "update", environment=environment)
        words = ["sh", "-euc", f"cd {scratch}; apt-get download {' '.join(PACKAGES)}"]
        run(*words, environment=environment)
        for file in Path(scratch).glob("*.deb"):
            unpack_package(file.read_bytes(), tree)
    part = folder.with_name(f"runc.{os.getpid()}")
    part.mkdir(parents=True)
    tree.write(part)
    fetching.settle(part, folder)


@dataclass(frozen=True)
class Bundle:
    """The root of an image and what its configuration says, in the form that a runtime reads."""

    folder: Path
    settings: Mapping[str, Any]

    def command(self, words: Sequence[str] = (), mounts: Mapping[str, Path] | None = None) -> list[str]:
        """The command that runs a program in a container, or what the image runs; it ends with the container."""
        bound = [
            {"destination": inside, "type": "bind", "source": str(outside), "options": ["rbind", "ro"]}
            for inside, outside in (mounts or {}).items()
        ]
        user, _, group = self.settings["User"].partition(":")
        document = {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": int(user), "gid": int(group)},
                "args": list(words or self.settings["Cmd"]),
                "env": self.settings["Env"],
                "cwd": self.settings["WorkingDir"],
                "capabilities": {},
                "noNewPrivileges": True,
            },
            "root": {"path": "rootfs", "readonly": True},
            "mounts": [*MOUNTS, *bound],
            "linux": {"namespaces": [{"type": each} for each in NAMESPACES]},
        }
        (self.folder / "config.json").write_text(json.dumps(document), encoding="utf-8")
        state, name = str(self.folder / "state"), f"stowplan-{uuid.uuid4().hex[:12]}"
        return found().command("--root", state, "run", "--bundle", str(self.folder), name)

    def run(self, *words: str, mounts: Mapping[str, Path] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(words, mounts), capture_output=True, text=True, check=False)


@contextmanager
def bundle(image: Path, folder: Path) -> Iterator[Bundle]:
    """Unpack the image for this machine from an OCI layout; it is 250 MB, and removed afterwards."""
    machine = build.machine()
    manifest = layout.manifests(image)[machine]
    settings = json.loads(layout.read(image, manifest["config"]["digest"]))["config"]
    (folder / "rootfs").mkdir(parents=True)
    layout.files(image, machine).write(folder / "rootfs")
    try:
        yield Bundle(folder, settings)
    finally:
        shutil.rmtree(folder)


@cache
def why_not() -> str:
    """Why this machine cannot start a container; empty if it can."""
    try:
        build.machine()
    except build.BuildError as error:
        return str(error)
    if os.geteuid() != 0:
        return "only root may become another user"
    if shutil.which("runc") is None and shutil.which("apt-get") is None:
        return "no runc on the PATH, and no apt-get to fetch it with"
    try:
        done = subprocess.run(found().command("--version"), capture_output=True, text=True, check=False)
    except LockError as error:
        return f"runc could not be fetched: {error}"
    return "" if done.returncode == 0 else f"runc does not start: {done.stderr.strip()}"
