"""Write the locks anew: the youngest packages of the release by Debian's signed index, and what pip resolves.

apt reads the index of each architecture into a folder of its own, from the mirrors of this machine, and checks its
signatures. pip resolves the requirements of pyproject.toml, held to constraints.txt. It evaluates conditions such as
`python_version < "3.12"` for the Python it runs in, so that has to be the version of the image.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import cmp_to_key
from pathlib import Path
from typing import Any

from deploy.image.locks import BACKEND, WHEELS, Lock, LockError, Package, Wheel, normal, place, written, written_wheels
from deploy.image.selection import ARCHITECTURES, PACKAGES, PYTHON, SUITE
from deploy.image.tags import flags

ROOT = Path(__file__).parents[2]
FIELDS = ("ORIGIN", "CODENAME", "ARCHITECTURE", "FILENAME")
STORY = "Written by `make image-lock`: the libraries of the image, with a hash for each architecture."
STORY_OF_BACKEND = "Written by `make image-lock`: what builds Stowplan's own wheel. It is not in the image."


def renewed() -> dict[Path, str]:
    """Return the text of each lock as of today."""
    texts = {place(each): written(of_packages(each)) for each in ARCHITECTURES}
    texts[WHEELS] = written_wheels(of_wheels(), STORY)
    texts[BACKEND] = written_wheels(of_backend(), STORY_OF_BACKEND)
    return texts


def changes(texts: Mapping[Path, str]) -> list[str]:
    """Return the locks that are not as on disk. Their dates do not count."""
    return [
        f"{file.name}: {line}"
        for file, text in texts.items()
        for line in different(file.read_text(encoding="utf-8") if file.exists() else "", text)
    ]


def different(old: str, new: str) -> Iterator[str]:
    before, after = ({line.strip() for line in text.splitlines()} for text in (old, new))
    yield from (f"now {line.rstrip(',')}" for line in sorted(after - before) if not line.startswith('"date"'))


# -- packages


def of_packages(architecture: str) -> Lock:
    if shutil.which("apt-get") is None:
        raise LockError("no apt-get on the PATH: packages are locked on a machine with Debian (building needs none)")
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"APT_CONFIG": str(private_apt(Path(folder), architecture))}
        run("apt-get", "update", environment=environment)
        form = "\t".join(f"$({field})" for field in FIELDS)
        targets = run("apt-get", "indextargets", "--format", form, "Created-By: Packages", environment=environment)
        indexes = [
            line.split("\t")[3]
            for line in targets.splitlines()
            if line.startswith("Debian\t") and line.split("\t")[1].startswith(SUITE) and f"\t{architecture}\t" in line
        ]
        if not indexes:
            raise LockError(f"the sources of apt have no Debian {SUITE} for {architecture}; image-lock needs them")
        stanzas = [stanza for index in indexes for stanza in read_index(index, environment)]
        dates = [date_of(Path(each)) for each in Path(folder).glob("lists/*Release")]
    return Lock(architecture, max(dates), tuple(youngest(name, stanzas) for name in PACKAGES))


def private_apt(folder: Path, architecture: str) -> Path:
    """Write a configuration that leaves this machine's lists alone, and is of another architecture."""
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "archives" / "partial").mkdir(parents=True)
    (folder / "status").touch()
    lines = [
        f'APT::Architecture "{architecture}";',
        "#clear APT::Architectures;",
        f'APT::Architectures {{ "{architecture}"; }};',
        f'Dir::State "{folder}";',
        f'Dir::State::lists "{folder}/lists";',
        f'Dir::State::status "{folder}/status";',
        f'Dir::Cache "{folder}";',
        'Acquire::Languages "none";',
        'APT::Sandbox::User "";',
    ]
    file = folder / "apt.conf"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def read_index(file: str, environment: Mapping[str, str]) -> list[dict[str, str]]:
    """The stanzas of the packages that are wanted; apt keeps its lists compressed, in a form of its choice."""
    text = run("/usr/lib/apt/apt-helper", "cat-file", file, environment=environment)
    return [fields for fields in map(stanza, text.split("\n\n")) if fields.get("Package") in PACKAGES]


def stanza(text: str) -> dict[str, str]:
    """Read the fields of a paragraph; a line that begins with a space continues the field before it."""
    fields: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line[:1] in (" ", "\t"):
            fields[name] = f"{fields.get(name, '')}\n{line.strip()}"
        elif ":" in line:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
    return fields


def date_of(release: Path) -> int:
    text = release.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("Date: "))
    return int(parsedate_to_datetime(line.removeprefix("Date: ")).timestamp())


def youngest(name: str, stanzas: Iterable[Mapping[str, str]]) -> Package:
    """Of the packages with a name, the one with the highest version, as dpkg compares versions."""
    found = [each for each in stanzas if each["Package"] == name]
    if not found:
        raise LockError(f"{name}: not in the index of Debian {SUITE}; is its name in selection.py right?")
    by_version = {each["Version"]: each for each in found}
    best = by_version[max(by_version, key=cmp_to_key(compared))]
    return Package(
        name,
        best["Version"],
        best["Architecture"],
        best["Filename"],
        int(best["Size"]),
        best["SHA256"],
        best.get("Source", name),
    )


def compared(a: str, b: str) -> int:
    if a == b:
        return 0
    return 1 if subprocess.run(["dpkg", "--compare-versions", a, "gt", b], check=False).returncode == 0 else -1


# -- wheels


def of_wheels() -> list[Wheel]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    by_name: dict[str, Wheel] = {}
    for architecture in ARCHITECTURES:
        for wheel in resolved(project["dependencies"], *flags(architecture)):
            before = by_name.get(wheel.name)
            if before is not None and before.version != wheel.version:
                raise LockError(f"{wheel.name}: {before.version} for one architecture, {wheel.version} for another")
            hashes = wheel.sha256 | (before.sha256 if before else frozenset())
            by_name[wheel.name] = Wheel(wheel.name, wheel.version, hashes)
    return list(by_name.values())


def of_backend() -> list[Wheel]:
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    return resolved(requires)


def resolved(requirements: list[str], *target: str) -> list[Wheel]:
    if f"{sys.version_info[0]}.{sys.version_info[1]}" != PYTHON:
        raise LockError(f"wheels are locked with Python {PYTHON}, the image's; this is {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = ["install", "--dry-run", "--ignore-installed", "--only-binary=:all:", "--target", folder]
        constraints = ["--constraint", str(ROOT / "constraints.txt"), "--report", str(report)]
        run(sys.executable, "-m", "pip", "--quiet", *command, *target, *constraints, *requirements)
        document: Any = json.loads(report.read_text(encoding="utf-8"))
    return [
        Wheel(
            normal(each["metadata"]["name"]),
            each["metadata"]["version"],
            frozenset([each["download_info"]["archive_info"]["hashes"]["sha256"]]),
        )
        for each in document["install"]
    ]


def run(*command: str, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LockError(f"{' '.join(command[:3])} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
