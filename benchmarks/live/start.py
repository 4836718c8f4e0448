"""`python -m benchmarks.live.start`: how soon a scheduler binds after its start, and how much memory it then has.

    an empty cluster      a few nodes and one pending pod
    a full cluster        5,000 nodes, 50,000 bound pods (created with their node) and one pending pod

Both schedulers are started in turns, some rounds each. The time is from the start of the process to the binding of the
pending pod, as a watch is told of it; the memory is RSS once the process has come to rest; the peak is the highest.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click
import msgspec
from tests.controlplane.plane import ControlPlane

from benchmarks import object_templates, workload
from benchmarks.live import bytecode, processes
from benchmarks.live.binds import Binds
from benchmarks.live.cluster import Batch, LiveCluster, in_parallel
from benchmarks.live.contenders import KUBE_SCHEDULER, STOWPLAN, Contender, everybody
from benchmarks.live.run import machine_at_rest, quiet, while_running
from benchmarks.workload import CreateNodes, CreatePods, Template
from stowplan.kube import credentials, event_loop
from stowplan.kube.client import Client
from stowplan.kube.resources import PODS
from stowplan.kube.responses import Response
from stowplan.kube.transport import Transport

FEW_NODES = 10
BOUND = "bound"  # the namespace of the pods that are there from the start
SECONDS = {"empty": 0.7, "full": 5.0}  # until the first binding, at most
MEGABYTES = {"idle": 60.0, "full": 250.0}


@dataclass(frozen=True)
class Start:
    """One start of a scheduler. `others`: cores that other programs kept busy until the binding."""

    contender: str
    cluster: str
    first_bind_s: float
    cpu_s: float
    rss_mb: float
    peak_rss_mb: float
    others: float


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--nodes", type=click.IntRange(FEW_NODES), default=5000, show_default=True)
@click.option("--bound", type=click.IntRange(0), default=50_000, show_default=True, help="Bound pods.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path), default="build/bench-start.json", show_default=True)
@click.option("--check", is_flag=True, help="Exit 1 and name every bound that is missed; they are due at the defaults.")
@click.option("--alone", is_flag=True, help="Stowplan only.")
def main(nodes: int, bound: int, rounds: int, file: Path, check: bool, alone: bool) -> None:
    """Start schedulers at a real kube-apiserver, with an empty and with a full cluster."""
    bytecode.compile_all()
    names = (STOWPLAN,) if alone else (KUBE_SCHEDULER, STOWPLAN)
    with ControlPlane(benchmark=True) as plane, asyncio.Runner(loop_factory=event_loop.new) as runner:
        starts = runner.run(measure(plane, names, nodes, bound, rounds))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(starts), indent=2) + b"\n")
    missed = list(missed_bounds(starts)) if check else []
    for sentence in missed:
        click.echo(f"missed: {sentence}")
    sys.exit(1 if missed else 0)


async def measure(plane: ControlPlane, names: Sequence[str], nodes: int, bound: int, rounds: int) -> list[Start]:
    client = Client(Transport(credentials.load(str(plane.kubeconfig()))))
    cluster, contenders = LiveCluster(client), everybody(plane)
    basic = workload.every()["basic"].workload_template
    made = next(step for step in basic if isinstance(step, CreateNodes))
    template = next(step for step in basic if isinstance(step, CreatePods)).pod_templates[0]
    logs, found = plane.folder / "starts", list[Start]()
    try:
        await cluster.have_nodes(made, FEW_NODES)
        for number in range(rounds):
            for name in names:
                found.append(await start(cluster, contenders[name], template, "empty", logs / f"{name}-{number}.log"))
                click.echo(line(found[-1]))
        await cluster.have_nodes(made, nodes)
        for name in names:
            found.append(await idle(cluster, contenders[name], logs / f"idle-{name}.log"))
            click.echo(line(found[-1]))
        await fill(cluster, template, nodes, bound)
        for number in range(rounds):
            for name in names:
                log = logs / f"full-{name}-{number}.log"
                found.append(await start(cluster, contenders[name], template, "full", log))
                click.echo(line(found[-1]))
    finally:
        await client.close()
    return found


async def fill(cluster: LiveCluster, template: Template, nodes: int, bound: int) -> None:
    """Pods that have a node from their creation on. (They keep their namespace to themselves: it is not cleared.)"""
    await cluster.client.transport.request(
        "POST", "/api/v1/namespaces", body=msgspec.json.encode({"metadata": {"name": BOUND}})
    )
    documents = object_templates.documents([template], range(bound))

    def placed() -> Iterator[bytes]:
        for number, document in enumerate(documents):
            yield document.replace(b'"spec":{', b'"spec":{"nodeName":"node-%d",' % (number % nodes), 1)

    path = PODS.collection(BOUND)

    async def post(document: bytes) -> Response:
        return (await cluster.client.transport.request("POST", path, body=document)).checked(f"POST {path}")

    await in_parallel(placed(), post)


async def start(cluster: LiveCluster, contender: Contender, template: Template, kind: str, log: Path) -> Start:
    batch = Batch("default", [template], 1)
    await cluster.clear()
    version = await cluster.create_pods(batch)
    await machine_at_rest()
    binds = Binds(cluster.client, batch, version)
    following = asyncio.ensure_future(binds.follow())
    await binds.open.wait()
    before, begun = processes.usage(), time.monotonic()
    with contender.start(batch.namespace, log) as program:
        await while_running(program, following)
        after, cpu = processes.usage(), processes.cpu_seconds(program.pid)
        await while_running(program, quiet(program))
        rss, peak = processes.resident_mb(program.pid), processes.peak_resident_mb(program.pid)
        return Start(contender.name, kind, binds.first - begun, cpu, rss, peak, after.others_since(before))


async def idle(cluster: LiveCluster, contender: Contender, log: Path) -> Start:
    await cluster.clear()
    with contender.start("default", log) as program:
        await while_running(program, quiet(program))
        cpu, rss, peak = (
            each(program.pid) for each in (processes.cpu_seconds, processes.resident_mb, processes.peak_resident_mb)
        )
        return Start(contender.name, "idle", 0.0, cpu, rss, peak, 0.0)


def line(found: Start) -> str:
    bound = f"first binding after {found.first_bind_s:.2f} s, " if found.first_bind_s else ""
    return (
        f"{found.cluster} {found.contender}: {bound}{found.cpu_s:.2f} CPU s, {found.rss_mb:.0f} MB, "
        f"peak {found.peak_rss_mb:.0f} MB, others {found.others:.1f} cores"
    )


def missed_bounds(starts: Sequence[Start]) -> Iterator[str]:
    """A sentence for each bound that Stowplan misses. The first binding must also come before kube-scheduler's."""
    for kind in ("empty", "idle", "full"):
        ours = [each for each in starts if each.cluster == kind and each.contender == STOWPLAN]
        theirs = [each for each in starts if each.cluster == kind and each.contender == KUBE_SCHEDULER]
        if not ours:
            yield f"{kind}: not measured"
            continue
        seconds, megabytes = median(each.first_bind_s for each in ours), median(each.rss_mb for each in ours)
        if kind in SECONDS and seconds > SECONDS[kind]:
            yield f"{kind}: the first binding comes after {seconds:.2f} s; at most {SECONDS[kind]:g} is due"
        if kind in SECONDS and theirs and seconds > median(each.first_bind_s for each in theirs):
            yield f"{kind}: kube-scheduler binds first"
        if kind in MEGABYTES and megabytes > MEGABYTES[kind]:
            yield f"{kind}: RSS is {megabytes:.0f} MB; at most {MEGABYTES[kind]:g} is due"


if __name__ == "__main__":
    main()
