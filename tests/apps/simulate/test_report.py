"""`stowplan simulate --report`: one page, the same for the same run, and refused before the run if it cannot be."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.simulation.report.report_run import NO_NODE
from tests.apps.simulate.test_command import OPENB_NODES, OPENB_PODS, SHARING
from tests.simulation.runs import a_cluster_text

PACKED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}]  # <packed>
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.yaml").write_bytes(a_cluster_text(count=3))
    (tmp_path / "trace.csv").write_text("arrival,duration,cpu,count\n0,1h,1,20\n30m,2h,2,9\n")
    (tmp_path / "packed.yaml").write_text(PACKED)
    return tmp_path


def said(*flags: str) -> Result:
    return CliRunner().invoke(main, ["simulate", "cluster.yaml", "trace.csv", *flags])


def test_the_page_has_the_figures_the_files_and_the_configuration(folder: Path) -> None:
    found = said("--report", "new/report.html", "--config", "packed.yaml", "--bind-latency", "2s")
    assert found.exit_code == 0, found.output
    text = unescape((folder / "new" / "report.html").read_text(encoding="utf-8"))
    for expected in (
        "cluster.yaml",
        "trace.csv",
        "Bind latency",
        "29 <small>of 29",
        PACKED.strip(),
        "Insufficient cpu",
    ):
        assert expected in text, expected
    assert str(folder) not in text
    names = re.search(r'"nodes":"([^"]+)"', text)
    assert names is not None and zlib.decompress(b64decode(names[1])) == b'["n-0","n-1","n-2"]'


def test_the_same_run_gives_the_same_page_and_the_same_figures_as_without(folder: Path) -> None:
    without = said("-o", "json").stdout
    assert [said("--report", f"{name}.html", "-o", "json").stdout for name in "ab"] == [without, without]
    assert (folder / "a.html").read_bytes() == (folder / "b.html").read_bytes()


def test_shared_gpus_are_on_the_map_in_thousandths(folder: Path) -> None:
    """Half of a GPU of two for 100 seconds, then both for 100 seconds; the other node has none."""
    for name, text in (("cluster.csv", OPENB_NODES), ("trace.csv", OPENB_PODS), ("gpu.yaml", SHARING)):
        (folder / name).write_text(text)
    run = ["simulate", "cluster.csv", "trace.csv", "--config", "gpu.yaml", "--report", "r.html"]
    assert CliRunner().invoke(main, run).exit_code == 0
    found = re.search(r'id="heat-data">(.*?)</script>', (folder / "r.html").read_text(encoding="utf-8"))
    assert found is not None
    data = json.loads(found[1])
    part = data["runs"][0]["parts"][data["resources"].index("gpu-milli")]
    differences = np.frombuffer(zlib.decompress(b64decode(part)), np.uint8).reshape(-1, 2)
    assert data["runs"][0]["moments"] == [0, 60, 120, 180, 200]
    assert np.cumsum(differences, axis=0, dtype=np.uint8).tolist() == [
        [25, NO_NODE], [25, NO_NODE], [100, NO_NODE], [100, NO_NODE], [0, NO_NODE],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        pytest.param(["--report", "."], "stowplan: .: is a folder; name a file", id="a folder"),
        pytest.param(["--report", "trace.csv/r.html"], "trace.csv/r.html: its folder cannot be made", id="no folder"),
        pytest.param(["--report", "r.html", "--sample", "0"], "--report needs samples", id="no samples"),
    ],
)
def test_a_report_that_cannot_be_is_refused_before_the_run(folder: Path, flags: list[str], problem: str) -> None:
    (folder / "cluster.yaml").write_text("what would be refused, too, if it was read")
    found = said(*flags)
    assert found.exit_code == 2 and problem in found.stderr and found.stdout == ""
