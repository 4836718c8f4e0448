"""The wheel and the sdist: built once, and installed from an index into fresh environments of each Python; and wheels
of all that Stowplan needs for each Python and platform, so that nobody needs a compiler.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from deploy.image import build, fetching

from tests.deploy import pythons
from tests.deploy.pythons import NoPythonError, Python

pytestmark = pytest.mark.full
ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {  # not macOS on Intel: cryptography has no wheel for it at the pinned version; an older one has
    "Linux on x86-64": [f"manylinux_2_{minor}_x86_64" for minor in range(17, 35)],
    "Linux on arm64": [f"manylinux_2_{minor}_aarch64" for minor in range(17, 35)],
    "macOS on arm64": [f"macosx_{major}_0_arm64" for major in range(11, 16)],
}
WHY = "PYTHONPATH", "VIRTUAL_ENV", "PIP_CONSTRAINT"


def interpreter(version: str) -> Python:
    """Skips if there is none."""
    try:
        return pythons.python(version)
    except NoPythonError as reason:
        pytest.skip(str(reason))


def run(*words: str | Path, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in WHY}
    done = subprocess.run(
        words, cwd=folder, env={**clean, **(environment or {})}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist, built by the locked backend."""
    out = tmp_path_factory.mktemp("dist")
    path = {"PYTHONPATH": str(fetching.backend(build.cache_folder()))}
    run(sys.executable, "-m", "hatchling", "build", "-d", out, environment=path, folder=ROOT)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def test_they_hold_the_same_package(distributions: tuple[Path, Path]) -> None:
    wheel, sdist = distributions
    sources = {file.relative_to(ROOT / "src").as_posix() for file in (ROOT / "src" / "stowplan").rglob("*.py")}
    with zipfile.ZipFile(wheel) as archive:
        names = {*archive.namelist()}
    info = f"stowplan-{PROJECT['version']}.dist-info"
    assert {name for name in names if name.endswith(".py")} == sources
    assert f"{info}/licenses/LICENSE" in names and "stowplan/py.typed" in names
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in sources} <= packed
    assert {"LICENSE", "README.md", "pyproject.toml"} <= packed


def test_each_python_that_is_tested_is_named() -> None:
    named = [each for each in PROJECT["classifiers"] if each.startswith("Programming Language :: Python :: 3.")]
    assert named == [f"Programming Language :: Python :: {version}" for version in VERSIONS]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_clean_environment(version: str, distributions: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, sdist = distributions
    found = interpreter(version)
    run(*found.within, found.program, "-m", "venv", tmp_path / "venv")
    python = Python(tmp_path / "venv" / "bin" / "python", found.within)
    pip: tuple[str | Path, ...] = (*python.within, python.program, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--only-binary=:all:", "--constraint", ROOT / "constraints.txt", wheel)
    assert json.loads(run(*pip, "inspect"))["environment"]["python_version"] == version
    run(*pip, "check")
    first = installed(python)
    started(python, tmp_path)
    run(*pip, "install", "--no-deps", "--force-reinstall", sdist)
    assert installed(python) == first, "the sdist gives what the wheel gives"
    started(python, tmp_path)


def installed(python: Python) -> dict[str, str]:
    """The files of the installed package, with their hashes."""
    code = (
        "import json; from importlib.metadata import files; "
        "print(json.dumps({str(f): f.hash.value for f in files('stowplan') if f.hash and f.parts[0] == 'stowplan'}))"
    )
    found: dict[str, str] = json.loads(run(*python.within, python.program, "-c", code, folder=python.program.parent))
    return {path: value for path, value in found.items() if not path.endswith(".pyc")}


def started(python: Python, folder: Path) -> None:
    program, plugin = (python.program.with_name(name) for name in ("stowplan", "kubectl-stowplan"))
    assert run(*python.within, program, "--version", folder=folder) == f"stowplan {PROJECT['version']}\n"
    assert " is Running on " in run(*python.within, program, "demo", folder=folder)
    assert "Usage: kubectl stowplan" in run(*python.within, plugin, "--help", folder=folder)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_there_is_a_wheel_of_everything(version: str, platform: str, tmp_path: Path) -> None:
    """Resolved from wheels alone; those of the image are also downloaded when it is built."""
    flags = ["--python-version", version, "--implementation", "cp"]
    flags += [f"--platform={each}" for each in PLATFORMS[platform]]
    report = tmp_path / "report.json"
    command = ["install", "--dry-run", "--ignore-installed", "--only-binary=:all:", "--target", str(tmp_path / "out")]
    constraints = ["--constraint", str(ROOT / "constraints.txt"), "--report", str(report)]
    # pip would evaluate a marker for this machine; the only one leaves out Windows.
    requirements = [each.partition(";")[0] for each in PROJECT["dependencies"]]
    run(sys.executable, "-m", "pip", "--quiet", *command, *flags, *constraints, *requirements)
    files = [each["download_info"]["url"] for each in json.loads(report.read_text())["install"]]
    assert len(files) > 25 and all(each.endswith(".whl") for each in files)
