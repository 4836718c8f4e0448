"""`stowplan score-agent`: an error in a command line is one line, printed before any server is asked."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from stowplan.apps import kubectl_plugin
from stowplan.apps.cli import main
from stowplan.apps.score_agent.commands import PRODUCERS

USAGE = ["usage", "--cluster-name", "a"]
STATIC = ["static", "--score-name", "s", "--value", "a=1"]
QUERY = ["prometheus", "--url", "http://127.0.0.1:9", "--query", "up", "--score-name", "s"]
HTTP = ["http", "--url", "http://127.0.0.1:9"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["usage"], "Missing option '--cluster-name'", id="no cluster name"),
        pytest.param([*USAGE, "--cpu-bounds", "10"], "'10' is not WORST:BEST, such as 1G:100G", id="one bound"),
        pytest.param([*USAGE, "--memory-bounds", "1X:2G"], "'1X:2G' is not WORST:BEST", id="not a quantity"),
        pytest.param(
            [*USAGE, "--free", "gpu=nvidia.com/gpu"], "--free: found 'gpu=nvidia.com/gpu'; expected", id="no bounds"
        ),
        pytest.param([*USAGE, "--free", "cpu=cpu:0:1"], "--free: found two scores called cpu", id="a name twice"),
        pytest.param(
            [*STATIC, "--value", "b=101"], "--value b=101: found 101, expected a score of -100..100", id="101"
        ),
        pytest.param(
            [*STATIC, "--value", "b"], "--value: found 'b', expected CLUSTER=SCORE, such as primary=100", id="no score"
        ),
        pytest.param([*STATIC, "--value", "b=1.5"], "expected CLUSTER=SCORE", id="a fraction"),
        pytest.param([*STATIC, "--value", "a=2"], "--value a=2: found two scores of a", id="a cluster twice"),
        pytest.param([*STATIC, "--interval", "0s"], "--interval: found 0 s, expected more", id="an interval of 0"),
        pytest.param(
            [*STATIC, "--interval", "soon"], "'soon' is not a duration such as 90s or 5m", id="not a duration"
        ),
        pytest.param(
            [*QUERY, "--valid-for", "3m"],
            "--valid-for: scores that are valid for 180 s",
            id="valid for too short a time",
        ),
        pytest.param(
            [*QUERY, "--valid-for", "later"], "such as 90s or 5m, or never", id="validity that is not a duration"
        ),
        pytest.param([*QUERY, "--refresh-before", "30s"], "--refresh-before: found 30 s, less than one", id="too late"),
        pytest.param(
            [*QUERY, "--bounds", "0:1", "--over-fleet"], "found both --bounds and --over-fleet", id="two scales"
        ),
        pytest.param(
            [*QUERY, "--bounds", "0:1", "--less-is-better"],
            "put the larger number first",
            id="--less-is-better with --bounds",
        ),
        pytest.param(
            [*HTTP, "--less-is-better"], "found --less-is-better without --over-fleet", id="--less-is-better alone"
        ),
        pytest.param(
            ["http", "--url", "scorer:80"], 'url: found "scorer:80", expected an address', id="not an address"
        ),
        pytest.param([*QUERY, "--deadband", "201"], "201 is not in the range 0<=x<=200", id="a deadband above 200"),
        pytest.param(
            [*STATIC, "--hub-token-lifetime", "5m"],
            "--hub-token-lifetime: found 300 s, expected at least 600 s",
            id="a life too short",
        ),
        pytest.param(
            [*USAGE, "--hub-token-secret", "a/b"],
            "--hub-token-secret: found a Secret, but the token is not renewed; set --hub-token-lifetime",
            id="a Secret for nothing",
        ),
        pytest.param(
            [*USAGE, "--hub-token-secret", "a", "--hub-token-lifetime", "24h"],
            "--hub-token-secret: found 'a', expected NAMESPACE/NAME",
            id="a Secret without a namespace",
        ),
        pytest.param(
            [*USAGE, "--actual", "--free", "cpu-actual=cpu:0:1"],
            "found two scores called cpu-actual",
            id="a name of real usage twice",
        ),
        pytest.param(["tea"], "No such command 'tea'", id="no such producer"),
        pytest.param([*STATIC, "--hub-kubeconfig", "/nowhere"], "/nowhere: no such file", id="no kubeconfig"),
    ],
)
def test_invalid_command_lines(words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["score-agent", *words])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split()) and "Traceback" not in done.output


def test_help_of_every_producer_lists_exit_codes() -> None:
    assert list(PRODUCERS) == ["usage", "prometheus", "http", "static"]
    for name in PRODUCERS:
        assert "Exit codes" in CliRunner().invoke(main, ["score-agent", name, "--help"]).output


def test_completion_knows_the_producers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl_complete-stowplan", "score-agent", "pro"])
    kubectl_plugin.complete()
    assert capsys.readouterr().out.startswith("prometheus\t")


def test_an_agent_does_not_import_the_scheduler() -> None:
    """The agent runs in every cluster of a fleet, so it should be small."""
    heavy = ("numpy", "aiohttp", "rich", "stowplan.engine.scheduler", "stowplan.plugins", "stowplan.columns.state")
    code = "import sys, stowplan.apps.score_agent.service, stowplan.apps.score_agent.commands; "
    code += f"print(*(each for each in {heavy} if each in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
