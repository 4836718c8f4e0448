"""`stowplan run --record` and `stowplan replay`, with a scheduler that is connected to a cluster."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.apps.logging import Log
from stowplan.apps.run.configuration import beside_kube_scheduler
from stowplan.apps.run.options import RunOptions
from stowplan.apps.run.recording import Recording
from stowplan.apps.up import command as up
from stowplan.framework.config import document
from stowplan.simulation.recording import header_of
from stowplan.testing import EmbeddedCluster

POD = {"containers": [{"name": "main", "image": "web", "env": [{"name": "TOKEN", "value": "hidden"}]}]}
PODS = 24


def a_pod(number: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{number}"}, "spec": POD}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The recording of a scheduler that bound some pods."""
    found = tmp_path / "recording.jsonl"
    monkeypatch.setattr(up, "RunOptions", partial(RunOptions, record=found))
    with EmbeddedCluster(nodes=5, folder=tmp_path) as cluster:
        cluster.start_scheduler()
        cluster.apply(*map(a_pod, range(PODS)))
        cluster.wait_until(lambda: all(cluster.node_of(f"default/web-{number}") for number in range(PODS)), within=120)
        cluster.stop_scheduler()
        yield found


def replayed(file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["replay", str(file), *arguments])


def test_a_recorded_run_is_replayed_with_the_same_bindings(file: Path) -> None:
    answer = replayed(file)
    assert (answer.exit_code, answer.stderr) == (0, ""), answer.output
    assert f"Identical: {PODS} bindings" in answer.stdout
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and b"hidden" not in file.read_bytes()

    lines = file.read_bytes().splitlines(keepends=True)
    lines[0] = lines[0].replace(b'"seed":', b'"seed":1')
    lines[0] = lines[0].replace(b'"stowplan":"', b'"stowplan":"9.')
    file.write_bytes(b"".join(lines))
    answer = replayed(file, "-o", "json")
    found = json.loads(answer.stdout)
    assert answer.exit_code == 1 and found["identical"] is False and found["difference"]["line"] > 1
    assert "recorded by Stowplan 9." in found["notes"][0]
    assert " was bound to " in replayed(file).stdout


def test_the_durations_of_flags_are_recorded(tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    options = RunOptions(record=file, longest_wait=document.duration("90s") or 0.0)
    recording = Recording(file, 1 << 20, Log(stream=io.StringIO()))
    recording.begin(options, beside_kube_scheduler(), None)
    assert header_of(file.read_bytes()).longest_wait == 90.0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(None, "cannot be read", id="a file that is not there"),
        pytest.param("kind: List\n", "line 1: not a recording", id="a dump"),
        pytest.param("", "line 1: not a recording", id="an empty file"),
    ],
)
def test_what_is_no_recording_is_named(tmp_path: Path, text: str | None, told: str) -> None:
    file = tmp_path / "recording.jsonl"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    answer = replayed(file)
    assert answer.exit_code == 2 and f"{file}: {told}" in answer.stderr and "Traceback" not in answer.output


def test_a_full_recording_ends_with_a_line_that_says_so_and_the_earlier_one_is_kept(tmp_path: Path) -> None:
    file, said = tmp_path / "recording.jsonl", io.StringIO()
    file.write_text("of yesterday", encoding="utf-8")
    recording = Recording(file, 100, Log(stream=said))
    for _ in range(10):
        recording.write(b"x" * 39 + b"\n")
    lines = file.read_bytes().splitlines()
    assert len(lines) == 4 and json.loads(lines[-1])["end"].startswith("the recording has the size")
    assert said.getvalue().count("The recording is full and ends") == 1
    assert (tmp_path / "recording.jsonl.1").read_text(encoding="utf-8") == "of yesterday"
