"""The wheel alone: built once, and installed beside what Stowplan needs to run, without the repository at hand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import tomllib
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: a, labels: {disk: ssd}}
status: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  nodeSelector: {disk: sdd}
  containers: [{name: app, image: app, resources: {requests: {cpu: "1"}}}]
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels, built once. The build backend comes from an index, or from pip's cache."""
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, ROOT / "packaging" / "kube-scheduler"):
        pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    return folder


def needed() -> set[str]:
    """Return the distributions that Stowplan needs to run: no extra of it, and nothing of developers."""
    found: set[str] = set()
    left = [Requirement(each) for each in metadata.requires("stowplan") or ()]
    while left:
        requirement = left.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if requirement.name not in found:
            found.add(requirement.name)
            left += [Requirement(each) for each in metadata.requires(requirement.name) or ()]
    return found


def environment(folder: Path) -> Path:
    """Return a fresh environment that has what Stowplan needs to run, and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    installed, others = Path(sysconfig.get_path("purelib")), folder / "others"
    others.mkdir()
    for name in needed():
        for top in {Path(file).parts[0] for file in metadata.files(name) or ()} - {"..", "__pycache__"}:
            if not (others / top).exists():
                (others / top).symlink_to(installed / top)
    (folder / "venv" / "lib" / installed.parent.name / "site-packages" / "others.pth").write_text(str(others))
    return folder / "venv"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    return environment(tmp_path)


@pytest.fixture(scope="module")
def stowplan(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the wheel, alone in an environment."""
    found = environment(tmp_path_factory.mktemp("alone")) / "bin"
    pip("install", "--no-index", "--find-links", str(wheels), "stowplan", python=str(found / "python"))
    return found / "stowplan"


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def pip(*arguments: str, python: str = sys.executable) -> None:
    command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, env=clean(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def run(program: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder that has nothing to do with the repository."""
    command = [str(program), *arguments]
    return subprocess.run(command, cwd=folder, env=clean(), capture_output=True, text=True, check=False)


# -- the wheel alone


def test_no_tool_of_developers_is_there(stowplan: Path, tmp_path: Path) -> None:
    told = run(
        stowplan.with_name("python"), tmp_path, "-c", "import stowplan; print(stowplan.__path__[0]); import pytest"
    )
    assert "No module named 'pytest'" in told.stderr
    assert Path(told.stdout.strip()).is_relative_to(stowplan.parents[1]), "not the repository's"


def test_its_demo(stowplan: Path, tmp_path: Path) -> None:
    done = run(stowplan, tmp_path, "demo")
    assert done.returncode == 0, done.stderr
    assert "8 of 8  A pod that waits" in done.stdout and " is Running on worker-0." in done.stdout
    assert not list(tmp_path.iterdir()), "it writes no file"


def test_its_explanation_of_a_dump(stowplan: Path, tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text(CLUSTER, encoding="utf-8")
    done = run(stowplan, tmp_path, "explain", "web", "--from", "dump.yaml")
    assert done.returncode == 1, done.stderr
    assert "1. change disk in nodeSelector from sdd to ssd → a" in done.stdout


def test_its_cluster_is_ready_and_ends(stowplan: Path, tmp_path: Path) -> None:
    """A pod of a file gets a node: a running `up` is explained by a second program."""
    (tmp_path / "pod.yaml").write_text(CLUSTER.replace("sdd", "ssd"), encoding="utf-8")
    command = [str(stowplan), "up", "--nodes", "0", "--from", "pod.yaml"]
    with subprocess.Popen(command, cwd=tmp_path, env=clean(), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "A cluster is up at http://127.0.0.1:" in until_ready(process.stdout)
            told = run(stowplan, tmp_path, "explain", "web", "--kubeconfig", "stowplan.kubeconfig")
            assert told.returncode == 0, told.stderr
            process.send_signal(signal.SIGINT)
            assert process.wait() == 0
        finally:
            process.kill()
    assert not (tmp_path / "stowplan.kubeconfig").exists()


def until_ready(output: IO[str]) -> str:
    seen = ""
    for line in output:
        seen += line
        if line.startswith("Ctrl-C ends it"):
            return seen
    raise AssertionError(f"it ended: {seen}")


# -- with the command kube-scheduler


def said(program: Path, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], env=clean(), capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def version() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


full = pytest.mark.full  # two more environments


@full
def test_pip_installs_it_with_the_extra_only(wheels: Path, empty: Path) -> None:
    programs = empty / "bin"
    install = ("install", "--no-index", "--find-links", str(wheels))
    pip(*install, "stowplan", python=str(programs / "python"))
    assert (programs / "stowplan").exists() and not (programs / "kube-scheduler").exists()
    pip(*install, "stowplan[kube-scheduler]", python=str(programs / "python"))
    assert said(programs / "kube-scheduler", "--version") == f"kube-scheduler {version()}\n"
    assert "--cert-dir is a flag of kube-scheduler" in said(programs / "kube-scheduler", "--cert-dir=/tmp")
    refused = said(programs / "kube-scheduler", "--kubeconfig=/no/such/file", "--leader-elect=true", "-v=2")
    assert refused == "stowplan: /no/such/file: no such file; expected a kubeconfig file\n"


@full
def test_pip_installs_both_wheels_by_themselves(wheels: Path, empty: Path) -> None:
    files = sorted(map(str, wheels.glob("*.whl")))
    assert len(files) == 2
    pip("install", "--no-index", "--no-deps", *files, python=str(empty / "bin" / "python"))
    assert "--secure-port" in said(empty / "bin" / "kube-scheduler", "--help")
