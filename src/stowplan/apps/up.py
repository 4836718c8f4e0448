"""`stowplan up`: an embedded cluster that kubectl can talk to, with a scheduler at work in it, until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from stowplan.apps.logs import Log
from stowplan.apps.options import Options
from stowplan.apps.scheduler import Program
from stowplan.embedded.asked import Asked
from stowplan.embedded.cluster import Embedded
from stowplan.embedded.loading import Loaded
from stowplan.kube import loops
from stowplan.objects.errors import ConfigError


@dataclass(frozen=True)
class Wanted:
    """The command line."""

    nodes: int = 3
    zones: int = 3
    cpu: str = "4"
    memory: str = "16Gi"
    files: tuple[Path, ...] = ()
    kubeconfig: Path = Path("stowplan.kubeconfig")
    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""
    scheduler: bool = True
    config: Path | None = None
    v: int = 0


def run(wanted: Wanted) -> int:
    with asyncio.Runner(loop_factory=loops.new) as runner:
        return runner.run(main(wanted))


async def main(wanted: Wanted, stop: asyncio.Event | None = None) -> int:
    """Until told to stop; the scheduler ends first."""
    stop = stop or asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    cluster = Embedded()
    loaded = cluster.load(wanted.files)
    for node in nodes(wanted):
        create(cluster, "v1", "Node", node)
    try:
        await cluster.start(wanted.host, wanted.port, wanted.token or None)
    except OSError as error:
        raise ConfigError(f"cannot listen on {wanted.host}:{wanted.port}: {error.strerror or error}") from None
    try:
        write(wanted.kubeconfig, cluster.kubeconfig())
        tell(wanted, cluster, loaded)
        await (_scheduled(wanted, stop) if wanted.scheduler else stop.wait())
    finally:
        await cluster.stop()
        with suppress(OSError):
            wanted.kubeconfig.unlink()
    return 0


async def _scheduled(wanted: Wanted, stop: asyncio.Event) -> None:
    """Without a configuration it serves `default-scheduler`: there is no other scheduler in such a cluster."""
    options = Options(
        config=wanted.config,
        kubeconfig=str(wanted.kubeconfig),
        leader_elect=False,
        secure_port=0,
        replace=True,
        v=wanted.v,
    )
    program = Program(options, Log(wanted.v), serve_default=wanted.config is None, signals=False)
    working = asyncio.ensure_future(program.main())
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
    program.stop()
    stopped.cancel()
    await working


def nodes(wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Nodes of one size, spread over zones; none if files brought their own."""
    offered = {"cpu": wanted.cpu, "memory": wanted.memory, "pods": "110"}
    for number in range(wanted.nodes):
        name = f"node-{number}"
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        labels["topology.kubernetes.io/zone"] = (
            f"zone-{'abcdefghijklmnopqrstuvwxyz'[number % max(wanted.zones, 1) % 26]}"
        )
        yield {"metadata": {"name": name, "labels": labels}, "status": {"capacity": offered, "allocatable": offered}}


def create(cluster: Embedded, version: str, kind: str, document: dict[str, Any]) -> None:
    """Put an object into the cluster, as a client would."""
    resource = cluster.api.catalogue.of_kind(version, kind)
    assert resource is not None, f"{kind} is not served"
    namespace = "default" if resource.namespaced else ""
    whole = {"apiVersion": version, "kind": kind, **document}
    cluster.api.create(resource, namespace, whole, Asked(cluster.clock(), "Ignore"))


def write(file: Path, text: str) -> None:
    """For its owner only: it may hold a token."""
    try:
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(file)) from None


def tell(wanted: Wanted, cluster: Embedded, loaded: Loaded) -> None:
    click.echo(f"A cluster is up at {cluster.url}. Try:")
    click.echo("")
    for line in ("get nodes", "create deployment web --image=nginx --replicas=5", "get pods -o wide"):
        click.echo(f"    kubectl --kubeconfig {wanted.kubeconfig} {line}")
    click.echo("")
    if loaded.loaded:
        click.echo("Loaded: " + ", ".join(f"{number} {kind}" for kind, number in sorted(loaded.loaded.items())))
    if loaded.skipped:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(loaded.skipped.items()))
        click.echo(f"Not served here, passed over: {kinds}", err=True)
    click.echo("Ctrl-C ends it; nothing is kept.")
