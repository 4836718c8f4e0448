"""`python -m benchmarks.live.carried_terms`: plain pods beside bound pods that carry many affinity terms.

100 pods on 20 nodes carry 1,000 preferred terms each, and all of these terms match everybody. A scheduler has read them
and has nothing to do; then plain pods are created, and a watch of ours says when the last one is bound. kube-scheduler
and Stowplan take turns. The figure is how many times as long Stowplan takes, by the medians of the rounds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import click
from tests.controlplane.plane import ControlPlane

from benchmarks import workload
from benchmarks.live import processes, run
from benchmarks.live.binds import Binds
from benchmarks.live.cluster import Batch, LiveCluster
from benchmarks.live.contenders import KUBE_SCHEDULER, STOWPLAN, Contender, everybody
from stowplan.kube import credentials, event_loop
from stowplan.kube.client import Client
from stowplan.kube.transport import Transport

NAME, MOST = "carried-terms", 1.5  # times kube-scheduler's time
NODES, CARRIERS, TERMS = 20, 100, 1000
CARRYING, PLAIN = "carrying", "plain"  # namespaces
CONTAINER = {"name": "pause", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "1m"}}}


def carrier(node: int) -> dict[str, Any]:
    """A bound pod; `{index}` becomes its number, so that no two pods have the same terms."""
    terms = [
        {
            "weight": 1,
            "podAffinityTerm": {
                "topologyKey": "kubernetes.io/hostname",
                "namespaceSelector": {},
                "labelSelector": {
                    "matchExpressions": [{"key": "app", "operator": "NotIn", "values": [f"x{{index}}-{number}"]}]
                },
            },
        }
        for number in range(TERMS)
    ]
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    spec = {"nodeName": f"node-{node}", "affinity": affinity, "containers": [CONTAINER]}
    return {"metadata": {"generateName": "carrier-"}, "spec": spec}


def plain_pod() -> dict[str, Any]:
    return {"metadata": {"generateName": "plain-", "labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}


async def seconds(cluster: LiveCluster, contender: Contender, pods: int, log: Path) -> tuple[float, float]:
    """From the first plain pod's creation to the last bind; and the scheduler's memory then."""
    await cluster.clear()
    await cluster.create_pods(Batch(CARRYING, [carrier(node) for node in range(NODES)], CARRIERS))
    batch = Batch(PLAIN, [plain_pod()], pods)
    with contender.start(PLAIN, log) as program:
        await run.while_running(program, run.quiet(program))
        await run.machine_at_rest()
        binds = Binds(cluster.client, batch, await cluster.version(PLAIN))
        following = asyncio.ensure_future(binds.follow())
        await binds.open.wait()
        begun = time.monotonic()
        await cluster.create_pods(batch)
        await run.while_running(program, following)
        return binds.last - begun, processes.resident_mb(program.pid)


async def measure(plane: ControlPlane, pods: int, rounds: int, logs: Path) -> dict[str, list[tuple[float, float]]]:
    client, contenders = Client(Transport(credentials.load(str(plane.kubeconfig())))), everybody(plane)
    found: dict[str, list[tuple[float, float]]] = {KUBE_SCHEDULER: [], STOWPLAN: []}
    try:
        cluster, basic = LiveCluster(client), workload.every()["basic"]
        for step in basic.workload_template:
            if isinstance(step, workload.CreateNodes):
                await cluster.have_nodes(step, NODES)
        for namespace in (CARRYING, PLAIN):
            await cluster.have_namespace(namespace)
        for number in range(rounds):
            for name in (KUBE_SCHEDULER, STOWPLAN) if number % 2 else (STOWPLAN, KUBE_SCHEDULER):
                took = await seconds(cluster, contenders[name], pods, logs / f"{NAME}-{number}-{name}.log")
                found[name].append(took)
                click.echo(f"{contenders[name].title:15} {took[0]:6.2f} s  {took[1]:5.0f} MB", err=True)
    finally:
        await client.close()
    return found


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--pods", type=click.IntRange(1), default=10, show_default=True, help="Plain pods of a run.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="The figures are their medians.")
@click.option("--json", "file", type=click.Path(path_type=Path), default=f"build/{NAME}.json", show_default=True)
@click.option("--check", is_flag=True, help=f"Exit 1 if Stowplan takes more than {MOST:g} times as long.")
def main(pods: int, rounds: int, file: Path, check: bool) -> None:
    """Measure plain pods beside 100 bound pods with 1,000 affinity terms each."""
    with ControlPlane(benchmark=True) as plane, asyncio.Runner(loop_factory=event_loop.new) as runner:
        found = runner.run(measure(plane, pods, rounds, file.parent / "bench-live"))
    theirs, ours = (median(took for took, _ in found[name]) for name in (KUBE_SCHEDULER, STOWPLAN))
    ratio = ours / theirs
    click.echo(f"{NAME}: {pods} plain pods, kube-scheduler {theirs:.2f} s, Stowplan {ours:.2f} s, {ratio:.2f} times")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure = {"workload": NAME, "pods": pods, "kube_scheduler_s": theirs, "stowplan_s": ours, "ratio": ratio}
    file.write_text(json.dumps([figure | {"runs": found}], indent=2) + "\n")
    sys.exit(1 if check and ratio > MOST else 0)


if __name__ == "__main__":
    main()
