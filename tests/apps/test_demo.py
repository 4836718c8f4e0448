"""`stowplan demo`: a summary and an end in a pipe, a live picture on a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading

COMMAND = [sys.executable, "-m", "stowplan.apps.cli", "demo"]


def test_in_a_pipe_it_says_what_became_of_every_pod_and_ends() -> None:
    answer = subprocess.run(COMMAND, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr
    text = " ".join(answer.stdout.split())
    assert "70 of 74 pods placed on 35 nodes." in text and "\x1b" not in answer.stdout
    assert "24 of 24" in text and "27 of 30" in text and "3 of 4" in text
    assert text.count("node(s) didn't match pod anti-affinity rules") == 3, "each pending pod's reason"
    assert "Insufficient nvidia.com/gpu" in text


def test_on_a_terminal_it_stays_up_until_it_is_told_to_end() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "160", "LINES": "50"}
    process = subprocess.Popen(COMMAND, stdout=theirs, stderr=theirs, stdin=theirs, env=environment)
    os.close(theirs)
    killer = threading.Timer(40, process.kill)
    killer.start()
    seen = b""
    try:
        while b"70 of 74 pods placed" not in seen:
            seen += os.read(ours, 65536)
        assert b"kubectl --kubeconfig" in seen
        process.send_signal(signal.SIGINT)
        while True:
            try:
                if not os.read(ours, 65536):
                    break
            except OSError:
                break
        assert process.wait(20) == 0
    finally:
        killer.cancel()
        process.kill()
        process.wait()
        os.close(ours)
