"""Sweeps on a Dask cluster of two workers: the answers of local processes, whatever is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from distributed import Client
from distributed.comm.core import CommClosedError

from stowplan.apps.cli import main
from stowplan.apps.sweep import dask_runner
from tests.apps.simulate.test_sweep_command import BOTH, CLUSTER, CONFIG, PACKED, SCENARIO
from tests.apps.sweep import tasks
from tests.apps.sweep.dask_cluster import DaskCluster, dask_cluster
from tests.apps.sweep.tasks import EXPECTED, ROOT, is_there, lines, wait_until, workers


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with dask_cluster(tmp_path_factory.mktemp("dask")) as found:
        yield found


def sweeping(folder: Path, on: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", tasks.HERE, str(folder), on]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def simulated(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(Path(sys.executable).with_name("stowplan")),
        "simulate",
        "cluster.yaml",
        "day.yaml",
        *BOTH.split(),
        *words,
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_table_is_that_of_local_processes(cluster: DaskCluster, tmp_path: Path) -> None:
    texts = {"cluster.yaml": CLUSTER, "day.yaml": SCENARIO, "today.yaml": CONFIG, "packed.yaml": PACKED}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    here = simulated(tmp_path, "--seeds", "2", "--jobs", "2", "--out", "here")
    there = simulated(tmp_path, "--seeds", "2", "--on", cluster.address, "--out", "there")
    assert (there.returncode, there.stdout.replace("there", "here")) == (0, here.stdout), there.stderr
    for name in ("comparison.json", "runs.jsonl"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    (tmp_path / "broken.csv").write_text("arrival,cpu\n-1,1\n")
    refused = simulated(tmp_path, "broken.csv", "--on", cluster.address)
    assert refused.returncode == 2 and "broken.csv: line 2: " in refused.stderr and "Traceback" not in refused.stderr


@pytest.mark.full
def test_the_run_of_a_killed_process_is_done_again(cluster: DaskCluster, tmp_path: Path) -> None:
    with sweeping(tmp_path, cluster.address) as found:
        wait_until(lambda: lines(tmp_path) == 4 and len(workers(tmp_path)) == 5)  # of which two wait for `go`
        os.kill(next(each for each in workers(tmp_path) if is_there(each)), signal.SIGKILL)
        wait_until(lambda: len(workers(tmp_path)) == 6)
        (tmp_path / "go").touch()
        out, told = found.communicate()
    assert (found.returncode, out) == (0, EXPECTED), told


@pytest.mark.full
def test_a_driver_that_is_killed_goes_on_where_it_stopped(cluster: DaskCluster, tmp_path: Path) -> None:
    with sweeping(tmp_path, cluster.address) as first:
        wait_until(lambda: lines(tmp_path) == 4)
        first.kill()
        first.communicate()
    (tmp_path / "go").touch()
    with sweeping(tmp_path, cluster.address) as second:
        out, told = second.communicate()
    assert out == EXPECTED and "3 of 8 runs are in" in told
    assert lines(tmp_path) == 9


def test_a_dask_worker_that_is_killed_takes_its_process_along_and_the_sweep_goes_on(tmp_path: Path) -> None:
    with dask_cluster(tmp_path) as cluster, sweeping(tmp_path, cluster.address) as found:
        wait_until(lambda: lines(tmp_path) == 4 and len(workers(tmp_path)) == 5)
        cluster.workers[0].kill()
        wait_until(lambda: sum(map(is_there, workers(tmp_path))) == 1)
        (tmp_path / "go").touch()
        out, told = found.communicate()
    assert (found.returncode, out) == (0, EXPECTED), told


@pytest.mark.full
def test_a_scheduler_that_is_lost_ends_the_sweep_and_local_processes_go_on(tmp_path: Path) -> None:
    with dask_cluster(tmp_path) as cluster, sweeping(tmp_path, cluster.address) as found:
        wait_until(lambda: lines(tmp_path) == 4)
        cluster.scheduler.kill()
        _, told = found.communicate()
    assert found.returncode != 0 and "was lost; --journal keeps what is done" in told
    (tmp_path / "go").touch()
    with sweeping(tmp_path, "2") as again:
        out, _ = again.communicate()
    assert out == EXPECTED


def test_a_scheduler_that_is_lost_between_two_answers_is_told(
    cluster: DaskCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(client: object) -> None:
        raise CommClosedError("reset by peer")

    monkeypatch.setattr(Client, "nthreads", lost)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    words = ["simulate", str(tmp_path / "cluster.yaml"), "--seeds", "2", "--on", cluster.address]
    found = CliRunner().invoke(main, words)
    assert found.exit_code == 2 and f"the scheduler at {cluster.address} was lost" in found.stderr


@pytest.mark.parametrize(
    ("on", "told"),
    [
        ("nowhere", "stowplan: --on nowhere: is no address; name the scheduler of a Dask cluster, such as tcp://10"),
        ("tcp://127.0.0.1:x", "--on tcp://127.0.0.1:x: is no address"),
    ],
)
def test_an_address_that_is_none_is_refused(on: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    found = CliRunner().invoke(main, ["simulate", str(tmp_path / "cluster.yaml"), "--seeds", "2", "--on", on])
    assert found.exit_code == 2 and told in found.stderr


def test_a_scheduler_that_does_not_answer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_runner, "WITHIN", "200ms")
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    on = f"tcp://127.0.0.1:{free_port()}"
    found = CliRunner().invoke(main, ["simulate", str(tmp_path / "cluster.yaml"), "--seeds", "2", "--on", on])
    assert found.exit_code == 2 and f"stowplan: --on {on}: cannot be reached: " in found.stderr


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_without_dask_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    words = ["simulate", str(tmp_path / "cluster.yaml"), "--seeds", "2", "--on", "tcp://127.0.0.1:1"]
    found = CliRunner().invoke(main, words)
    assert found.exit_code == 2
    assert "--on: this needs Dask, which is not installed; pip install 'stowplan[sweep]'" in found.stderr
