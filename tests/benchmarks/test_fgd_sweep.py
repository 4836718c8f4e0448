"""The table of the GPU study, of lists that are cut: the same on processes and on Dask, and after any interruption."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.fgd import SHARED

from tests.apps.sweep.dask_cluster import dask_cluster
from tests.apps.sweep.tasks import ROOT, wait_until

NODES, PODS = "openb_node_list_gpu_node.csv", "openb_pod_list_default.csv"
POLICIES = ("Random", "BestFit")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder with every fortieth node and pod of the lists, and the published results of these policies."""
    lists, golden = tmp_path / "shared" / "data" / "openb", tmp_path / "shared" / "golden" / "fgd"
    lists.mkdir(parents=True)
    golden.mkdir(parents=True)
    for name in (NODES, PODS):
        head, *rows = (SHARED / "data" / "openb" / name).read_text(encoding="utf-8").splitlines()
        (lists / name).write_text("\n".join((head, *rows[::40])) + "\n", encoding="utf-8")
    (golden / "results.json").write_bytes((SHARED / "golden" / "fgd" / "results.json").read_bytes())
    return tmp_path / "shared"


def fgd(shared: Path, table: Path, *words: str) -> subprocess.Popen[str]:
    of_study = ("--shared", str(shared), "--table", str(table), "--traces", "default", "--seeds", "2")
    command = [sys.executable, "-m", "benchmarks.fgd", *of_study, "--policies", *POLICIES, *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def table_of(shared: Path, name: str, *words: str) -> str:
    """The table, once it is written. Cut lists are not as published, which is exit code 1."""
    table = shared / name
    with fgd(shared, table, *words) as running:
        out, told = running.communicate()
    assert running.returncode == 1 and out.startswith(table.read_text(encoding="utf-8")), told
    return table.read_text(encoding="utf-8")


@pytest.mark.full
def test_the_table_is_the_same_on_processes_on_dask_and_after_interruptions(shared: Path) -> None:
    one = table_of(shared, "one.txt", "--jobs", "1")
    assert [line.split()[:2] for line in one.splitlines()[1:3]] == [["default", each] for each in POLICIES]
    assert one.endswith(" differences\n") and json.loads((shared / "golden/fgd/results.json").read_bytes())
    assert table_of(shared, "two.txt", "--jobs", "2") == one
    journal = shared / "fgd.jsonl"
    with fgd(shared, shared / "none.txt", "--journal", str(journal), "--jobs", "1") as killed:
        wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 2)
        killed.kill()
        killed.communicate()
    with dask_cluster(shared) as cluster:
        assert table_of(shared, "resumed.txt", "--journal", str(journal), "--on", cluster.address) == one
        assert table_of(shared, "dask.txt", "--on", cluster.address) == one
