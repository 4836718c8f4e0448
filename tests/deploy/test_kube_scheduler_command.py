"""The command `kube-scheduler`: which distribution brings it, and what it does with kube-scheduler's units."""

from __future__ import annotations

import tomllib
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
