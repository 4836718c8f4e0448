"""docs/simulation.md: the program that it shows runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.simulation.runs import a_cluster_text

PAGE = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text(encoding="utf-8")


def test_the_program_on_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (trace,) = re.findall(r"^```csv\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "dump.yaml").write_bytes(a_cluster_text(count=6, cpu=32))
    (tmp_path / "trace.csv").write_text(trace, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "docs/simulation.md", "exec"), {})
    assert capsys.readouterr().out == "36 of 36 pods got a node, half of them within 0.0 seconds\n"
