"""The command `kube-scheduler`: which distribution brings it, and what it does with kube-scheduler's units."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stowplan.apps import cli
from stowplan.apps.run import service
from stowplan.apps.run.options import RunOptions
from tests.deploy import unit_files

ROOT = Path(__file__).parents[2]
SEED = ROOT / "tests" / "seeds" / "sp_priority" / "kube-scheduler.service"
UNIT = ROOT / "deploy" / "systemd" / "kube-scheduler.service"


def project(folder: str) -> Any:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_extra_brings_the_distribution_with_the_command() -> None:
    main, command = project("."), project("packaging/kube-scheduler")
    version = main["version"]
    assert command["version"] == version
    assert main["optional-dependencies"]["kube-scheduler"] == [f"{command['name']}=={version}"]
    assert command["dependencies"] == [f"stowplan=={version}"]
    assert command["scripts"] == {"kube-scheduler": "stowplan.apps.cli:kube_scheduler"}
    assert "kube-scheduler" not in main["scripts"], "nobody gets it without asking"


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (["--version"], ["--version"]),
        (["--version=raw"], ["--version"]),
        (["--v=2", "--leader-elect"], ["run", "--v=2", "--leader-elect"]),
        ([], ["run"]),
    ],
)
def test_its_arguments(given: list[str], made: list[str]) -> None:
    assert cli.as_kube_scheduler(given) == made


@pytest.mark.parametrize("unit", [SEED, UNIT], ids=["the seed's unit, as it stands", "our own"])
@pytest.mark.parametrize("extended", [True, False])
def test_a_unit_of_kube_scheduler(unit: Path, extended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[RunOptions] = []
    monkeypatch.setattr(service, "run", lambda options: found.append(options) or 0)  # type: ignore[func-returns-value]
    if extended:
        (tmp_path / "etc" / "sysconfig").mkdir(parents=True)
        text = (
            '# flags of this machine\nKUBE_SCHEDULER_EXTEND="--leader-elect=true --leader-elect-lease-duration=30s"\n'
        )
        (tmp_path / "etc" / "sysconfig" / "kube-scheduler.conf").write_text(text)
    program, *arguments = unit_files.started(unit.read_text(encoding="utf-8"), tmp_path)
    assert program == f"{tmp_path}/usr/local/bin/kube-scheduler"
    result = CliRunner().invoke(cli.main, cli.as_kube_scheduler(arguments))
    assert (result.exit_code, result.output) == (0, "")
    (options,) = found
    credentials = f"{tmp_path}/etc/kubernetes/kube-scheduler.conf"
    assert options.config == tmp_path / "etc" / "kubernetes" / "kube-scheduler.yaml"
    assert options.authentication_kubeconfig == options.authorization_kubeconfig == credentials
    assert (options.bind_address, options.secure_port, options.v) == ("0.0.0.0", 10259, 2)
    assert (options.leader_elect, options.lease_duration) == ((True, 30.0) if extended else (None, None))


# -- with pip

full = pytest.mark.full  # building needs the build backend, from an index or a cache


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, ROOT / "packaging" / "kube-scheduler"):
        pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Path]:
    """A fresh environment that has what Stowplan depends on, and no Stowplan."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    installed = Path(sysconfig.get_path("purelib"))
    others = tmp_path / "others"
    others.mkdir()
    for each in installed.iterdir():
        if "stowplan" not in each.name:
            (others / each.name).symlink_to(each)
    (tmp_path / "venv" / "lib" / installed.parent.name / "site-packages" / "others.pth").write_text(str(others))
    yield tmp_path / "venv"


def pip(*arguments: str, python: str = sys.executable) -> None:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def said(program: Path, *arguments: str) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([program, *arguments], env=clean, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@full
def test_pip_installs_it_with_the_extra_only(wheels: Path, environment: Path) -> None:
    programs, version = environment / "bin", project(".")["version"]
    install = ("install", "--no-index", "--find-links", str(wheels))
    pip(*install, "stowplan", python=str(programs / "python"))
    assert (programs / "stowplan").exists() and not (programs / "kube-scheduler").exists()
    pip(*install, "stowplan[kube-scheduler]", python=str(programs / "python"))
    assert said(programs / "kube-scheduler", "--version") == f"kube-scheduler {version}\n"
    assert "--cert-dir is a flag of kube-scheduler" in said(programs / "kube-scheduler", "--cert-dir=/tmp")
    refused = said(programs / "kube-scheduler", "--kubeconfig=/no/such/file", "--leader-elect=true", "-v=2")
    assert refused == "stowplan: /no/such/file: no such file; expected a kubeconfig file\n"


@full
def test_pip_installs_both_wheels_by_themselves(wheels: Path, environment: Path) -> None:
    files = sorted(map(str, wheels.glob("*.whl")))
    assert len(files) == 2
    pip("install", "--no-index", "--no-deps", *files, python=str(environment / "bin" / "python"))
    assert "--secure-port" in said(environment / "bin" / "kube-scheduler", "--help")
