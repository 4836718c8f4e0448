"""`python -m benchmarks.live.explain`: what it takes to read a large cluster, beside `kubectl get pods -A -o json`.

    kubectl    kubectl get pods -A -o json > /dev/null
    reading    a process that reads what `stowplan explain` needs, and ends
    explain    stowplan explain POD, for a pod that no node can take

By turns, some rounds each, at 5,000 nodes with 50,000 bound pods. The time is that of the whole process, its start
included; CPU is that of the process, without the server's.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click
import msgspec
from tests.controlplane.plane import ControlPlane

from benchmarks import workload
from benchmarks.live import bytecode
from benchmarks.live.cluster import LiveCluster
from benchmarks.live.start import fill
from benchmarks.workload import CreateNodes, CreatePods
from stowplan.kube import credentials, event_loop
from stowplan.kube.client import Client
from stowplan.kube.resources import PODS
from stowplan.kube.transport import Transport

KUBECTL, READING, EXPLAIN = "kubectl", "reading", "explain"
POD = "too-large"  # the one that is explained
AT_MOST = 1.0  # reading, in times of kubectl
READ = """
from stowplan.apps import profile_loader
from stowplan.apps.explain.sources import ALWAYS, ClusterSource
from stowplan.framework.feature_gates import DEFAULT_GATES
_, profiles = profile_loader.defaults(DEFAULT_GATES)
source = ClusterSource()
source.objects(frozenset(ALWAYS).union(*(each.reads for each in profiles.values())), {})
source.close()
"""


@dataclass(frozen=True)
class Reading:
    """One run of a command."""

    command: str
    seconds: float
    cpu_s: float


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True)
@click.option("--bound", type=click.IntRange(0), default=50_000, show_default=True, help="Bound pods.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path), default="build/bench-explain.json", show_default=True)
@click.option("--check", is_flag=True, help="Exit 1 if reading takes longer than kubectl.")
def main(nodes: int, bound: int, rounds: int, file: Path, check: bool) -> None:
    """Read a large cluster with kubectl and with explain, by turns."""
    bytecode.compile_all()
    with ControlPlane(benchmark=True) as plane:
        with asyncio.Runner(loop_factory=event_loop.new) as runner:
            runner.run(make_cluster(plane, nodes, bound))
        readings = list(measure(plane, rounds))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(readings), indent=2) + b"\n")
    seconds = medians(readings)
    for command in (READING, EXPLAIN):
        click.echo(f"{command}: {seconds[command] / seconds[KUBECTL]:.2f} times as long as kubectl")
    sys.exit(1 if check and seconds[READING] > AT_MOST * seconds[KUBECTL] else 0)


async def make_cluster(plane: ControlPlane, nodes: int, bound: int) -> None:
    """Nodes, bound pods, and one pod that is larger than any node."""
    client = Client(Transport(credentials.load(str(plane.kubeconfig()))))
    cluster = LiveCluster(client)
    basic = workload.every()["basic"].workload_template
    template = next(step for step in basic if isinstance(step, CreatePods)).pod_templates[0]
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "9999"}}}
    pod = {"metadata": {"name": POD}, "spec": {"containers": [container]}}
    try:
        await cluster.have_nodes(next(step for step in basic if isinstance(step, CreateNodes)), nodes)
        await fill(cluster, template, nodes, bound)
        path = PODS.collection("default")
        (await client.transport.request("POST", path, body=msgspec.json.encode(pod))).checked(f"POST {path}")
    finally:
        await client.close()


def measure(plane: ControlPlane, rounds: int) -> Iterator[Reading]:
    python = [sys.executable, "-c"]
    commands: Mapping[str, tuple[list[str], int]] = {
        KUBECTL: ([str(plane.kubectl_program), "get", "pods", "-A", "-o", "json"], 0),
        READING: ([*python, READ], 0),
        EXPLAIN: ([sys.executable, "-m", "stowplan.apps.cli", "explain", POD, "-n", "default"], 1),
    }
    environment = os.environ | {"KUBECONFIG": str(plane.kubeconfig()), "KUBERC": "off"}
    for number in range(rounds):
        for command, (arguments, code) in commands.items():
            found = run(command, arguments, code, environment)
            click.echo(f"round {number + 1}, {command}: {found.seconds:.2f} s, {found.cpu_s:.2f} CPU s")
            yield found


def run(command: str, arguments: Sequence[str], code: int, environment: Mapping[str, str]) -> Reading:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
    )
    seconds, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != code:
        raise click.ClickException(f"{command} ended with {done.returncode}: {done.stderr[-2000:]}")
    return Reading(command, seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def medians(readings: Sequence[Reading]) -> dict[str, float]:
    """The median time of each command."""
    return {
        name: median(each.seconds for each in readings if each.command == name) for name in (KUBECTL, READING, EXPLAIN)
    }


if __name__ == "__main__":
    main()
