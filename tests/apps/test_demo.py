"""`stowplan demo`: a summary and an end in a pipe, a live picture on a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec
import yaml

from stowplan.apps import demo, gathering
from stowplan.objects.pods import Pod

KINDS = ("Pod", "Node", "ReplicaSet", "Deployment", "WorkloadPolicy")
STOWPLAN = [sys.executable, "-m", "stowplan.apps.cli"]
COMMAND, EXPLAIN = [*STOWPLAN, "demo"], [*STOWPLAN, "explain", "-A", "-o", "json"]


def test_in_a_pipe_it_says_what_became_of_every_pod_and_ends() -> None:
    answer = subprocess.run(COMMAND, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr
    text = " ".join(answer.stdout.split())
    assert "101 of 106 pods placed on 35 nodes." in text and "\x1b" not in answer.stdout
    assert "24 of 24" in text and "27 of 30" in text and "3 of 4" in text
    assert text.count("12 of 12") == 2 and "6 of 7" in text and "a 4/4, b 2/2" in text
    journey = re.search(r"nomad, deleted again and again: (.*?) Nodes", text)
    assert journey is not None
    places = journey[1].split(" → ")
    assert len(places) == 4 and all(here != there for here, there in pairwise(places))
    assert text.count("node(s) didn't match pod anti-affinity rules") == 3, "each pending pod's reason"
    assert "Insufficient nvidia.com/gpu" in text


@contextmanager
def on_a_terminal() -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], bytes]]]:
    """The demo and a way to read what it draws, nothing once it has ended."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "160", "LINES": "50"}
    process = subprocess.Popen(COMMAND, stdout=theirs, stderr=theirs, stdin=theirs, env=environment)
    os.close(theirs)
    killer = threading.Timer(60, process.kill)
    killer.start()

    def read() -> bytes:
        try:
            return os.read(ours, 65536)
        except OSError:
            return b""

    try:
        yield process, read
    finally:
        killer.cancel()
        process.kill()
        process.wait()
        os.close(ours)


def wait_for(text: bytes, read: Callable[[], bytes]) -> bytes:
    seen = b""
    while text not in seen:
        new = read()
        assert new, "it ended"
        seen += new
    return seen


def test_on_a_terminal_it_stays_up_until_it_is_told_to_end() -> None:
    with on_a_terminal() as (process, read):
        assert b"kubectl --kubeconfig" in wait_for(b"101 of 106 pods placed", read)
        process.send_signal(signal.SIGINT)
        while read():
            pass
        assert process.wait(20) == 0


def test_what_is_explained_of_its_pods_is_what_their_conditions_say(tmp_path: Path) -> None:
    """Asked of the demo's own API, and of a dump of it."""
    with on_a_terminal() as (_, read):
        found = re.search(rb"--kubeconfig (\S+)", wait_for(b"101 of 106 pods placed", read))
        assert found is not None
        kubeconfig = found[1].decode()
        drain = threading.Thread(target=lambda: [None for _ in iter(read, b"")], daemon=True)
        drain.start()  # or it would wait for somebody to look
        objects, _ = gathering.from_cluster((*KINDS, "PriorityClass"), kubeconfig=kubeconfig)
        pods = [each for each in objects if isinstance(each, Pod) and "nomad" not in each.name]  # that one moves on
        said = {pod.key: said_of(pod) for pod in pods if pod.pending}
        dump = tmp_path / "dump.json"
        items = [{**msgspec.to_builtins(each, enc_hook=str), "kind": type(each).__name__} for each in objects]
        dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
        config = tmp_path / "config.yaml"
        config.write_text(yaml.safe_dump(demo.script()["configuration"]), encoding="utf-8")
        for source in (["--kubeconfig", kubeconfig], ["--from", str(dump)]):
            command = [*EXPLAIN, "--config", str(config), *source]
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            assert answer.returncode == 1, answer.stderr
            items = [each for each in json.loads(answer.stdout)["items"] if "nomad" not in each["pod"]]
            assert {each["pod"]: each["message"] for each in items} == said
    assert len(said) == 5 and all(said.values())


def said_of(pod: Pod) -> str:
    condition = pod.condition("PodScheduled")
    return "" if condition is None else condition.message
