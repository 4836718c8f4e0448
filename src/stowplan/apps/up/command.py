"""`stowplan up`: an embedded cluster that kubectl can talk to, with a scheduler at work in it, until Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from stowplan.apps.logging import Log
from stowplan.apps.program import when_told_to_stop
from stowplan.apps.run.options import RunOptions, instead_of_kube_scheduler
from stowplan.apps.run.reload import LoadedConfiguration as InForce
from stowplan.apps.run.service import SchedulerService
from stowplan.embedded.api.request_options import DeleteOptions, RequestOptions
from stowplan.embedded.cluster import Embedded
from stowplan.embedded.manifests import LoadedManifests
from stowplan.kube import event_loop
from stowplan.objects.errors import ConfigError


@dataclass(frozen=True)
class UpOptions:
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


def run(wanted: UpOptions) -> int:
    async def until_told() -> int:
        stop = asyncio.Event()
        when_told_to_stop(stop.set)
        return await main(wanted, stop)

    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        return runner.run(until_told())


async def main(wanted: UpOptions, stop: asyncio.Event) -> int:
    """Until told to stop; the scheduler ends first."""
    cluster = Embedded()
    loaded = cluster.load(wanted.files)
    for number in range(wanted.nodes):
        zone = f"zone-{chr(ord('a') + number % wanted.zones % 26)}"
        create(cluster, "v1", "Node", node(f"node-{number}", zone, cpu=wanted.cpu, memory=wanted.memory))
    try:
        await cluster.start(wanted.host, wanted.port, wanted.token or None)
    except OSError as error:
        raise ConfigError(f"cannot listen on {wanted.host}:{wanted.port}: {error.strerror or error}") from None
    try:
        write(wanted.kubeconfig, cluster.kubeconfig())
        tell(wanted, cluster, loaded)
        if wanted.scheduler:
            async with scheduling(wanted.kubeconfig, Log(wanted.v), wanted.config) as (_, working):
                await asyncio.wait((working, asyncio.ensure_future(stop.wait())), return_when=asyncio.FIRST_COMPLETED)
        else:
            await stop.wait()
    finally:
        await cluster.stop()
        with suppress(OSError):
            wanted.kubeconfig.unlink()
    return 0


@asynccontextmanager
async def scheduling(
    kubeconfig: Path,
    log: Log,
    config: Path | None = None,
    without_file: Callable[[], InForce] = instead_of_kube_scheduler,
) -> AsyncIterator[tuple[SchedulerService, asyncio.Future[int]]]:
    """The scheduler of such a cluster, at work; it is the only one there, so it serves `default-scheduler`."""
    options = RunOptions(config=config, kubeconfig=str(kubeconfig), leader_elect=False, secure_port=0, replace=True)
    program = SchedulerService(options, without_file, log)
    working = asyncio.ensure_future(program.main())
    try:
        yield program, working
    finally:
        program.stop()
        await working


def node(name: str, zone: str, *, taints: Sequence[str] = (), **offered: str) -> dict[str, Any]:
    room = {"pods": "110", **offered}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "metadata": {"name": name, "labels": labels | {"topology.kubernetes.io/zone": zone}},
        "spec": {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]},
        "status": {"capacity": room, "allocatable": room},
    }


def create(cluster: Embedded, version: str, kind: str, document: dict[str, Any]) -> None:
    """Put an object into the cluster, as a client would."""
    resource = cluster.api.catalogue.of_kind(version, kind)
    assert resource is not None, f"{kind} is not served"
    namespace = "default" if resource.namespaced else ""
    whole = {"apiVersion": version, "kind": kind, **document}
    cluster.api.create(resource, namespace, whole, RequestOptions(cluster.clock(), "Ignore"))


def delete(cluster: Embedded, version: str, kind: str, name: str) -> None:
    """Take an object, of the default namespace if it has one, out of the cluster, at once."""
    resource = cluster.api.catalogue.of_kind(version, kind)
    assert resource is not None, f"{kind} is not served"
    asked = RequestOptions(cluster.clock(), "Ignore")
    cluster.api.delete(
        resource, "default" if resource.namespaced else "", name, DeleteOptions(grace_period_seconds=0), asked
    )


def write(file: Path, text: str) -> None:
    """For its owner only: it may hold a token."""
    try:
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(file)) from None


def tell(wanted: UpOptions, cluster: Embedded, loaded: LoadedManifests) -> None:
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
