"""`python -m benchmarks.what_if`: the CPU of `stowplan what-if` and of `stowplan capacity`, beside reading the dump.

    reading    a process that reads the dump as `explain` does, and ends
    loading    a process that loads it into a simulated cluster, as `simulate` does
    what-if    stowplan what-if --drain NODE
    capacity   stowplan capacity, for a pod of which tens of thousands fit

By turns, each as a whole process. The dump has Deployments with their ReplicaSets, every fourth with a budget.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import click

READING, LOADING, WHAT_IF, CAPACITY = "reading", "loading", "what-if", "capacity"
AT_MOST = 5.0  # what-if, in times of reading
REPLICAS, BUDGETS = 25, 4  # pods of a Deployment; each one of so many Deployments has a budget
READ = """
import gc, sys
gc.disable()
from pathlib import Path
from stowplan.apps import profile_loader
from stowplan.apps.explain.snapshot import Snapshot
from stowplan.apps.explain.sources import FileSource
Snapshot(FileSource((Path(sys.argv[1]),)).objects((), {}), profile_loader.defaults()[1])
"""
LOAD = """
import gc, sys
gc.disable()
from pathlib import Path
from stowplan.embedded.manifests import documents
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.simulated_cluster import SimulatedCluster
SimulatedCluster().load(documents([Path(sys.argv[1])]), InputProblems())
"""
Document = dict[str, Any]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True)
@click.option("--pods", type=click.IntRange(1), default=50_000, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--check", is_flag=True, help=f"Exit 1 if what-if takes more than {AT_MOST:g} times the CPU of reading.")
def main(nodes: int, pods: int, rounds: int, check: bool) -> None:
    """Drain a node of a large dump, and count how many more pods fit."""
    with tempfile.TemporaryDirectory() as folder:
        dump, pod = Path(folder) / "dump.json", Path(folder) / "pod.json"
        dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(a_cluster(nodes, pods))}))
        metadata = {"name": "small"}
        pod.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": a_spec(500, 1)}))
        stowplan = [sys.executable, "-m", "stowplan.apps.cli"]
        commands = {
            READING: [sys.executable, "-c", READ, str(dump)],
            LOADING: [sys.executable, "-c", LOAD, str(dump)],
            WHAT_IF: [*stowplan, "what-if", "--from", str(dump), "--drain", "node-1", "-o", "json"],
            CAPACITY: [*stowplan, "capacity", "--from", str(dump), "-f", str(pod), "-o", "json"],
        }
        found: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(rounds):
            for name, command in commands.items():
                found[name].append(cpu_of(command))
                click.echo(f"round {number + 1}, {name}: {found[name][-1]:.2f} CPU s")
    cost = {name: median(each) for name, each in found.items()}
    for name in (READING, LOADING):
        click.echo(f"what-if: {cost[WHAT_IF] / cost[name]:.2f} times the CPU of {name}")
    sys.exit(1 if check and cost[WHAT_IF] > AT_MOST * cost[READING] else 0)


def cpu_of(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise click.ClickException(f"{command[-4:]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def a_cluster(nodes: int, pods: int) -> Iterator[Document]:
    """Nodes of 16 cores in three zones, and pods that are drawn onto them."""
    draw = random.Random(1)
    resources = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    for number in range(nodes):
        name = f"node-{number}"
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "abc"[number % 3]}
        status = {"capacity": resources, "allocatable": resources}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
    for number in range(-(-pods // REPLICAS)):
        yield from a_deployment(number, min(REPLICAS, pods - number * REPLICAS), nodes, draw)


def a_deployment(number: int, replicas: int, nodes: int, draw: random.Random) -> Iterator[Document]:
    name, code = f"web-{number}", f"{number:05}"
    labels, spec = {"app": name}, a_spec(draw.choice((100, 250, 500, 1000)), draw.choice((0.25, 0.5, 1, 2)))
    hashed = {**labels, "pod-template-hash": code}
    revision = {"deployment.kubernetes.io/revision": "1"}
    metadata = {"name": name, "namespace": "default", "annotations": revision}
    yield _workload("Deployment", metadata, labels, replicas, spec)
    owner: Document = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": name, "controller": True}
    owned = {**metadata, "name": f"{name}-{code}", "labels": hashed, "ownerReferences": [owner]}
    yield _workload("ReplicaSet", owned, hashed, replicas, spec)
    if number % BUDGETS == 0:
        budget = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
        about = {"name": name, "namespace": "default"}
        yield {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": about, "spec": budget}
    owner = {**owner, "kind": "ReplicaSet", "name": f"{name}-{code}"}
    for at in range(replicas):
        own = {"name": f"{name}-{code}-{at:05}", "namespace": "default", "labels": hashed, "ownerReferences": [owner]}
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        placed = {**spec, "nodeName": f"node-{draw.randrange(nodes)}"}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": placed, "status": status}


def _workload(kind: str, metadata: Document, labels: Document, replicas: int, spec: Document) -> Document:
    template = {"metadata": {"labels": labels}, "spec": spec}
    found = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": found}


def a_spec(cpu: int, memory: float) -> Document:
    requests = {"cpu": f"{cpu}m", "memory": f"{int(memory * 1024)}Mi"}
    return {"containers": [{"name": "main", "image": "main", "resources": {"requests": requests}}]}


if __name__ == "__main__":
    main()
