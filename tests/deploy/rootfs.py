"""The image's root filesystem, and programs that are started in it as in a container:
its own root, read-only, as a user without rights. To become such a user takes root.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NONROOT = 65532


@contextmanager
def assembled(folder: Path, *flags: str) -> Iterator[Path]:
    """Write the image's files into that folder; they are 150 MB, and removed afterwards. `flags`: of the command."""
    words = [sys.executable, "-m", "deploy.image", "rootfs", str(folder), *flags]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def provided(folder: Path) -> Iterator[Path]:
    """The same in `root` of that folder. Where this machine cannot run it, the test is skipped."""
    if reason := why_not():
        pytest.skip(reason)
    with assembled(folder / "root") as root:
        yield root


def command(
    root: Path, words: Sequence[str], mounts: Mapping[str, Path] | None = None, *,
    writable: Mapping[str, Path] | None = None, environment: Mapping[str, str] | None = None,
) -> list[str]:  # fmt: skip
    """A command that runs a program in its root. `mounts`, and what is `writable`: folders by their paths inside, which
    end with the process. `environment` is added to that of the image.
    """
    inside = [f"mount --bind {root} {root}"]
    for target, source in [*(mounts or {}).items(), *(writable or {}).items()]:
        place = shlex.quote(f"{root}{target}")
        inside.append(f"mount --bind {shlex.quote(str(source))} {place}")
        if target not in (writable or {}):
            inside.append(f"mount -o remount,ro,bind {place}")
    variables = {"PATH": "/bin", "HOME": "/home/nonroot", **(environment or {})}
    inside += [f"mount -o remount,ro,bind {root}", f"mount -t proc proc {root}/proc"]
    # Our own Python changes the root: the image has no shell and no chroot.
    become = (
        "import os, sys; os.chroot(sys.argv[1]); os.chdir('/'); os.setgroups([]); "
        f"os.setresgid({NONROOT}, {NONROOT}, {NONROOT}); os.setresuid({NONROOT}, {NONROOT}, {NONROOT}); "
        f"os.execve(sys.argv[2], sys.argv[2:], {variables!r})"
    )
    inside.append(f"exec {shlex.join([sys.executable, '-ISc', become, str(root), *words])}")
    return [shutil.which("unshare") or "unshare", "--mount", "sh", "-euc", "\n".join(inside)]


@cache
def why_not() -> str:
    """Why this machine cannot run it; empty if it can."""
    if sys.platform != "linux":
        return "only Linux has namespaces"
    if os.geteuid() != 0:
        return "only root may change roots"
    if not shutil.which("unshare"):
        return "no unshare on the PATH"
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"no mount namespace: {done.stderr.strip()}"


def run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(root, words), capture_output=True, text=True, check=False)
