"""`python -m benchmarks.embedded`: how many pods an embedded cluster takes, with a scheduler in it, and what it weighs.

`stowplan up` is one process: API, controllers, fake kubelets and Stowplan. Nodes and pods come over HTTP, and a pod
counts when a watch over HTTP says that it is Running.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import workload
from benchmarks.live import processes
from benchmarks.live.cluster import Batch, LiveCluster
from benchmarks.workload import CreateNodes
from stowplan.kube import credentials, event_loop
from stowplan.kube.client import Client
from stowplan.kube.reflector import Reflector
from stowplan.kube.resources import PODS
from stowplan.kube.transport import Transport
from stowplan.objects.changes import Change, Put
from stowplan.objects.pods import Pod

UP_WITHIN, ALL_WITHIN = 30.0, 600.0  # seconds
TEMPLATE = {
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [{"name": "c", "image": "registry.example/c:1", "resources": {"requests": {"cpu": "100m"}}}],
    },
}


class Measured(msgspec.Struct):
    nodes: int
    pods: int
    created_per_s: float
    running_per_s: float  # from the first POST until the last pod is Running
    rss_mb: float
    peak_rss_mb: float
    cpu_s: float


class Running:
    """The pods that are Running, as a watch tells."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __call__(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, Put) and isinstance(change.object, Pod) and change.object.status.phase == "Running":
                self.names.add(change.object.name)


@asynccontextmanager
async def up(folder: Path, *more: str) -> AsyncIterator[tuple[int, Client]]:
    """A cluster without nodes, its process and a client of it; its kubeconfig is in `folder`."""
    kubeconfig = folder / "kubeconfig"
    command = ("-m", "stowplan.apps.cli", "up", "--nodes", "0", "--kubeconfig", str(kubeconfig), *more)
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.DEVNULL)
    try:
        async with asyncio.timeout(UP_WITHIN):
            while not kubeconfig.exists():
                await asyncio.sleep(0.05)
        client = Client(Transport(credentials.load(str(kubeconfig)), connections=64))
        try:
            yield process.pid, client
        finally:
            await client.close()
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def measure(nodes: int, pods: int, console: Console) -> Measured:
    plan = next(step for step in workload.every()["basic"].workload_template if isinstance(step, CreateNodes))
    running = Running()
    with tempfile.TemporaryDirectory(prefix="stowplan-bench-") as folder, Progress(console=console) as progress:
        async with up(Path(folder)) as (pid, client):
            cluster = LiveCluster(client)
            await cluster.have_nodes(plan, nodes)
            reflector = Reflector(client, PODS, running)
            watching = asyncio.create_task(reflector.run())
            await reflector.synced.wait()
            bar = progress.add_task("pods running", total=pods)
            start = time.perf_counter()
            await cluster.create_pods(Batch("default", [TEMPLATE], pods))
            created = time.perf_counter() - start
            async with asyncio.timeout(ALL_WITHIN):
                while len(running.names) < pods:
                    progress.update(bar, completed=len(running.names))
                    await asyncio.sleep(0.05)
            took = time.perf_counter() - start
            progress.update(bar, completed=pods)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            rss, peak, cpu = processes.resident_mb(pid), processes.peak_resident_mb(pid), processes.cpu_seconds(pid)
    return Measured(nodes, pods, pods / created, pods / took, rss, peak, cpu)


@click.command(epilog="Exit codes: 0 all pods run, 1 some did not within ten minutes.")
@click.option("--nodes", type=click.IntRange(1), default=2000, show_default=True)
@click.option("--pods", type=click.IntRange(1), default=20_000, show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path), default="build/bench-embedded.json", show_default=True)
def main(nodes: int, pods: int, file: Path) -> None:
    """Create nodes and pods in an embedded cluster over HTTP, and wait until all run."""
    notes = Console(stderr=True)
    try:
        with asyncio.Runner(loop_factory=event_loop.new) as runner:
            found = runner.run(measure(nodes, pods, notes))
    except TimeoutError:
        notes.print("not all pods run in time")
        sys.exit(1)
    table = Table("nodes", "pods", "created/s", "running/s", "RSS MB", "peak MB", "CPU s")
    figures = (found.created_per_s, found.running_per_s, found.rss_mb, found.peak_rss_mb, found.cpu_s)
    table.add_row(f"{found.nodes:,}", f"{found.pods:,}", *(f"{figure:,.0f}" for figure in figures))
    Console(highlight=False).print(table)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(msgspec.to_builtins(found), indent=4), encoding="utf-8")


if __name__ == "__main__":
    main()
