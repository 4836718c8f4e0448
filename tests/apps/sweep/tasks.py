"""What runs of sweeps do in these tests, and a program that sweeps: `python -m tests.apps.sweep.tasks FOLDER 2`.

Instead of the number of processes there may be the address of a Dask scheduler.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from stowplan.apps.sweep import sweep
from stowplan.apps.sweep.dask_runner import DaskRunner
from stowplan.apps.sweep.local_runner import LocalRunner
from stowplan.apps.sweep.sweep_inputs import SweepInputs, inputs_of
from stowplan.apps.sweep.sweep_run import SweepRun
from stowplan.objects.errors import ConfigError

ROOT = Path(__file__).parents[3]
HERE = "tests.apps.sweep.tasks"


def run_of(name: str, function: str, **arguments: object) -> SweepRun:
    return SweepRun((name,), f"{HERE}:{function}", arguments)


def inputs(*files: Path, **settings: object) -> SweepInputs:
    return inputs_of(files, settings, (ROOT,))


def squared(number: int) -> int:
    print("said on standard output")  # noqa: T201  # which is not that of the replies
    return number * number


def large(number: int) -> str:
    return "x" * number


def killed_times(folder: str, times: int) -> str:
    """Kill this process so many times, then return."""
    marks = sorted(Path(folder).glob("killed-*"))
    if len(marks) < times:
        Path(folder, f"killed-{len(marks)}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def refused() -> None:
    raise ConfigError("found 3, expected 4", file="some.yaml")


def broken() -> None:
    raise ZeroDivisionError("nothing to divide")


def waiting(folder: str, number: int) -> list[int]:
    """From the fourth on, wait until there is a file `go`. Write down the process, so that tests can kill it."""
    Path(folder, f"process-{os.getpid()}").touch()
    while number >= 3 and not Path(folder, "go").exists():
        time.sleep(0.01)
    return [number, number * number]


EXPECTED = f"{[[number, number * number] for number in range(8)]}\n"  # what `main` prints


def main(folder: Path, where: str) -> None:
    runs = [run_of(str(number), "waiting", folder=str(folder), number=number) for number in range(8)]
    runner: sweep.Runner = LocalRunner(int(where)) if where.isdigit() else DaskRunner(where)
    found = sweep.swept(runs, inputs(), runner, folder / "journal.jsonl")
    print([each.value for each in found])  # noqa: T201


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for what has to come, however busy the machine is."""
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline, "in vain"
        time.sleep(0.02)


def workers(folder: Path) -> list[int]:
    """The processes that did, or do, runs of `main`."""
    return [int(each.name.partition("-")[2]) for each in folder.glob("process-*")]


def is_there(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def lines(folder: Path) -> int:
    """The lines of the journal of `main`."""
    file = folder / "journal.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
