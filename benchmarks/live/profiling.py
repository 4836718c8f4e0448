"""A profile of a run by py-spy, where it is installed: all stacks, and a list of the functions that took the time.

Sampling takes a few per cent of a core, so the figures of a profiled run are a little low.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.controlplane.process import Program

RATE = 100  # samples a second
WRITTEN_WITHIN = 30.0  # seconds after the program has ended
LISTED = 40
WAITING = "EpollSelector.select"  # a thread that waits for its sockets, which py-spy takes for work


def sampler() -> str | None:
    """py-spy, from our own environment if it is there."""
    return shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")


@contextmanager
def of(program: Program, file: Path | None) -> Iterator[None]:
    """Stacks of the program, from now on until it ends, in `file`, folded; and the list beside it. Nothing if None."""
    spy = sampler()
    if file is None or spy is None:
        yield
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    _wait_for_python(program.pid)
    command = [spy, "record", "--pid", str(program.pid), "--rate", str(RATE), "--format", "raw", "--output", str(file)]
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        recorder.send_signal(signal.SIGINT)  # as Ctrl-C: it writes what it has
        try:
            recorder.wait(WRITTEN_WITHIN)
        except subprocess.TimeoutExpired:
            recorder.kill()
            recorder.wait()
    if file.exists():
        file.with_suffix(".top.txt").write_text(top(file.read_text()))


def _wait_for_python(pid: int) -> None:
    """The child becomes the program by exec; py-spy would lose it then."""
    deadline = time.monotonic() + 5
    while b"stowplan.apps.cli" not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
        if time.monotonic() > deadline:
            return
        time.sleep(0.01)
    time.sleep(0.1)


def top(folded: str) -> str:
    """The functions with the most samples, by themselves and with what they called."""
    alone: Counter[str] = Counter()
    in_all: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, number = line.rpartition(" ")
        frames = [_function(frame) for frame in stack.split(";")]
        if frames[-1].startswith(WAITING):
            continue
        alone[frames[-1]] += int(number)
        in_all.update(dict.fromkeys(frames, int(number)))
    total = max(alone.total(), 1)
    lines = [f"{total} samples, {RATE} a second"]
    for title, counter in (("by itself", alone), ("with what it called", in_all)):
        lines += ["", title, *(f"{n / total:7.1%}  {name}" for name, n in counter.most_common(LISTED))]
    return "\n".join(lines) + "\n"


def _function(frame: str) -> str:
    """Without the line's number: a function's lines add up."""
    return frame.rpartition(":")[0] + ")" if ":" in frame else frame
