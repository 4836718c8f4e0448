"""A program ends when it is told to, and when we end, however we end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.process import PlaneError, Program, until

SHELL = Path("/bin/sh")
STUBBORN = "trap '' TERM; echo deaf; while true; do sleep 0.05; done"
PARENT = """
import os, signal, sys, threading
from pathlib import Path
from tests.controlplane.process import Program
def start():
    print(Program(Path("/bin/sleep"), ["600"], Path(sys.argv[1])).pid, flush=True)
thread = threading.Thread(target=start)
thread.start()
thread.join()
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


def alive(pid: int) -> bool:
    """A zombie is dead: its new parent may take seconds to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_it_says_is_in_its_log(tmp_path: Path) -> None:
    with Program(SHELL, ["-c", "echo hello; exec sleep 600"], tmp_path / "log") as program:
        program.wait_until(lambda: "hello" in program.tail())
        assert program.running
    assert not program.running


def test_a_program_that_is_deaf_to_sigterm_is_killed(tmp_path: Path) -> None:
    program = Program(SHELL, ["-c", STUBBORN], tmp_path / "log")
    program.wait_until(lambda: "deaf" in program.tail())
    program.stop(grace=0.1)
    assert not program.running


def test_a_program_that_ends_while_it_is_waited_for_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    program = Program(SHELL, ["-c", "echo no such flag; exit 3"], tmp_path / "log")
    with pytest.raises(PlaneError, match=r"sh ended with 3; its log ends with\nno such flag"):
        program.wait_until(lambda: False)
    program.stop()


def test_a_program_that_never_gets_ready_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    with Program(SHELL, ["-c", "echo still thinking; exec sleep 600"], tmp_path / "log") as program:
        program.wait_until(lambda: "thinking" in program.tail())
        with pytest.raises(PlaneError, match=r"waited 0.1 s until sh is ready, in vain.*\nstill thinking"):
            program.wait_until(lambda: False, seconds=0.1)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help for this is Linux's")
def test_a_program_dies_with_a_killed_parent_but_not_with_the_thread_that_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid), "the thread is over by now"
        parent.stdin.write("die\n")
        parent.stdin.close()
        assert parent.wait() == -signal.SIGKILL
    until("the child is gone", lambda: not alive(pid))
