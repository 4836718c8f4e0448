"""The CPU of `stowplan run` per 1,000 pods, with three clients of its event stream and without, by turns.

The scheduler is a process of its own, with an embedded cluster in this one as its API server. Its clients are three
processes of curl-like readers: threads here that read the stream of /debug/decisions and do nothing with it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

from stowplan.apps.up import command as up
from stowplan.embedded.cluster import Embedded

NODES, PODS, CLIENTS, WARM_UP = 200, 3000, 3, 500
TICKS = os.sysconf("SC_CLK_TCK")


def compare(rounds: int) -> dict[str, Any]:
    """Return the seconds of CPU per 1,000 pods, without and with clients."""
    alone, followed = list[float](), list[float]()
    for turn in range(rounds):
        pair = [(alone, 0), (followed, CLIENTS)]
        for costs, clients in pair if turn % 2 == 0 else reversed(pair):
            costs.append(asyncio.run(_cost(clients)))
    ratios = [with_them / without for without, with_them in zip(alone, followed, strict=True)]
    return {
        "pods": PODS, "rounds": rounds, "clients": CLIENTS,
        "alone": [round(each, 4) for each in alone], "followed": [round(each, 4) for each in followed],
        "more": round(median(followed) / median(alone) - 1, 4), "moreByPair": round(median(ratios) - 1, 4),
    }  # fmt: skip


async def _cost(clients: int) -> float:
    """Return the seconds of CPU per 1,000 pods of a scheduler that starts anew."""
    cluster = Embedded()
    up.create_nodes(cluster, up.UpOptions(nodes=NODES, cpu="1000", memory="4000Gi"))
    await cluster.start("127.0.0.1", 0)
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(cluster.kubeconfig(), encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "stowplan.apps.cli", "run", "--kubeconfig", str(kubeconfig), "--leader-elect=false",
            "--secure-port", "0", "--plain-port", str(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        ended = threading.Event()
        readers = [threading.Thread(target=_read, args=(port, ended), daemon=True) for _ in range(clients)]
        try:
            await _bound(cluster, "warm", WARM_UP)
            for each in readers:
                each.start()
            await asyncio.sleep(1.0)
            before = _cpu(process.pid)
            await _bound(cluster, "pod", PODS)
            await asyncio.sleep(1.0)
            return (_cpu(process.pid) - before) / PODS * 1000
        finally:
            ended.set()
            process.terminate()
            await process.wait()
            await cluster.stop()


async def _bound(cluster: Embedded, prefix: str, number: int) -> None:
    """Create pods, and wait until all have a node."""
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "10m", "memory": "10Mi"}}}
    names = {f"{prefix}-{at}" for at in range(number)}
    for at, name in enumerate(sorted(names)):
        spec = {"schedulerName": "stowplan", "containers": [container]}
        up.create(cluster, "v1", "Pod", {"metadata": {"name": name}, "spec": spec})
        if at % 50 == 0:
            await asyncio.sleep(0.01)
    until = time.monotonic() + 300
    while names:
        assert time.monotonic() < until, f"{len(names)} pods have no node"
        await asyncio.sleep(0.1)
        for stored in cluster.api.store.all("pods"):
            if stored.document["spec"].get("nodeName"):
                names.discard(stored.document["metadata"]["name"])


def _read(port: int, ended: threading.Event) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /debug/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        connection.settimeout(0.5)
        while not ended.is_set():
            try:
                if not connection.recv(1 << 16):
                    return
            except TimeoutError:
                continue


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
