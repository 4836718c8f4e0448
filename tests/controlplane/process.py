"""A program of the control plane as a child process: started, watched, ended by its pid.

It cannot outlive us. The kernel kills it when its parent dies, even by SIGKILL; on systems that have no such wish
(PR_SET_PDEATHSIG is Linux's) the interpreter's exit must do. A program has a session of its own, so that Ctrl-C reaches
us alone and the parts are stopped in order.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeVar

T = TypeVar("T")

# Runs between us and the program and becomes the program. Done there and not in `preexec_fn`, which Python warns of
# in a process with threads. Our pid is compared since we may have died before the wish was made.
BECOME = """
import os, signal, sys
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""

# "When the parent dies" means the thread that forked, so one that lives as long as we do forks for everybody.
_forking = ThreadPoolExecutor(max_workers=1, thread_name_prefix="controlplane-fork")


class PlaneError(RuntimeError):
    """Something of the control plane did not do what it should; the text has the end of its log."""


class Program:
    """One run of a program; what it says is added to `log`. As a context manager it is stopped at the end."""

    def __init__(self, path: Path, arguments: Sequence[str], log: Path) -> None:
        self.name = path.name
        self.log = log
        self.was_stopped = False  # by us, that is
        command = [sys.executable, "-I", "-S", "-c", BECOME, str(os.getpid()), str(path), *arguments]
        with log.open("ab") as out:
            self._process = _forking.submit(
                subprocess.Popen, command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            ).result()
        atexit.register(self.kill)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def code(self) -> int | None:
        """The exit code, once it has ended."""
        return self._process.poll()

    def wait_until(self, ready: Callable[[], bool], seconds: float = 120) -> None:
        """Until `ready` says so; an error if the program ends before that or the time is up."""

        def answer() -> bool:
            self.check()
            return ready()

        until(f"{self.name} is ready", answer, seconds, self.tail)

    def check(self) -> None:
        """An error unless it is running."""
        if not self.running:
            raise PlaneError(f"{self.name} ended with {self._process.returncode}; its log ends with\n{self.tail()}")

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self, grace: float = 3) -> None:
        """SIGTERM, and SIGKILL after the grace: kube-apiserver waits for its watchers up to a minute."""
        self.was_stopped = True
        self._end(signal.SIGTERM, grace)
        self.kill()

    def kill(self) -> None:
        self.was_stopped = True
        self._end(signal.SIGKILL, None)
        atexit.unregister(self.kill)

    def _end(self, number: signal.Signals, seconds: float | None) -> None:
        self._process.send_signal(number)  # does nothing once the process is known to have ended
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def until(what: str, ask: Callable[[], T], seconds: float = 60, explain: Callable[[], str] = str) -> T:
    """Ask until the answer is true, and return it. Raise an error after so many seconds."""
    deadline, pause = time.monotonic() + seconds, 0.01
    while not (answer := ask()):
        if time.monotonic() > deadline:
            raise PlaneError(
                f"waited {seconds:g} s until {what}, in vain (last answer: {answer!r})\n{explain()}".rstrip()
            )
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2)
    return answer
