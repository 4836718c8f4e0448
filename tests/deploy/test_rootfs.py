"""The files of the image, written into a folder, and started as in a container."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from tests.deploy import rootfs

VERSION = metadata.version("stowplan")
ASK = "import os, sys; print(os.getuid(), os.getgid(), os.listdir('/'), sys.prefix); open(sys.argv[1], 'w')"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with rootfs.provided(tmp_path_factory.mktemp("image")) as folder:
        yield folder


full = pytest.mark.full  # pip and compiling take half a minute


@full
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["/bin/stowplan", "--version"], f"stowplan {VERSION}", id="version"),
        pytest.param(["/bin/stowplan", "--help"], "Usage: stowplan [OPTIONS] COMMAND", id="help"),
        pytest.param(["/bin/kube-scheduler", "--help"], "--secure-port", id="kube-scheduler is `run`"),
        pytest.param(["/bin/kube-scheduler", "--version"], f"kube-scheduler {VERSION}", id="version of kube-scheduler"),
        pytest.param(["/bin/stowplan", "demo"], " is Running on ", id="a demo, with NumPy"),
    ],
)
def test_it_starts(root: Path, words: list[str], expected: str) -> None:
    done = rootfs.run(root, *words)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


@full
def test_run_imports_all_that_it_needs(root: Path) -> None:
    """`run` imports all its modules, and fails only because there is no cluster."""
    done = rootfs.run(root, "/bin/kube-scheduler", "-v=2", "--leader-elect")
    assert done.returncode == 2
    assert done.stderr.startswith("stowplan: no cluster to connect to")


@full
@pytest.mark.parametrize("place", ["/tmp/x", "/usr/lib/x", "/x"])
def test_nothing_is_writable_and_the_user_is_not_root(root: Path, place: str) -> None:
    done = rootfs.run(root, "/usr/bin/python3", "-c", ASK, place)
    assert done.stdout.startswith("65532 65532 ")
    assert "/usr" in done.stdout
    assert "work" not in done.stdout, "only what was put there"
    assert "Read-only file system" in done.stderr


@full
def test_there_are_no_setuid_files(root: Path) -> None:
    for folder, _, files in os.walk(root):
        for file in files:
            mode = (Path(folder) / file).lstat().st_mode
            if stat.S_ISREG(mode):
                assert not mode & (stat.S_ISUID | stat.S_ISGID | 0o022), f"{folder}/{file}"
    assert not (root / "usr" / "bin" / "sh").exists()
    assert not list(root.rglob("pip"))


@full
def test_all_modules_are_compiled(root: Path) -> None:
    package = root / "usr" / "lib" / "stowplan" / "stowplan"
    sources = {file.relative_to(package) for file in package.rglob("*.py")}
    compiled = {
        file.relative_to(package).parent.parent / f"{file.name.split('.')[0]}.py" for file in package.rglob("*.pyc")
    }
    assert sources == compiled


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    words = [sys.executable, "-m", "deploy.image", "rootfs", str(tmp_path)]
    done = subprocess.run(words, cwd=rootfs.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is not empty" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["precious"]
