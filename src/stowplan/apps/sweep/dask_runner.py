"""Runs on a Dask cluster, where one machine is not enough: `--on tcp://scheduler:8786`.

Dask sends a run to a worker, and to another one if that worker is lost. The workers need the same version of Stowplan;
the files of the sweep are sent to them. Dask is imported here only, and only when it is asked for.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import msgspec

from stowplan.apps.sweep import shipped_files
from stowplan.apps.sweep.dask_task import LostProcessError, brought, replied
from stowplan.apps.sweep.sweep_inputs import SweepInputs
from stowplan.apps.sweep.sweep_run import MOST_TRIES, LostRunError, RunReply, SweepRun
from stowplan.apps.sweep.worker_process import RunRequest
from stowplan.objects.errors import ConfigError, StowplanError

WITHIN = "30s"  # the scheduler answers
ADDRESS = re.compile(r"(?:\w+://)?[^/\s]+:\d+")
REMEDY = "name the scheduler of a Dask cluster, such as tcp://10.0.0.5:8786"


class DaskRunner:
    """`address`: of the scheduler. Raises ConfigError if that is none, or if Dask is not installed."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._dask = _module()
        if not ADDRESS.fullmatch(address):
            raise ConfigError("is no address", path=f"--on {address}", remedy=REMEDY)

    def replies(self, runs: Iterable[SweepRun], inputs: SweepInputs) -> Iterator[tuple[SweepRun, RunReply]]:
        """Yield each run with its reply, as they come. What is left over is cancelled.

        Raises ConfigError if nobody answers at the address.
        """
        lost = Counter[tuple[str, ...]]()
        with self._connected() as client:
            if not client.scheduler_info()["workers"]:
                click.echo(f"{self._address} has no workers yet", err=True)
            files = client.submit(brought, shipped_files.packed(inputs), pure=False)
            waiting, asked = deque(runs), dict[Any, SweepRun]()
            coming = self._dask.as_completed(loop=client.loop)
            with self._scheduler_answers():
                _fill(client, coming, asked, waiting, inputs, files)
            for future in coming:
                run = asked.pop(future)
                match future.status:
                    case "finished":
                        with self._scheduler_answers():
                            answer = future.result()
                        yield run, msgspec.json.decode(answer, type=RunReply)
                    case "error":
                        lost[run.key] += 1
                        self._check(run, future.exception(), lost[run.key])
                        waiting.appendleft(run)
                    case _:
                        raise self._lost()
                with self._scheduler_answers():
                    _fill(client, coming, asked, waiting, inputs, files)

    def _connected(self) -> Any:
        try:
            return self._dask.Client(self._address, timeout=WITHIN, set_as_default=False, name="stowplan-sweep")
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError(f"cannot be reached: {error}", path=f"--on {self._address}", remedy=REMEDY) from None

    @contextmanager
    def _scheduler_answers(self) -> Iterator[None]:
        """What fails because the scheduler is gone says so. It may go between any two questions."""
        try:
            yield
        except (OSError, self._dask.CancelledError) as error:
            raise self._lost() from error

    def _lost(self) -> StowplanError:
        return StowplanError(f"the scheduler at {self._address} was lost; --journal keeps what is done")

    def _check(self, run: SweepRun, error: BaseException, times: int) -> None:
        """Raise for an error after which the run is not done again."""
        if isinstance(error, LostProcessError) and times < MOST_TRIES:
            return
        if isinstance(error, (LostProcessError, self._dask.KilledWorker)):
            raise LostRunError(run, str(error))
        if isinstance(error, ImportError):
            remedy = "install the same version of Stowplan there"
            raise ConfigError(f"a worker has no Stowplan: {error}", path=f"--on {self._address}", remedy=remedy)
        raise StowplanError(f"{run.name}: {type(error).__name__}: {error}")


def _fill(
    client: Any, coming: Any, asked: dict[Any, SweepRun], waiting: deque[SweepRun], inputs: SweepInputs, files: Any
) -> None:
    """Submit as many runs as the cluster has threads. So none stands in the queue of a worker that is not done yet."""
    threads = sum(client.nthreads().values()) if waiting else 0
    while waiting and len(asked) < max(threads, 1):
        run = waiting.popleft()
        future = client.submit(replied, msgspec.json.encode(RunRequest(run, inputs)), files, pure=False)
        asked[future] = run
        coming.add(future)


def _module() -> Any:
    """Return `distributed`, the part of Dask that is needed. Raises ConfigError if it is not installed."""
    try:
        import distributed
    except ImportError:
        remedy = "pip install 'stowplan[sweep]'; or leave --on out, for processes of this machine"
        raise ConfigError("this needs Dask, which is not installed", path="--on", remedy=remedy) from None
    return distributed
