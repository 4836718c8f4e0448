"""`make setup` and `make demo`: create .venv, install Stowplan into it, and say what was installed, and what it took.

It runs before anything is installed, so it needs Python's own library only.

    python packaging/install.py           what Stowplan needs to run
    python packaging/install.py dev       also the tools of its developers

A line is shown for each package when it is fetched. What pip says is shown whole if it fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

FOLDER = Path(".venv")
PYTHON = FOLDER / "bin" / "python"
CONSTRAINTS = "constraints.txt"
FETCHED, INSTALLED = ("Downloading ", "Using cached "), "Successfully installed "


def main(extra: str = "") -> int:
    begun = time.monotonic()
    if not PYTHON.exists():
        tell(f"Creating {FOLDER} with Python {sys.version.split()[0]}")
        subprocess.run([sys.executable, "-m", "venv", str(FOLDER)], check=True)
    tell(f"Installing Stowplan and what it needs to run{', and the tools of its developers' if extra else ''}")
    output: list[str] = []
    code = pip(f".[{extra}]" if extra else ".", output)
    if code:
        sys.stderr.write("".join(output))
        return code
    took = time.monotonic() - begun
    for line in summary(output, took, size_of(FOLDER)):
        tell(line)
    return 0


def pip(what: str, output: list[str]) -> int:
    """Install; tell of each package that is fetched, and keep what pip says. Return pip's exit code."""
    command = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off", "--editable", what]
    environment = {**os.environ, "PIP_CONSTRAINT": CONSTRAINTS, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in progress(kept(process.stdout, output)):
            tell(line)
    return process.returncode


def kept(lines: Iterable[str], output: list[str]) -> Iterator[str]:
    for line in lines:
        output.append(line)
        yield line


def progress(lines: Iterable[str]) -> Iterator[str]:
    """Yield a line for each package that pip fetches, with its size; metadata alone is not told."""
    for line in map(str.strip, lines):
        if line.startswith(FETCHED) and ".metadata" not in line:
            file, size = line.removeprefix(FETCHED[0]).removeprefix(FETCHED[1]).split(maxsplit=1)
            yield f"  {' '.join(file.removesuffix('.whl').split('-')[:2])} {size}"
        elif line.startswith("Installing collected packages: "):
            yield f"  installing {line.count(',') + 1} packages …"


def summary(output: Iterable[str], seconds: float, megabytes: float) -> list[str]:
    """Return what was installed, how long it took, and what .venv takes."""
    line = next((each for each in output if each.startswith(INSTALLED)), "")
    names = [" ".join(each.rsplit("-", 1)) for each in line.removeprefix(INSTALLED).split()]
    took = f"in {seconds:.0f} s; {FOLDER} takes {megabytes:.0f} MB"
    if not names:
        return [f"Nothing new was needed ({took})"]
    listed = textwrap.wrap(", ".join(names), 78, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return [f"Installed {len(names)} packages {took}:", *listed]


def size_of(folder: Path) -> float:
    """Return the size of all files in a folder, in megabytes."""
    return sum(each.lstat().st_size for each in folder.rglob("*") if not each.is_dir()) / 1e6


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
