"""Which runs make a figure, in which order: the two schedulers alternate, and who begins changes with each round.

A round in which others kept the machine busy does not count and is made again, at most as often as there are rounds.

The floors are the server's, not the workload's. They are measured in each round of `basic`, where a bound depends on
them, and once for the other workloads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.live import run
from benchmarks.live.cluster import Batch, LiveCluster
from benchmarks.live.contenders import FLOOR, FLOOR_WITH_EVENTS, KUBE_SCHEDULER, STOWPLAN, Contender
from benchmarks.live.figures import BOTH, Both, Figure, Run, figure, quiet_rounds
from benchmarks.workload import CreateNamespaces, CreateNodes, CreatePods, Workload

NAMES = ("basic", "node-affinity", "spread", "preferred-anti-affinity", "anti-affinity", "affinity")
ZONES = 3
AGAIN = 2  # times as many rounds as wanted, at most
PER_NODE = 40  # pods of 100m on 4 CPU
# How many pods a cluster surely holds, where that is not its CPU alone.
HOLDS: dict[str, Callable[[int], int]] = {
    "anti-affinity": lambda nodes: nodes,
    "node-affinity": lambda nodes: nodes // ZONES * 2 * PER_NODE,
    "affinity": lambda nodes: nodes // ZONES * PER_NODE,
}


@dataclass(frozen=True)
class Plan:
    """What the command line asks for."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    pods: int
    rounds: int
    logs: Path
    profiles: Path | None = None
    any_noise: bool = False  # no round is made again

    @property
    def runs(self) -> int:
        return sum(len(order(name, number)) for name in self.names for number in range(1, self.rounds + 1)) * len(
            self.sizes
        )


def order(name: str, number: int) -> tuple[str, ...]:
    pair = (KUBE_SCHEDULER, STOWPLAN) if number % 2 else (STOWPLAN, KUBE_SCHEDULER)
    return (*pair, FLOOR, FLOOR_WITH_EVENTS) if number == 1 or name == "basic" else pair


@dataclass(frozen=True)
class Rounds:
    plan: Plan
    cluster: LiveCluster
    contenders: dict[str, Contender]
    told: Callable[[str, int, Run], None]  # of each run when it is over

    async def idle(self, nodes: int) -> Both:
        """Memory of both with so many nodes and no pods."""
        found = [
            await run.idle_rss_mb(self.cluster, self.contenders[name], self.plan.logs / f"idle-{nodes}-{name}.log")
            for name in BOTH
        ]
        return Both(*found)

    async def prepare(self, workload: Workload, nodes: int) -> None:
        for operation in workload.workload_template:
            if isinstance(operation, CreateNodes):
                await self.cluster.have_nodes(operation, nodes)
            elif isinstance(operation, CreateNamespaces):
                for number in range(operation.count):
                    await self.cluster.have_namespace(f"{operation.prefix}-{number}")

    async def figure(self, workload: Workload, nodes: int, idle_rss_mb: Both) -> Figure:
        batch, runs = batch_of(workload, nodes, self.plan.pods), []
        for number in range(1, AGAIN * self.plan.rounds + 1):
            for name in order(workload.name, number):
                runs.append(await self._run(workload, nodes, batch, number, name))
                self.told(workload.name, nodes, runs[-1])
            if number >= self.plan.rounds and (self.plan.any_noise or len(quiet_rounds(runs)) >= self.plan.rounds):
                break
        return figure(workload.name, nodes, idle_rss_mb, runs)

    async def _run(self, workload: Workload, nodes: int, batch: Batch, number: int, name: str) -> Run:
        title = f"{workload.name}-{nodes}-{number}-{name}"
        profile = self.plan.profiles / f"{title}.folded" if self.plan.profiles and name == STOWPLAN else None
        return await run.measure(
            self.cluster, self.contenders[name], batch, number, self.plan.logs / f"{title}.log", profile
        )


def batch_of(workload: Workload, nodes: int, wanted: int) -> Batch:
    """The measured pods alone, in an empty cluster; fewer than wanted where it cannot hold them."""
    measured = next(
        step for step in workload.workload_template if isinstance(step, CreatePods) and step.collect_metrics
    )
    room = HOLDS[workload.name](nodes) if workload.name in HOLDS else nodes * PER_NODE
    return Batch(measured.namespace, measured.pod_templates, min(wanted, room))
