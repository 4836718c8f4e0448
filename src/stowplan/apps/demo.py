"""`stowplan demo`: an embedded cluster, workloads, the scheduler at work in it, and the reasons on screen.

On a terminal it is drawn live and stays up until Ctrl-C, for kubectl to look around in. In a pipe it prints what became
of every pod and ends. It needs Python and nothing else; the cluster and its workloads are data (`demo.yaml`).
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import resources
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.live import Live as Screen

from stowplan.apps import demo_screen
from stowplan.apps.logs import Log
from stowplan.apps.scheduler import Program, when_told_to_stop
from stowplan.apps.up import create, node, scheduling
from stowplan.embedded.cluster import Embedded
from stowplan.kube import loops
from stowplan.objects.pods import Pod

SETTLED_WITHIN = 50.0  # seconds
REDRAWN_EVERY = 0.25


def run() -> int:
    """0 if every pod was placed or told why not."""
    script = yaml.safe_load(resources.files("stowplan.apps").joinpath("demo.yaml").read_text(encoding="utf-8"))
    with asyncio.Runner(loop_factory=loops.new) as runner:
        return runner.run(play(script, Console(highlight=False, markup=False)))


async def play(script: Mapping[str, Any], console: Console) -> int:
    cluster = Embedded(seed=1)
    for group in script["nodes"]:
        for number, zone in enumerate(islice(cycle(group["zones"]), group["count"])):
            create(cluster, "v1", "Node", of_group(group, f"{group['name']}-{number}", zone))
    await cluster.start()
    try:
        with written(cluster.kubeconfig()) as kubeconfig, Path(os.devnull).open("w", encoding="utf-8") as nowhere:
            async with scheduling(kubeconfig, Log(stream=nowhere)) as (program, _):
                for workload in script["workloads"]:
                    create(cluster, "apps/v1", "Deployment", deployment(workload))
                expected = sum(workload["replicas"] for workload in script["workloads"])
                if console.is_terminal:
                    return await _watch(console, program, kubeconfig, expected)
                settled = await _settle(program, expected)
                console.width = max(console.width, 160)
                demo_screen.summary(console, script, program, told(program))
                return 0 if settled else 1
    finally:
        await cluster.stop()


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


async def _settle(program: Program, expected: int) -> bool:
    """Wait until every pod is placed or told why not."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLED_WITHIN):
            while not is_settled(program, expected):
                await asyncio.sleep(0.05)
            return True
    return False


def is_settled(program: Program, expected: int) -> bool:
    pods = told(program)
    live = program.running.live
    said = [pod for pod in pods if pod.node_name or pod.condition("PodScheduled") is not None]
    return live is not None and len(pods) == len(said) == expected and not live.engine.placings


def told(program: Program) -> list[Pod]:
    """The pods as the API server told of them."""
    reflector = program.running.reflectors.get("Pod")
    found = reflector.known.objects.values() if reflector is not None else ()
    return [pod for pod in found if isinstance(pod, Pod)]


async def _watch(console: Console, program: Program, kubeconfig: Path, expected: int) -> int:
    stop = asyncio.Event()
    when_told_to_stop(stop.set)
    with Screen(console=console, auto_refresh=False, screen=False) as screen:
        while not stop.is_set():
            screen.update(demo_screen.drawn(program, told(program), kubeconfig, console.height), refresh=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(REDRAWN_EVERY):
                    await stop.wait()
    return 0 if is_settled(program, expected) else 1


# -- the script's objects


def of_group(group: Mapping[str, Any], name: str, zone: str) -> dict[str, Any]:
    offered = {"cpu": group["cpu"], "memory": group["memory"]}
    if "gpus" in group:
        offered["nvidia.com/gpu"] = group["gpus"]
    return node(name, zone, taints=[group["taint"]] if "taint" in group else [], **offered)


def deployment(workload: Mapping[str, Any]) -> dict[str, Any]:
    labels = {"app": workload["name"]}
    return {
        "metadata": {"name": workload["name"]},
        "spec": {
            "replicas": workload["replicas"],
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": workload["pod"]},
        },
    }
