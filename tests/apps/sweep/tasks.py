"""What runs of sweeps do in these tests, and a program that sweeps: `python -m tests.apps.sweep.tasks FOLDER JOBS`."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from stowplan.apps.sweep import sweep
from stowplan.apps.sweep.local_runner import LocalRunner
from stowplan.apps.sweep.sweep_inputs import SweepInputs, inputs_of
from stowplan.apps.sweep.sweep_run import SweepRun
from stowplan.objects.errors import ConfigError

ROOT = Path(__file__).parents[3]
HERE = "tests.apps.sweep.tasks"


def run_of(name: str, function: str, **arguments: object) -> SweepRun:
    return SweepRun((name,), f"{HERE}:{function}", arguments)


def inputs(*files: Path, **settings: object) -> SweepInputs:
    return inputs_of(files, settings, (str(ROOT),))


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


def main(folder: Path, jobs: int) -> None:
    runs = [run_of(str(number), "waiting", folder=str(folder), number=number) for number in range(8)]
    found = sweep.swept(runs, inputs(), LocalRunner(jobs), folder / "journal.jsonl")
    print([each.value for each in found])  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
