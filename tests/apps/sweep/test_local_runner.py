"""Runs in processes of this machine: answers, errors, processes that are killed, and none that is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from stowplan.apps.sweep.local_runner import LocalRunner
from stowplan.apps.sweep.sweep_inputs import relative
from stowplan.apps.sweep.sweep_run import LostRunError, RunReply, SweepRun
from tests.apps.sweep import tasks
from tests.apps.sweep.tasks import EXPECTED, ROOT, inputs, is_there, lines, run_of, wait_until, workers


def replies(runs: Iterable[SweepRun], jobs: int = 2, *files: Path) -> dict[str, RunReply]:
    return {run.name: reply for run, reply in LocalRunner(jobs).replies(runs, inputs(*files))}


def values(found: dict[str, RunReply]) -> dict[str, object]:
    return {name: reply.answer.value for name, reply in found.items() if reply.answer is not None}


@pytest.mark.parametrize("jobs", [1, 2, 9])
def test_every_run_is_answered_whatever_it_prints(jobs: int) -> None:
    runs = [run_of(str(number), "squared", number=number) for number in range(5)]
    assert values(replies(runs, jobs)) == {str(number): number * number for number in range(5)}


def test_an_answer_may_be_longer_than_a_pipe_holds() -> None:
    found = values(replies([run_of("a", "large", number=3_000_000), run_of("b", "large", number=5)]))
    assert {name: len(str(value)) for name, value in found.items()} == {"a": 3_000_000, "b": 5}


def test_the_run_of_a_killed_process_is_done_again(tmp_path: Path) -> None:
    runs = [run_of("killed", "killed_times", folder=str(tmp_path), times=2), run_of("other", "squared", number=3)]
    assert values(replies(runs)) == {"killed": "done", "other": 9}
    assert len(list(tmp_path.glob("killed-*"))) == 2


def test_a_run_whose_process_is_lost_every_time_is_named(tmp_path: Path) -> None:
    with pytest.raises(LostRunError, match="packed: its process was lost 3 times, at last by SIGKILL"):
        replies([run_of("packed", "killed_times", folder=str(tmp_path), times=100)])
    assert len(list(tmp_path.glob("killed-*"))) == 3


def test_errors_are_replies() -> None:
    found = replies([run_of("refused", "refused"), run_of("broken", "broken"), run_of("good", "squared", number=2)])
    assert found["refused"].problem == "some.yaml: found 3, expected 4"
    assert found["broken"].traceback.endswith("ZeroDivisionError: nothing to divide\n")
    assert values(found) == {"good": 4}


def test_a_file_that_changed_since_the_sweep_began_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("one")
    given = inputs(file)
    file.write_text("two")
    ((_, reply),) = LocalRunner(1).replies([run_of("a", "squared", number=2)], given)
    assert reply.problem.startswith(f"{relative(file)}: changed since the sweep began; leave the files")


def test_another_machine_without_the_folder_is_told() -> None:
    given = msgspec.structs.replace(inputs(), folder="/nowhere")
    ((_, reply),) = LocalRunner(1).replies([run_of("a", "squared", number=2)], given)
    assert reply.problem.startswith("/nowhere: is no folder here: No such file or directory")


def test_another_version_is_told() -> None:
    given = msgspec.structs.replace(inputs(), versions={"numpy": "1.0"})
    ((_, reply),) = LocalRunner(1).replies([run_of("a", "squared", number=2)], given)
    assert reply.problem.startswith("numpy is ") and reply.problem.endswith("install the same version everywhere")


def started(folder: Path, jobs: int = 2) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", tasks.HERE, str(folder), str(jobs)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_sweep_that_is_ended_leaves_no_process_and_goes_on_where_it_stopped(tmp_path: Path, end: int) -> None:
    with started(tmp_path) as first:
        wait_until(lambda: lines(tmp_path) == 4)  # the header, and the three runs that do not wait
        first.send_signal(end)
        first.communicate()
    wait_until(lambda: not any(map(is_there, workers(tmp_path))))
    assert first.returncode != 0
    (tmp_path / "go").touch()
    for each in tmp_path.glob("process-*"):
        each.unlink()
    with started(tmp_path, 1) as second:
        out, told = second.communicate()
    assert out == EXPECTED and "3 of 8 runs are in" in told
    assert lines(tmp_path) == 9


def test_a_worker_that_is_killed_from_outside_is_replaced(tmp_path: Path) -> None:
    with started(tmp_path) as sweeping:
        wait_until(lambda: lines(tmp_path) == 4 and len(workers(tmp_path)) == 2)
        victim = workers(tmp_path)[0]
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: len(workers(tmp_path)) == 3)
        (tmp_path / "go").touch()
        out, _ = sweeping.communicate()
    assert out == EXPECTED and sweeping.returncode == 0
