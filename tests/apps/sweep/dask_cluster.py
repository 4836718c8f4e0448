"""A Dask cluster of two workers on loopback, each a process of its own, ended with the test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

LOOPBACK = ("--host", "127.0.0.1", "--no-dashboard")
AT = "Scheduler at:"


class DaskCluster:
    """`address`: of the scheduler."""

    def __init__(self, folder: Path, ending: ExitStack) -> None:
        self._folder, self._ending = folder, ending
        self.scheduler = self._started("scheduler", "--port", "0", "--no-show")
        self.address = self._address()
        self.workers = [self.worker(), self.worker()]

    def worker(self) -> subprocess.Popen[str]:
        """Start a worker, without a nanny that would replace it."""
        return self._started("worker", self.address, "--nthreads", "1", "--no-nanny")

    def _started(self, *words: str) -> subprocess.Popen[str]:
        clean = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}
        command = [sys.executable, "-m", "dask", *words, *LOOPBACK]
        process = subprocess.Popen(
            command, cwd=self._folder, env=clean, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self._ending.callback(_end, process)
        return process

    def _address(self) -> str:
        assert self.scheduler.stderr is not None
        for line in self.scheduler.stderr:
            if AT in line:
                return line.partition(AT)[2].strip()
        raise AssertionError("the scheduler ended")


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@contextmanager
def dask_cluster(folder: Path) -> Iterator[DaskCluster]:
    """Start a cluster whose files are in this folder, which is not that of the sweep."""
    with ExitStack() as ending:
        yield DaskCluster(folder, ending)
