"""`make demo` and `make setup`: one environment, filled in two steps, in either order, with what each needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = ("Makefile", "pyproject.toml", "constraints.txt", "packaging/install.py")
# Stands for the Python of .venv: it notes what pip is asked for, and runs everything else with the real one.
STAND_IN = """#!/bin/sh
case "$1 $2" in
  "-m pip") echo "$@" >> pip.log; echo "Collecting numpy"; echo "  Downloading numpy-2.4-py3-none-any.whl (16.4 MB)"
            echo "Successfully installed numpy-2.4 google-re2-1.1";;
  *) exec {python} "$@";;
esac
"""
OLD = """#!/bin/sh
test "$1" = -c && exec {python} -c "import sys; sys.version_info = (3, 10, 4, 'final', 0); exec(sys.argv[1])" "$2"
exec {python} "$@"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that make and the installer need, without an environment."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def script(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.format(python=sys.executable), encoding="utf-8")
    file.chmod(0o755)
    return file


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    left_out = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")  # this test may itself be run by make
    clean = {name: value for name, value in os.environ.items() if name not in left_out}
    return subprocess.run(["make", *arguments], cwd=folder, env=clean, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("target", ["demo", "setup", "test"])
def test_an_old_python_is_told_in_one_line(target: str, folder: Path) -> None:
    old = script(folder / "old" / "python3", OLD)
    done = make(folder, target, f"PYTHON={old}")
    assert done.returncode != 0 and done.stdout == ""
    first, *others = done.stderr.splitlines()
    assert first.startswith("needs Python 3.11 or later, this is 3.10 (")
    assert all(line.startswith("make: ") for line in others)
    assert not (folder / ".venv").exists(), "nothing is made"


@pytest.fixture
def prepared(folder: Path) -> Path:
    """The same with an environment whose pip only notes what it is asked for."""
    script(folder / ".venv" / "bin" / "python", STAND_IN)
    script(folder / ".venv" / "bin" / "stowplan", '#!/bin/sh\necho "stowplan $@"\n')
    return folder


def asked(folder: Path) -> list[str]:
    """Return what pip was asked to install since the last time."""
    log = folder / "pip.log"
    found = [line.split()[-1] for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
    log.unlink(missing_ok=True)
    return found


def test_the_demo_installs_what_it_needs_and_the_setup_adds_the_tools(prepared: Path) -> None:
    done = make(prepared, "demo", "ARGS=--pause")
    assert done.returncode == 0, done.stderr
    assert asked(prepared) == ["."] and done.stdout.endswith("stowplan demo --pause\n")
    assert make(prepared, "demo").stdout == "stowplan demo\n", "nothing is installed twice"
    assert make(prepared, "setup").returncode == 0
    assert asked(prepared) == [".[dev]"]
    assert make(prepared, "demo").stdout == "stowplan demo\n" and asked(prepared) == []


def test_after_the_setup_the_demo_installs_nothing(prepared: Path) -> None:
    assert make(prepared, "setup").returncode == 0
    assert asked(prepared) == [".[dev]"]
    assert make(prepared, "demo").stdout == "stowplan demo\n" and asked(prepared) == []


def test_a_new_dependency_is_installed_for_each(prepared: Path) -> None:
    make(prepared, "setup")
    later = (prepared / ".venv" / ".ready").stat().st_mtime + 10
    os.utime(prepared / "pyproject.toml", (later, later))
    asked(prepared)
    make(prepared, "demo")
    assert asked(prepared) == ["."]
    make(prepared, "setup")
    assert asked(prepared) == [".[dev]"]


def test_it_says_what_is_fetched_what_was_installed_and_what_it_took(prepared: Path) -> None:
    lines = make(prepared, "demo").stdout.splitlines()
    assert lines[:2] == ["Installing Stowplan and what it needs to run", "  numpy 2.4 (16.4 MB)"]
    assert lines[2].startswith("Installed 2 packages in ") and lines[2].endswith(" MB:")
    assert lines[3] == "  numpy 2.4, google-re2 1.1"


def test_if_pip_fails_its_words_are_shown_and_nothing_counts_as_installed(prepared: Path) -> None:
    script(prepared / ".venv" / "bin" / "python", STAND_IN.replace('echo "Successfully', 'exit 3; echo "'))
    done = make(prepared, "demo")
    assert done.returncode != 0 and "Collecting numpy" in done.stderr and "stowplan demo" not in done.stdout
    assert not (prepared / ".venv" / ".runs").exists()


@pytest.mark.full  # downloads about 40 MB, unless pip has them
def test_from_nothing_in_a_fresh_clone(tmp_path: Path) -> None:
    """What git has, and nothing else. No tool of developers is installed."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    done = make(tmp_path, "demo", f"PYTHON={getattr(sys, '_base_executable', sys.executable)}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Creating .venv with Python 3.") and " is Running on worker-0." in done.stdout
    assert (tmp_path / ".venv" / "bin" / "stowplan").exists()
    assert not [name for name in ("pytest", "mypy", "ruff") if (tmp_path / ".venv" / "bin" / name).exists()]
