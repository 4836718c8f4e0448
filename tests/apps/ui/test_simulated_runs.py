"""`--simulation FOLDER`: what `stowplan simulate --out` wrote is read; what is none of that is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stowplan.apps.ui import simulated_runs
from stowplan.apps.ui.pages import simulations
from stowplan.objects.errors import ConfigError
from tests.apps.ui.screenshots import simulated


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulated(tmp_path_factory.mktemp("simulated"))


def shown(folder: Path) -> str:
    view = simulations.show(simulations.read(simulated_runs.read((folder,)), {}))
    return "".join(map(str, view.parts.values()))


def test_runs_are_side_by_side_by_the_names_of_their_folders(runs: Path) -> None:
    found = simulated_runs.read((runs,))
    assert [each.name for each in found.runs] == ["default", "packed"]
    text = shown(runs)
    assert text.count("<canvas") == 2 and "2 runs compared" in text
    assert shown(runs / "packed").count("<canvas") == 1
    alone = simulations.read(found, {"runs": "packed"})
    assert [each["name"] for each in alone["runs"]] == ["packed"]
    assert [each["name"] for each in simulations.read(found, {"runs": "nobody"})["runs"]] == ["default", "packed"]


def test_a_run_of_an_older_stowplan_has_no_map(runs: Path, tmp_path: Path) -> None:
    for name in ("summary.json", "series.jsonl"):
        (tmp_path / name).write_bytes((runs / "default" / name).read_bytes())
    text = shown(tmp_path)
    assert "<canvas" not in text and "Pods that got a node" in text


@pytest.mark.parametrize(
    ("change", "file", "expected"),
    [
        pytest.param(lambda at: (at / "run.json").write_text("{"), "run.json", "is no run", id="a run that is cut"),
        pytest.param(lambda at: (at / "run.json").write_text("[]"), "run.json", "is no run", id="another document"),
        pytest.param(
            lambda at: ((at / "run.json").unlink(), (at / "summary.json").write_text('{"pods": {}}')),
            "summary.json", "cannot be shown", id="figures that are none",
        ),
        pytest.param(
            lambda at: ((at / "run.json").unlink(), (at / "summary.json").write_text("no")),
            "summary.json", "is no JSON", id="a summary that is no JSON",
        ),
        pytest.param(
            lambda at: ((at / "run.json").unlink(), (at / "series.jsonl").write_text("{")),
            "series.jsonl", "no JSON", id="a series that is cut",
        ),
        pytest.param(lambda at: (at / "summary.json").unlink(), "", "has no summary.json", id="no summary"),
    ],
)  # fmt: skip
def test_what_is_no_run_is_refused(
    runs: Path, tmp_path: Path, change: Callable[[Path], object], file: str, expected: str
) -> None:
    for each in (runs / "default").iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    change(tmp_path)
    with pytest.raises(ConfigError, match=expected) as refused:
        simulated_runs.read((tmp_path,))
    assert file in str(refused.value)
