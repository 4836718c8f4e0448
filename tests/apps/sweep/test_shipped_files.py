"""Files that go along with a sweep: a machine without them runs as if it had them, and nothing is left behind."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.apps.simulate import sweep_command
from stowplan.apps.sweep import dask_task, shipped_files
from stowplan.apps.sweep.sweep_inputs import SweepInputs, inputs_of
from stowplan.apps.sweep.sweep_run import RunReply, SweepRun
from stowplan.apps.sweep.worker_process import RunRequest
from tests.apps.simulate.test_sweep_command import CLUSTER, CONFIG

OWN = "class Own:\n    def filter(self, pod, nodes):\n        return []\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a sweep that uses files above it, by a relative and by an absolute path."""
    found = tmp_path / "home" / "work"
    (found / "plugins").mkdir(parents=True)
    (found / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "home" / "trace.csv").write_text("arrival,duration,cpu\n0,60,4\n")
    (tmp_path / "other.csv").write_text("arrival,duration,cpu\n5,60,4\n")
    (found / "plugins" / "own.yaml").write_text(
        CONFIG + "profiles: [{plugins: {filter: {enabled: [{name: 'own.py:Own'}]}}}]\n"
    )
    (found / "plugins" / "own.py").write_text(OWN)
    monkeypatch.chdir(found)
    return found


class Elsewhere:
    """Does the runs as a worker of Dask does that has none of the files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def replies(self, runs: list[SweepRun], inputs: SweepInputs) -> Any:
        files = shipped_files.packed(inputs)
        shutil.move(self._folder.parents[1], self._folder.parents[1].with_name("away"))
        for run in runs:
            request = msgspec.json.encode(RunRequest(run, inputs))
            yield run, msgspec.json.decode(dask_task.replied(request, files), type=RunReply)
        shutil.move(self._folder.parents[1].with_name("away"), self._folder.parents[1])


def test_a_machine_without_the_files_gives_the_same_output(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = f"simulate cluster.yaml ../trace.csv {folder.parents[1] / 'other.csv'} --config plugins/own.yaml --seeds 2"
    here = CliRunner().invoke(main, shlex.split(f"{words} -o json"))
    assert here.exit_code == 0 and '"mean": 2.0' in here.stdout, here.output
    monkeypatch.setattr(sweep_command, "_runner", lambda _: Elsewhere(folder))
    there = CliRunner().invoke(main, shlex.split(f"{words} -o json --on tcp://127.0.0.1:1"))
    assert (there.exit_code, there.stdout, there.stderr) == (0, here.stdout, here.stderr), there.output


def test_files_that_are_there_are_used_where_they_are(folder: Path) -> None:
    given = inputs_of([Path("cluster.yaml")], {})
    with shipped_files.placed(given, shipped_files.packed(given)) as found:
        assert found is given


def test_other_contents_get_a_folder_of_their_own_which_is_removed(folder: Path) -> None:
    given = inputs_of([Path("cluster.yaml"), Path("../trace.csv")], {})
    contents = shipped_files.packed(given)
    Path("cluster.yaml").write_text("changed")
    with shipped_files.placed(given, contents) as found:
        found.check()
        assert Path(found.folder, "cluster.yaml").read_text() == CLUSTER and found.folder.endswith("/home/work")
    assert not Path(found.folder).exists() and Path("cluster.yaml").read_text() == "changed"
