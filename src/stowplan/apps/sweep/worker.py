"""A worker process, seen by who asks it: started, given a run, listened to, ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Self

import msgspec

from stowplan.apps.sweep.sweep_inputs import SweepInputs
from stowplan.apps.sweep.sweep_run import RunReply, SweepRun
from stowplan.apps.sweep.worker_process import RunRequest

COMMAND = (sys.executable, "-P", "-m", "stowplan.apps.sweep.worker_process")
AT_ONCE = 1 << 20  # bytes


class SweepWorker:
    """Does one run at a time. With `with` it is ended, whatever it does."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._replies = self._process.stdin, self._process.stdout
        self._read = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def fileno(self) -> int:
        """The file that has something to read when the process replies or ends."""
        return self._replies.fileno()

    def ask(self, run: SweepRun, inputs: SweepInputs) -> None:
        """Give it a run."""
        with suppress(BrokenPipeError):  # it is gone, which the next `listen` says
            self._requests.write(msgspec.json.encode(RunRequest(run, inputs)) + b"\n")
            self._requests.flush()

    def listen(self) -> RunReply | None:
        """Read what there is, and wait if there is nothing. Return the reply, once all of it is there.

        Raises EOFError if the process is gone.
        """
        found = os.read(self.fileno(), AT_ONCE)
        if not found:
            raise EOFError(self._how())
        self._read += found
        line, newline, rest = self._read.partition(b"\n")
        if not newline:
            return None
        self._read = rest
        return msgspec.json.decode(line, type=RunReply)

    def _how(self) -> str:
        """How the process ended."""
        code = self._process.wait()
        return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"

    def end(self) -> None:
        """End it, in the middle of a run if need be."""
        self._process.kill()
        self._process.wait()
        self._replies.close()
        with suppress(BrokenPipeError):  # a request that was never read
            self._requests.close()
