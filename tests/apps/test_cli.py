"""The command line: JSON and YAML, completion, quick help."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner

from stowplan.apps import kubectl_plugin
from stowplan.apps.cli import main


def test_version_as_json() -> None:
    assert json.loads(CliRunner().invoke(main, ["version", "-o", "json"]).output)["kubernetes"] == "1.36"


def test_configuration_as_yaml() -> None:
    found = yaml.safe_load(CliRunner().invoke(main, ["config", "show", "-o", "yaml"]).output)
    assert (found["apiVersion"], found["kind"]) == ("stowplan.io/v1alpha1", "EnabledPlugins")
    (profile,) = found["profiles"]
    assert profile["schedulerName"] == "default-scheduler"
    assert {"name": "TaintToleration", "weight": 3} in profile["points"]["score"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_for_shells(shell: str) -> None:
    assert "_STOWPLAN_COMPLETE" in CliRunner().invoke(main, ["completion", shell]).output


@pytest.mark.parametrize(
    ("words", "proposed"),
    [(["con"], "config"), (["config", ""], "check"), (["explain", "--all"], "--all-namespaces"), ([], "explain")],
)
def test_completion_for_kubectl(
    words: list[str], proposed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl_complete-stowplan", *words])
    kubectl_plugin.complete()
    *lines, last = capsys.readouterr().out.splitlines()
    assert proposed in [line.partition("\t")[0] for line in lines] and last == ":0"


def test_kubectl_is_named_in_the_usage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/bin/kubectl-stowplan", "explain", "--help"])
    with pytest.raises(SystemExit):
        kubectl_plugin.run()
    assert capsys.readouterr().out.startswith("Usage: kubectl stowplan explain ")


def test_help_imports_nothing_heavy() -> None:
    heavy = ("numpy", "yaml", "aiohttp", "rich")
    code = f"import sys, stowplan.apps.cli; print(*(each for each in {heavy} if each in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_help_lists_exit_codes() -> None:
    for name in ("explain", "parity", "run", "up"):
        assert "Exit codes" in CliRunner().invoke(main, [name, "--help"]).output, name
