"""`stowplan simulate`: the commands of docs/simulation.md, the files it writes, its errors, its width."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.apps.simulate.summary import summary_text

PAGE = (Path(__file__).parents[3] / "docs" / "simulation.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (stowplan simulate .*)$", PAGE, re.MULTILINE)
DUMP = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n-{number}"},
            "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "20"}},
        }
        for number in range(3)
    ],
}  # fmt: skip
AT_END = dict.fromkeys(("pending", "bound", "running", "succeeded", "failed", "evicted", "deleted"), 10**9)
PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def block(kind: str, begins: str) -> str:
    """The block of the page that begins so, after its head."""
    blocks: list[str] = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return next(found for found in blocks if begins in found)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the page has, and a dump."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.yaml").write_text(json.dumps(DUMP))
    (tmp_path / "trace.csv").write_text(block("csv", "arrival"))
    (tmp_path / "cluster.yaml").write_text(block("yaml", "ClusterTemplate").replace("count: 100", "count: 5"))
    (tmp_path / "scenario.yaml").write_text(block("yaml", "kind: Scenario").replace("for: 4h", "for: 10m"))
    (tmp_path / "packed.yaml").write_text(PACKED)
    return tmp_path


def said(command: str) -> Result:
    return CliRunner().invoke(main, shlex.split(command)[1:])


def test_the_page_shows_commands() -> None:
    assert len(COMMANDS) == 4


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_the_page_works(command: str, folder: Path) -> None:
    found = said(command)
    assert found.exit_code == 0, found.output
    assert "got a node" in found.stdout and max(map(len, found.stdout.splitlines())) <= 80


def test_the_files_of_a_run_are_written_and_its_figures_are_what_is_printed(folder: Path) -> None:
    found = said("stowplan simulate dump.yaml trace.csv --out out -o json --sample 10m")
    told = json.loads((folder / "out" / "summary.json").read_text())
    assert told == json.loads(found.stdout) and told["pods"]["placed"] == 36
    rows = [json.loads(line) for line in (folder / "out" / "pods.jsonl").read_text().splitlines()]
    assert len(rows) == 36 and {row["outcome"] for row in rows} == {"succeeded"}
    series = [json.loads(line) for line in (folder / "out" / "series.jsonl").read_text().splitlines()]
    assert [row["at"] for row in series[:3]] == [0, 600, 1200]


def test_input_that_cannot_be_used_is_refused_with_exit_code_2(folder: Path) -> None:
    (folder / "trace.csv").write_text("arrival,cpu\n-1,1\n2,x\n3,1\n")
    found = said("stowplan simulate dump.yaml trace.csv")
    assert found.exit_code == 2 and "2 entries cannot be used" in found.stderr
    assert "trace.csv: line 2: " in found.stderr and "trace.csv: line 3: " in found.stderr


def test_what_is_skipped_is_named_on_standard_error(folder: Path) -> None:
    (folder / "trace.csv").write_text("arrival,cpu\n-1,1\n3,1\n")
    found = said("stowplan simulate dump.yaml trace.csv --skip-invalid -o json")
    assert found.exit_code == 0 and found.stderr.startswith("skipped: trace.csv: line 2: ")
    assert json.loads(found.stdout)["skipped"] == {"problems": 1}


def test_the_summary_is_within_80_columns_whatever_the_names_are() -> None:
    long = "x" * 253
    namespaces = {f"{long}{number}": {"pods": 10**8, "satisfaction": 0.5, "meanWait": 1e9} for number in range(30)}
    told = {
        "seconds": 1e9, "seed": 2**63, "evictions": {"pods": 10**9, "byReason": {long: 10**9}},
        "pods": {"arrived": 10**9, "placed": 10**9, "neverPlaced": 10**9, "initial": 10**9, "atEnd": AT_END},
        "waiting": {"mean": 1e9, **{f"p{each}": 1e9 for each in (50, 90, 95, 99, 100)}},
        "nodes": {"atEnd": 10**6, "mostUsed": 10**6, "meanUsed": 1e6},
        "cost": {"all": 1e9, "used": 1e9, "nodesWithoutPrice": 10**6},
        "allocation": {long: 1.0}, "utilisation": {long: 1.0}, "fragmentation": {},
        "fairness": {"index": 0.5, "namespaces": namespaces},
    }  # fmt: skip
    assert max(map(len, summary_text(told).splitlines())) <= 80
