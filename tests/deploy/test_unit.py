"""The systemd units pass systemd's own checks."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
# Tenths; systemd calls 2.0 and less "OK"; a unit without hardening has 96. In kube-scheduler's place it runs as root,
# whose files it reads.
EXPOSURE = {"stowplan.service": 20, "kube-scheduler.service": 40}

pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze on the PATH")


@pytest.fixture(params=EXPOSURE)
def unit(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The unit with a program that exists: systemd checks that, too."""
    copy = tmp_path / str(request.param)
    there = shutil.which("true")
    assert there
    text = (UNITS / request.param).read_text()
    copy.write_text(re.sub(r"(?<=^ExecStart=)\S+", there, text, flags=re.MULTILINE))
    return copy


def analyse(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)


def test_systemd_accepts_the_unit_without_warnings(unit: Path) -> None:
    done = analyse("verify", "--man=no", str(unit))
    if "Failed to initialize manager" in done.stderr:
        pytest.skip("systemd-analyze cannot work in this environment")
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_an_unknown_setting_would_be_noticed(unit: Path) -> None:
    unit.write_text(unit.read_text().replace("[Service]", "[Service]\nProtectEverything=yes"))
    assert "ProtectEverything" in analyse("verify", "--man=no", str(unit)).stderr


def test_the_unit_is_hardened(unit: Path) -> None:
    done = analyse("security", "--offline=yes", "--no-pager", f"--threshold={EXPOSURE[unit.name]}", str(unit))
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze judges no files")
    assert done.returncode == 0, done.stdout
