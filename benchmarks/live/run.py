"""One run: a scheduler starts with nodes and pending pods, and is measured from outside until all pods are bound."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from tests.controlplane.process import Program

from benchmarks.live import processes, profiling
from benchmarks.live.binds import Binds
from benchmarks.live.cluster import Batch, LiveCluster
from benchmarks.live.contenders import Contender
from benchmarks.live.figures import NOISE, Run

SETTLE = 1.0  # seconds after creating and deleting, for the server to come to rest
NOISE_WITHIN = 30.0  # seconds to wait for others to leave the machine to us
LOOK_EVERY = 1.0  # seconds
QUIET, QUIET_SECONDS, QUIET_WITHIN = 0.05, 2.0, 30.0  # CPU seconds within seconds, and the longest wait for that
T = TypeVar("T")


async def measure(
    cluster: LiveCluster, contender: Contender, batch: Batch, number: int, log: Path, profile: Path | None
) -> Run:
    await cluster.clear()
    version = await cluster.create_pods(batch)
    await machine_at_rest()
    binds = Binds(cluster.client, batch, version)
    following = asyncio.ensure_future(binds.follow())
    await binds.open.wait()
    before, begun = processes.usage(), time.monotonic()
    with contender.start(batch.namespace, log) as program, profiling.of(program, profile):
        await while_running(program, following)
        at_last_bind = processes.usage()
        written = await while_running(program, cluster.all_events(batch)) if contender.writes_events else None
        after = processes.usage()
        return Run(
            contender=contender.name,
            round=number,
            pods=batch.count,
            first_bind_s=binds.first - begun,
            last_bind_s=binds.last - begun,
            last_event_s=None if written is None else written - begun,
            cpu_s=processes.cpu_seconds(program.pid),
            peak_rss_mb=processes.peak_resident_mb(program.pid),
            others_cores=at_last_bind.others_since(before),
            apiserver_cpu_s=after.child_since(before, "kube-apiserver"),
            etcd_cpu_s=after.child_since(before, "etcd"),
            watching_cpu_s=after.own - before.own,
            watch_reopened=binds.reopened,
        )


async def idle_rss_mb(cluster: LiveCluster, contender: Contender, log: Path) -> float:
    """Resident memory with all nodes known and nothing to do."""
    await cluster.clear()
    with contender.start("default", log) as program:
        await while_running(program, quiet(program))
        return processes.resident_mb(program.pid)


async def machine_at_rest() -> None:
    """Until other programs leave the machine to us, and the control plane has done what it does after a large deletion
    (a run would be slowed down by the one before it), as long as that does not take too long."""
    deadline, busy = time.monotonic() + NOISE_WITHIN, NOISE
    while busy >= NOISE and time.monotonic() < deadline:
        before = processes.usage()
        await asyncio.sleep(SETTLE)
        busy = processes.usage().all_but_us_since(before)


async def quiet(program: Program) -> None:
    """Until it has stopped working: it knows by then what there is to know."""
    deadline = time.monotonic() + QUIET_WITHIN
    await asyncio.sleep(QUIET_SECONDS)
    before, used = 0.0, processes.cpu_seconds(program.pid)
    while used - before > QUIET and time.monotonic() < deadline:
        await asyncio.sleep(QUIET_SECONDS)
        before, used = used, processes.cpu_seconds(program.pid)


async def while_running(program: Program, work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """The work's result; an error with the end of its log if the program ends before."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            program.check()
            await asyncio.wait((task,), timeout=LOOK_EVERY)
        return task.result()
    finally:
        task.cancel()
