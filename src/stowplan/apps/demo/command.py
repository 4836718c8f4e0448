"""`stowplan demo`: an embedded cluster, workloads, the scheduler at work in it, and the reasons on screen.

On a terminal it is drawn live and stays up until Ctrl-C, for kubectl to look around in. In a pipe it prints what became
of every pod and ends. It needs Python and nothing else; the cluster and its workloads are data (`demo.yaml`).
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
from stowplan.apps.program import when_told_to_stop
from stowplan.apps.run.reload import LoadedConfiguration
from stowplan.apps.run.service import SchedulerService
from stowplan.apps.up.command import create, delete, scheduling
from stowplan.embedded.cluster import Embedded
from stowplan.embedded.errors import ApiError
from stowplan.kube import event_loop
from stowplan.objects.pods import Pod

SETTLED_WITHIN = 50.0  # seconds
REDRAWN_EVERY = 0.25
MOVED_EVERY, ONE_BY_ONE = 4.0, 10_000


def run() -> int:
    """0 if every pod was placed or told why not."""
    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        return runner.run(play(script(), Console(highlight=False, markup=False)))


def script() -> dict[str, Any]:
    """What is played."""
    text = resources.files("stowplan.apps").joinpath("demo.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


async def play(script: Mapping[str, Any], console: Console) -> int:
    cluster = Embedded(seed=1)
    for group in script["nodes"]:
        for number, zone in enumerate(islice(cycle(group["zones"]), group["count"])):
            create(cluster, "v1", "Node", demo_objects.of_group(group, f"{group['name']}-{number}", zone))
    await cluster.start()
    configured = LoadedConfiguration(*profile_loader.configured(script["configuration"]))
    try:
        with written(cluster.kubeconfig()) as kubeconfig:
            log = Log(stream=Nowhere())
            async with scheduling(kubeconfig, log, without_file=lambda: configured) as (program, _):
                if console.is_terminal:
                    return await _watch(console, cluster, script, program, kubeconfig)
                return await _tell(console, cluster, script, program, kubeconfig)
    finally:
        await cluster.stop()


async def _tell(
    console: Console, cluster: Embedded, script: Mapping[str, Any], program: SchedulerService, kubeconfig: Path
) -> int:
    """What became of every pod, and of a placement."""
    settled, journey, clusters = False, list[str](), list[str]()
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLED_WITHIN):
            number = await enact(cluster, script, program)
            async for place in moved(cluster, program, script["moved"]["workload"], script["moved"]["times"]):
                journey.append(place)
            await _settle(program, number)
            clusters = await fleet_scene.scene(cluster, script["fleet"], kubeconfig, program.running.log)
            settled = True
    console.width = max(console.width, 160)
    demo_screen.summary(console, script, program, told(program), journey)
    demo_screen.fleet(console, script, clusters)
    return 0 if settled else 1


async def enact(cluster: Embedded, script: Mapping[str, Any], program: SchedulerService) -> int:
    """A Spark driver comes first, then all workloads, some of which want its executors' room, and then these; how many
    pods there are in all.
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
    """The nodes to which a workload's one pod goes, each time that it is deleted."""
    gone = ""
    for left in range(times, -1, -1):
        found = None
        while found is None or found.uid == gone or not found.node_name:
            await asyncio.sleep(0.05)
            found = next((pod for pod in told(program) if pod.labels.get("app") == workload), None)
        yield found.node_name
        if left:
            gone = found.uid
            delete(cluster, "v1", "Pod", found.name)


class Nowhere(io.StringIO):
    """For a log that would spoil the picture; there may be no /dev/null."""

    def write(self, text: str) -> int:
        return len(text)


@contextmanager
def written(text: str) -> Iterator[Path]:
    """A file with this text for as long as it is needed; in memory where no folder can be written to."""
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
    """Wait until there are so many pods, and every one is placed or told why not."""
    while not is_settled(program, expected):
        await asyncio.sleep(0.05)


def is_settled(program: SchedulerService, expected: int) -> bool:
    pods = told(program)
    live = program.running.live
    said = [pod for pod in pods if pod.node_name or pod.condition("PodScheduled") is not None]
    return live is not None and len(pods) == len(said) == expected and not live.engine.assumed_pods


def told(program: SchedulerService) -> list[Pod]:
    """The pods as the API server told of them."""
    reflector = program.running.reflectors.get("Pod")
    found = reflector.known.objects.values() if reflector is not None else ()
    return [pod for pod in found if isinstance(pod, Pod)]


async def _watch(
    console: Console, cluster: Embedded, script: Mapping[str, Any], program: SchedulerService, kubeconfig: Path
) -> int:
    stop = asyncio.Event()
    when_told_to_stop(stop.set)
    journey: list[str] = []
    moving = asyncio.create_task(_keep_moving(cluster, script, program, journey))
    with Screen(console=console, auto_refresh=False, screen=False) as screen:
        while not stop.is_set():
            screen.update(
                demo_screen.drawn(program, told(program), kubeconfig, console.height, script, journey), refresh=True
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(REDRAWN_EVERY):
                    await stop.wait()
    moving.cancel()
    await asyncio.gather(moving, return_exceptions=True)
    return 0 if journey else 1  # the first entry is made once all is settled; what people try after that is theirs


async def _keep_moving(
    cluster: Embedded, script: Mapping[str, Any], program: SchedulerService, journey: list[str]
) -> None:
    """Once every few seconds, for somebody who watches."""
    await enact(cluster, script, program)
    while True:
        with suppress(ApiError):  # somebody else deleted it first
            async for place in moved(cluster, program, script["moved"]["workload"], ONE_BY_ONE):
                journey.append(place)
                await asyncio.sleep(MOVED_EVERY)
