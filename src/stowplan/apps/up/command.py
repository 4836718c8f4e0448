"""`stowplan up`: an embedded cluster for kubectl, with a scheduler in it, until Ctrl-C."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stowplan.apps.logging import Log
from stowplan.apps.program import STOP_SIGNALS, on_stop_signal, watched
from stowplan.apps.run.configuration import LoadedConfiguration, instead_of_kube_scheduler
from stowplan.apps.run.options import RunOptions
from stowplan.apps.run.service import SchedulerService
from stowplan.apps.up import hints, kubeconfig_file
from stowplan.apps.up.kubeconfig_file import WrittenKubeconfig
from stowplan.embedded.api.request_options import DeleteOptions, RequestOptions
from stowplan.embedded.cluster import Embedded
from stowplan.embedded.manifests import LoadedManifests
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates
from stowplan.kube import event_loop
from stowplan.objects import quantity
from stowplan.objects.errors import ConfigError
from stowplan.serving import descriptors


@dataclass(frozen=True)
class UpOptions:
    """The command line."""

    nodes: int | None = None  # None: three, or those of the files
    zones: int = 3
    cpu: str = "4"
    memory: str = "16Gi"
    files: tuple[Path, ...] = ()
    kubeconfig: Path = kubeconfig_file.DEFAULT
    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""
    rbac: bool = False
    scheduler: bool = True
    ui: bool = True
    config: Path | None = None
    plugin_path: tuple[Path, ...] = ()
    feature_gates: FeatureGates = DEFAULT_GATES
    v: int = 0


def run(options: UpOptions) -> int:
    descriptors.raise_limit()

    async def until_signal() -> int:
        stop = asyncio.Event()
        on_stop_signal(stop.set)
        return await main(options, stop)

    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        return runner.run(until_signal())


async def main(options: UpOptions, stop: asyncio.Event) -> int:
    """Run the cluster until `stop` is set. The scheduler ends before the cluster."""
    check_amount("--cpu", options.cpu)
    check_amount("--memory", options.memory)
    kubeconfig_file.check(options.kubeconfig)
    cluster = Embedded(rbac=options.rbac)
    loaded = cluster.load(options.files)
    if not {"Node", "StorageClass"} & loaded.loaded.keys():  # not a copy of another cluster
        create_storage_class(cluster)
    create_nodes(cluster, options)
    try:
        await cluster.start(options.host, options.port, options.token or None)
    except OSError as error:
        raise ConfigError(f"cannot listen on {options.host}:{options.port}: {error.strerror or error}") from None
    written: WrittenKubeconfig | None = None
    try:
        write = kubeconfig_file.write_next if options.kubeconfig == kubeconfig_file.DEFAULT else kubeconfig_file.write
        written = write(options.kubeconfig, cluster.kubeconfig())
        await _work(replace(options, kubeconfig=written.path), cluster, loaded, stop, wanted=options.kubeconfig)
    finally:
        await cluster.stop()
        if written is not None:
            written.close(cluster.id)
    return 0


async def _work(
    options: UpOptions, cluster: Embedded, loaded: LoadedManifests, stop: asyncio.Event, *, wanted: Path
) -> None:
    """Say how to use the cluster, and schedule in it, until `stop` is set. `wanted`: the first choice of a file."""

    def show(schedulers: tuple[str, ...], pages: str) -> None:
        taken = wanted if wanted != options.kubeconfig else None
        hints.show(options.kubeconfig, cluster.url, loaded, schedulers, rbac=options.rbac, taken=taken, pages=pages)

    if not options.scheduler:
        with _pages(options, None) as address:
            show((), address)
            await stop.wait()
        return
    code = code_of(options)
    started = scheduling(options.kubeconfig, Log(options.v), options.config, code, feature_gates=options.feature_gates)
    async with started as (service, working):
        with _pages(options, service) as address:
            show(tuple(service.loaded.profiles), address)
            await asyncio.wait((working, asyncio.ensure_future(stop.wait())), return_when=asyncio.FIRST_COMPLETED)


@contextmanager
def _pages(options: UpOptions, service: SchedulerService | None) -> Iterator[str]:
    """Serve the pages, unless they are not wanted; yield their address."""
    if not options.ui:
        yield ""
        return
    from stowplan.apps.ui.command import UiOptions, policies_of  # imports what only pages need
    from stowplan.apps.up.pages import ClusterPages

    kubeconfig = str(options.kubeconfig)
    policies = policies_of(
        UiOptions(kubeconfig, config=options.config, plugin_path=code_of(options), feature_gates=options.feature_gates)
    )
    with ClusterPages(policies, options.kubeconfig, service, Log(options.v)).served() as address:
        yield address


def code_of(options: UpOptions) -> tuple[Path, ...]:
    """Return the folders that code of plugins may come from."""
    return (*options.plugin_path, *((options.config.parent,) if options.config else ()))


def check_amount(flag: str, text: str) -> None:
    """Raise ConfigError unless a text is an amount that a node can have."""
    try:
        fits = quantity.nanos(quantity.quantity(text)) >= 0
    except ValueError:
        fits = False
    if not fits:
        raise ConfigError(f"{flag} {text[:50]!r} is no amount", remedy="give a quantity such as 4, 500m or 16Gi")


def create_nodes(cluster: Embedded, options: UpOptions) -> None:
    """Create the nodes that were asked for, beside those of the files; else three, unless the files have any."""
    taken = {stored.document["metadata"]["name"] for stored in cluster.api.store.all("nodes")}
    count = options.nodes if options.nodes is not None else 0 if taken else 3
    names = (name for number in itertools.count() if (name := f"node-{number}") not in taken)
    for number, name in enumerate(itertools.islice(names, count)):
        zone = f"zone-{chr(ord('a') + number % options.zones % 26)}"
        create(cluster, "v1", "Node", node(name, zone, cpu=options.cpu, memory=options.memory))


def create_storage_class(cluster: Embedded) -> None:
    """Create a default class: claims that name none get volumes, as in other clusters for first tries."""
    metadata = {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    create(cluster, "storage.k8s.io/v1", "StorageClass", {"metadata": metadata, "provisioner": "stowplan.io/embedded"})


@asynccontextmanager
async def scheduling(
    kubeconfig: Path,
    log: Log,
    config: Path | None = None,
    plugin_path: tuple[Path, ...] = (),
    default: Callable[[], LoadedConfiguration] | None = None,
    feature_gates: FeatureGates = DEFAULT_GATES,
) -> AsyncIterator[tuple[SchedulerService, asyncio.Future[int]]]:
    """Run the scheduler of such a cluster. It is the only one, so it serves `default-scheduler`."""
    options = RunOptions(
        config=config,
        plugin_path=plugin_path,
        feature_gates=feature_gates,
        kubeconfig=str(kubeconfig),
        leader_elect=False,
        secure_port=0,
        replace=True,
    )
    program = SchedulerService(options, default or (lambda: instead_of_kube_scheduler(feature_gates)), log)
    with watched(program):
        if program.watchdog is not None:
            program.watchdog.cover(STOP_SIGNALS)
        working = asyncio.ensure_future(program.main())
        try:
            yield program, working
        finally:
            program.stop()
            await working


def node(name: str, zone: str, *, taints: Sequence[str] = (), **resources: str) -> dict[str, Any]:
    """Return the document of a node with these resources."""
    capacity = {"pods": "110", **resources}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "metadata": {"name": name, "labels": labels | {"topology.kubernetes.io/zone": zone}},
        "spec": {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def create(cluster: Embedded, version: str, kind: str, document: dict[str, Any]) -> None:
    """Create an object, in the default namespace if its kind is namespaced."""
    resource = cluster.api.catalogue.of_kind(version, kind)
    assert resource is not None, f"{kind} is not served"
    namespace = "default" if resource.namespaced else ""
    complete = {"apiVersion": version, "kind": kind, **document}
    cluster.api.create(resource, namespace, complete, RequestOptions(cluster.clock(), "Ignore"))


def delete(cluster: Embedded, version: str, kind: str, name: str) -> None:
    """Delete an object at once, from the default namespace if its kind is namespaced."""
    resource = cluster.api.catalogue.of_kind(version, kind)
    assert resource is not None, f"{kind} is not served"
    namespace, options = "default" if resource.namespaced else "", RequestOptions(cluster.clock(), "Ignore")
    cluster.api.delete(resource, namespace, name, DeleteOptions(grace_period_seconds=0), options)
