"""`stowplan demo`: an embedded cluster with workloads and a scheduler, and its decisions on screen.

On a terminal the screen is updated until Ctrl-C, and kubectl can use the cluster. In a pipe the demo prints the outcome
of each pod and ends. The cluster and its workloads are data (`demo.yaml`).
"""

from __future__ import annotations

import asyncio
import io
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import resources
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.live import Live as Screen

from stowplan.apps import profile_loader
from stowplan.apps.demo import fleet_scene
from stowplan.apps.demo import objects as demo_objects
from stowplan.apps.demo import screen as demo_screen
from stowplan.apps.logging import Log
from stowplan.apps.program import on_stop_signal
from stowplan.apps.run.configuration import LoadedConfiguration
from stowplan.apps.run.service import SchedulerService
from stowplan.apps.up.command import create, delete, scheduling
from stowplan.embedded.cluster import Embedded
from stowplan.embedded.errors import ApiError
from stowplan.kube import event_loop
from stowplan.objects.pods import Pod

SETTLED_WITHIN = 50.0  # seconds
REDRAW_EVERY = 0.25  # seconds
MOVE_EVERY = 4.0  # seconds
ENDLESS = 10_000  # moves


def run() -> int:
    """Play the demo. Return 0 if each pod is bound or has a condition that says why not."""
    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        return runner.run(play(script(), Console(highlight=False, markup=False)))


def script() -> dict[str, Any]:
    """Return the cluster and the workloads of the demo."""
    text = resources.files("stowplan.apps.demo").joinpath("demo.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


async def play(script: Mapping[str, Any], console: Console) -> int:
    cluster = Embedded(seed=1)
    for group in script["nodes"]:
        for number, zone in enumerate(islice(cycle(group["zones"]), group["count"])):
            create(cluster, "v1", "Node", demo_objects.pool_node(group, f"{group['name']}-{number}", zone))
    await cluster.start()
    configured = LoadedConfiguration(*profile_loader.configured(script["configuration"]))
    try:
        with temporary_file(cluster.kubeconfig()) as kubeconfig:
            log = Log(stream=NullStream())
            async with scheduling(kubeconfig, log, default=lambda: configured) as (program, _):
                if console.is_terminal:
                    return await _play_live(console, cluster, script, program, kubeconfig)
                return await _play_once(console, cluster, script, program, kubeconfig)
    finally:
        await cluster.stop()


async def _play_once(
    console: Console, cluster: Embedded, script: Mapping[str, Any], program: SchedulerService, kubeconfig: Path
) -> int:
    """Play both scenes, and print the outcome of each pod and of a placement."""
    settled, journey, clusters = False, list[str](), list[str]()
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLED_WITHIN):
            number = await enact(cluster, script, program)
            async for node in moved(cluster, program, script["moved"]["workload"], script["moved"]["times"]):
                journey.append(node)
            await _settle(program, number)
            clusters = await fleet_scene.play(cluster, script["fleet"], kubeconfig, program.log)
            settled = True
    console.width = max(console.width, 160)
    demo_screen.summary(console, script, program, known_pods(program), journey)
    demo_screen.fleet(console, script, clusters)
    return 0 if settled else 1


async def enact(cluster: Embedded, script: Mapping[str, Any], program: SchedulerService) -> int:
    """Create a Spark driver, then all workloads, some of which compete with its executors for room, then the executors.

    Returns the number of pods.
    """
    for each in script["objects"]:
        create(cluster, each["apiVersion"], each["kind"], each)
    application = script["spark"]
    create(cluster, "v1", "Pod", demo_objects.driver(application))
    await _settle(program, 1)
    for workload in script["workloads"]:
        create(cluster, "apps/v1", "Deployment", demo_objects.deployment(workload))
    number = 1 + sum(workload["replicas"] for workload in script["workloads"])
    await _settle(program, number)
    for executor in range(application["executors"]):
        create(cluster, "v1", "Pod", demo_objects.executor(application, executor))
    await _settle(program, number + application["executors"])
    return int(number + application["executors"])


async def moved(cluster: Embedded, program: SchedulerService, workload: str, times: int) -> AsyncIterator[str]:
    """Delete the one pod of a workload so many times. Yield the nodes that the pods are bound to."""
    deleted = ""
    for left in range(times, -1, -1):
        found = None
        while found is None or found.uid == deleted or not found.node_name:
            await asyncio.sleep(0.05)
            found = next((pod for pod in known_pods(program) if pod.labels.get("app") == workload), None)
        yield found.node_name
        if left:
            deleted = found.uid
            delete(cluster, "v1", "Pod", found.name)


class NullStream(io.StringIO):
    """A stream for a log that is not shown; there may be no /dev/null."""

    def write(self, text: str) -> int:
        return len(text)


@contextmanager
def temporary_file(text: str) -> Iterator[Path]:
    """A temporary file with this text; in memory if no folder is writable."""
    try:
        file = tempfile.NamedTemporaryFile("wb", prefix="stowplan-demo-", suffix=".kubeconfig", buffering=0)  # noqa: SIM115
    except FileNotFoundError:  # there is no usable temporary folder
        number = os.memfd_create("kubeconfig")
        try:
            os.write(number, text.encode())
            yield Path(f"/proc/{os.getpid()}/fd/{number}")
        finally:
            os.close(number)
    else:
        with file:
            file.write(text.encode())
            yield Path(file.name)


async def _settle(program: SchedulerService, expected: int) -> None:
    """Wait until there are so many pods, and each is bound or has a condition that says why not."""
    while not is_settled(program, expected):
        await asyncio.sleep(0.05)


def is_settled(program: SchedulerService, expected: int) -> bool:
    pods = known_pods(program)
    answered = [pod for pod in pods if pod.node_name or pod.condition("PodScheduled") is not None]
    return len(pods) == len(answered) == expected and not program.engine_loop.engine.assumed_pods


def known_pods(program: SchedulerService) -> list[Pod]:
    """Return the pods, as the API server last reported them."""
    reflector = program.reflectors.get("Pod")
    found = reflector.cache.objects.values() if reflector is not None else ()
    return [pod for pod in found if isinstance(pod, Pod)]


async def _play_live(
    console: Console, cluster: Embedded, script: Mapping[str, Any], program: SchedulerService, kubeconfig: Path
) -> int:
    stop = asyncio.Event()
    on_stop_signal(stop.set, program.watchdog)
    journey: list[str] = []
    moving = asyncio.create_task(_keep_moving(cluster, script, program, journey))
    with Screen(console=console, auto_refresh=False, screen=False) as screen:
        while not stop.is_set():
            screen.update(
                demo_screen.drawn(program, known_pods(program), kubeconfig, console.height, script, journey),
                refresh=True,
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(REDRAW_EVERY):
                    await stop.wait()
    moving.cancel()
    await asyncio.gather(moving, return_exceptions=True)
    return 0 if journey else 1  # the first entry is made once all pods are settled


async def _keep_moving(
    cluster: Embedded, script: Mapping[str, Any], program: SchedulerService, journey: list[str]
) -> None:
    """Move a pod every few seconds."""
    await enact(cluster, script, program)
    while True:
        with suppress(ApiError):  # a user deleted it first
            async for node in moved(cluster, program, script["moved"]["workload"], ENDLESS):
                journey.append(node)
                await asyncio.sleep(MOVE_EVERY)
