"""`stowplan demo`: a summary in a pipe, a live screen on a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec
import yaml

from stowplan.apps import cluster_objects
from stowplan.apps.demo import command as demo
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

KINDS = ("Pod", "Node", "ReplicaSet", "Deployment", "WorkloadPolicy", "ResourceReservation")
ALL = b"112 of 123 pods placed"
SETTLED = rb"again and again: [a-z]+-\d"  # the first node of the pod that is moved; shown once all pods are settled
GANG = "default/south-"
STOWPLAN = [sys.executable, "-m", "stowplan.apps.cli"]
COMMAND, EXPLAIN = [*STOWPLAN, "demo"], [*STOWPLAN, "explain", "-A", "-o", "json"]


def test_in_a_pipe_it_prints_the_outcome_of_each_pod_and_ends() -> None:
    answer = subprocess.run(COMMAND, capture_output=True, text=True, timeout=300, check=False)
    assert answer.returncode == 0, answer.stderr
    text = " ".join(answer.stdout.split())
    assert "112 of 123 pods placed on 42 nodes." in text and "\x1b" not in answer.stdout
    assert "24 of 24" in text and "27 of 30" in text and "3 of 4" in text
    assert text.count(" 12 of 12 ") == 2 and "6 of 7" in text and "a 4/4, b 2/2" in text
    journey = re.search(r"nomad, deleted again and again: (.*?) Nodes", text)
    assert journey is not None
    places = journey[1].split(" → ")
    assert len(places) == 4 and all(here != there for here, there in pairwise(places))
    assert text.count("node(s) didn't match pod anti-affinity rules") == 3, "the reason of each pending pod"
    assert "Insufficient nvidia.com/gpu" in text
    for workload, placed in {"north": "3 of 3", "south": "0 of 3", "rival": "3 of 6", "wordcount": "5 of 5"}.items():
        assert re.search(rf"{workload} [^a-z0-9]*{placed} ", text), "groups and held room"
    assert "Pod group default/south: 2 of 3 pods tried found a node, 3 of 3 must" in text
    assert "is deleted and created again: primary → backup → primary" in text, "the placement follows"


@contextmanager
def on_a_terminal() -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], bytes]]]:
    """The demo, and a function that reads what it draws; empty once the demo has ended."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "160", "LINES": "50"}
    process = subprocess.Popen(COMMAND, stdout=theirs, stderr=theirs, stdin=theirs, env=environment)
    os.close(theirs)
    killer = threading.Timer(300, process.kill)
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


def wait_for(pattern: bytes, read: Callable[[], bytes]) -> bytes:
    seen = b""
    while not re.search(pattern, seen):
        new = read()
        assert new, "the demo ended"
        seen += new
    return seen


def test_on_a_terminal_it_runs_until_a_signal() -> None:
    with on_a_terminal() as (process, read):
        assert b"kubectl --kubeconfig" in wait_for(ALL, read)
        wait_for(SETTLED, read)
        process.send_signal(signal.SIGINT)
        while read():
            pass
        assert process.wait(60) == 0


def test_explanations_of_its_pods_agree_with_their_conditions(tmp_path: Path) -> None:
    """Explained from the demo's API, and from a dump of it."""
    with on_a_terminal() as (_, read):
        found = re.search(rb"--kubeconfig (\S+)", wait_for(ALL, read))
        assert found is not None
        kubeconfig = found[1].decode()
        drain = threading.Thread(target=lambda: [None for _ in iter(read, b"")], daemon=True)
        drain.start()  # otherwise the demo blocks on a full terminal
        objects, said = once_all_have_conditions(kubeconfig)
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
            explained = {each["pod"]: each["message"] for each in items}
            alone = {pod: text for pod, text in said.items() if not pod.startswith(GANG)}
            assert {pod: text for pod, text in explained.items() if not pod.startswith(GANG)} == alone
            assert explained.keys() == said.keys(), "pods of groups included"


def once_all_have_conditions(kubeconfig: str) -> tuple[Sequence[Object], dict[str, str]]:
    """All objects, and the message of each pending pod. A condition is written after the screen shows its pod."""
    deadline = time.monotonic() + 60
    while True:
        objects, _ = cluster_objects.from_cluster((*KINDS, "PriorityClass"), kubeconfig=kubeconfig)
        pods = [each for each in objects if isinstance(each, Pod) and "nomad" not in each.name]  # that pod is moved
        said = {pod.key: said_of(pod) for pod in pods if pod.pending}
        if len(said) == 11 and all(said.values()):
            return objects, said
        assert time.monotonic() < deadline, said
        time.sleep(0.2)


def said_of(pod: Pod) -> str:
    condition = pod.condition("PodScheduled")
    return "" if condition is None else condition.message
