"""A service imports installed packages only: not what lies in the folder where it was started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {filter: {enabled: [{name: "lies_here:Evil"}]}}}]
"""
LOADED = "the code ran"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lies_here.py").write_text(f"raise SystemExit({LOADED!r})")
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


def started(folder: Path, *flags: str, **environment: str) -> str:
    command = [sys.executable, *flags, "-m", "stowplan.apps.cli", "run", "--config=config.yaml", "--kubeconfig=none"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_the_current_folder_is_not_imported_from(folder: Path) -> None:
    error = started(folder)
    assert "lies_here cannot be imported: ModuleNotFoundError" in error and LOADED not in error


def test_what_pythonpath_names_is_imported(folder: Path) -> None:
    path = os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))
    assert LOADED in started(folder, PYTHONPATH=path)


def test_a_safe_path_stays_as_it_is(folder: Path) -> None:
    assert LOADED not in started(folder, "-P")
