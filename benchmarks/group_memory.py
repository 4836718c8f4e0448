"""What the KubeNexus profile weighs when it has nothing to do: `stowplan run` beside an embedded cluster.

Its document claims about 50 MB for a scheduler in Go; the figure stands beside that claim, with no bound.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

from tests.controlplane.flags import free_port

from benchmarks import workload
from benchmarks.embedded import up
from benchmarks.figures import Comparison
from benchmarks.live import processes
from benchmarks.live.cluster import LiveCluster
from benchmarks.workload import CreateNodes

NAME, CLAIM = "gangs-memory", 50e6
CONFIG = Path(__file__).parents[1] / "deploy" / "profiles" / "kubenexus-scheduler" / "config.yaml"
SIZES, READY_WITHIN, QUIET = (0, 100), 60.0, 3.0  # nodes; seconds


def run() -> Iterator[Comparison]:
    for nodes, megabytes in zip(SIZES, asyncio.run(_measure()), strict=True):
        yield Comparison(
            workload=NAME,
            case="profile kubenexus-scheduler, idle",
            nodes=nodes,
            pods=0,
            unit="bytes of RSS",
            value=megabytes * 1e6,
            against=CLAIM,
            ratio=megabytes * 1e6 / CLAIM,
            note="against KubeNexus' claim",
        )


async def _measure() -> list[float]:
    """With no nodes, and then with more; in megabytes."""
    plan = next(step for step in workload.every()["basic"].workload_template if isinstance(step, CreateNodes))
    found = []
    with tempfile.TemporaryDirectory(prefix="stowplan-bench-") as folder:
        async with up(Path(folder), "--no-scheduler") as (_, client), _idle(Path(folder)) as (pid, port):
            cluster = LiveCluster(client)
            for nodes in SIZES:
                await cluster.have_nodes(plan, nodes)
                await _until_known(port, nodes)
                await asyncio.sleep(QUIET)
                found.append(processes.resident_mb(pid))
    return found


@asynccontextmanager
async def _idle(folder: Path) -> AsyncIterator[tuple[int, int]]:
    """The scheduler's process, and the port of its pages."""
    port = free_port()
    command = ("-m", "stowplan.apps.cli", "run", "--kubeconfig", str(folder / "kubeconfig"), "--config", str(CONFIG))
    pages = ("--secure-port", "0", "--plain-port", str(port))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, *pages, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield process.pid, port
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _until_known(port: int, nodes: int) -> None:
    """Until it is at work, and knows of so many nodes."""
    line = f'scheduler_cache_size{{type="nodes"}} {nodes}.0'
    async with asyncio.timeout(READY_WITHIN):
        while await asyncio.to_thread(_page, port, "/readyz") != "ok":
            await asyncio.sleep(0.1)
        while line not in await asyncio.to_thread(_page, port, "/metrics"):
            await asyncio.sleep(0.1)


def _page(port: int, path: str) -> str:
    """Nothing if there is no answer, or a refusal."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""
