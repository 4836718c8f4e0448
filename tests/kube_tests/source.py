"""A copy of the Go module k8s.io/kubernetes, edited.

    <cache>/stowplan/kube-tests/kubernetes-1.36.4/
        lock                   held while the copy is edited or a test program is built
        source/                the copy
        bin/                   the test programs, each with its recipe (build.py)

Go downloads the module from its proxy and compares it with the checksum database. As a module of its own its go.mod
replaces others by folders that are not published; each is replaced by the version that was published with it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.build import MAIN, Tell, go, kubernetes
from tests.kube_tests import edits

FOLDERS = ("api", "build", "cmd", "pkg", "plugin", "test", "third_party")  # what the tests of the scheduler need


def cache() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "stowplan" / "kube-tests" / f"kubernetes-{MAIN}"


@dataclass(frozen=True)
class Downloaded:
    """The module in Go's cache: its folder and its go.mod."""

    folder: Path
    go_mod: Path


def download(environment: Mapping[str, str]) -> Downloaded:
    module = kubernetes(MAIN)
    wanted = ["mod", "download", "-json", f"{module.path}@v{module.version}"]
    found = json.loads(go(wanted, tempfile.gettempdir(), environment))
    return Downloaded(Path(found["Dir"]), Path(found["GoMod"]))


def prepare(folder: Path, environment: Mapping[str, str], tell: Tell) -> None:
    """Make the edited copy, or bring it up to date with the edits."""
    module = download(environment)
    if not (folder / "go.mod").exists():
        tell(f"copying {module.folder.name} ...")
        copy(module.folder, folder)
        (folder / "go.mod").write_text(published_replacements(module.go_mod.read_text(), kubernetes(MAIN).staging))
    edit(module.folder, folder)


def copy(module: Path, folder: Path) -> None:
    """Copy what the tests need, writable; Go's cache is not."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FOLDERS:
        shutil.copytree(module / name, folder / name, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for parent, _, _ in os.walk(folder):
        Path(parent).chmod(0o755)
    shutil.copyfile(module / "go.sum", folder / "go.sum")


def published_replacements(go_mod: str, version: str) -> str:
    """Return the go.mod with each `=> ./staging/…` replaced by the version that was published."""
    return re.sub(r"^(\s+)(\S+) => \./staging/.*$", rf"\1\2 => \2 {version}", go_mod, flags=re.MULTILINE)


def edit(module: Path, folder: Path) -> None:
    """Write each file that differs from the module's, edited from the module's text. The rest stays as it is."""
    originals = {name: (module / name).read_text() for name in {each.file for each in edits.EDITS}}
    texts = edits.edited(originals, edits.EDITS)
    for name in starting(module):
        texts[name] = edits.waiting_starts(texts.get(name) or (module / name).read_text())
    texts |= {name: file.read_text() for name, file in edits.ADDED.items()}
    for name, text in texts.items():
        if not (folder / name).exists() or (folder / name).read_text() != text:
            (folder / name).write_text(text)


def starting(module: Path) -> list[str]:
    """The files that may start a scheduler."""
    found = (file for below in edits.STARTING for file in (module / below).rglob("*.go"))
    return sorted(str(file.relative_to(module)) for file in found)
