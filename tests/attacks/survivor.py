"""Is a program unharmed after an attack? It runs, it decides the next plain pod (or placement) soon, and its memory is
about what it was.

    with stowplan(plane, "attacked") as program, unharmed(plane, namespace, program):
        plane.api().must("POST", f"/api/v1/namespaces/{namespace}/pods", a_poisonous_pod())
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from tests.controlplane.cluster import Cluster
from tests.controlplane.place_process import Hub
from tests.controlplane.process import Program, until
from tests.controlplane.stowplan_process import a_live_pod

SOON = 5.0  # seconds until a plain pod has its node
SOON_AFTER_RESTART = 40.0  # seconds, where a process had to end
GROWTH = 0.2  # of the memory before the attack

_numbers = itertools.count()


@contextlib.contextmanager
def unharmed(cluster: Cluster, namespace: str, program: Program, *, within: float = SOON) -> Iterator[None]:
    """Whatever happens in the block, the scheduler runs on, binds a plain pod soon, and has not grown."""
    bind_plain_pod(cluster, namespace, program, within=60)
    before = memory(program)
    yield
    program.check()
    bind_plain_pod(cluster, namespace, program, within=within)
    wait_until_small(program, before)


@contextlib.contextmanager
def decides_unharmed(hub: Hub, program: Program, *, within: float = SOON) -> Iterator[None]:
    """Whatever happens in the block, `stowplan place` runs on, decides a plain placement soon, and has not grown."""
    decide_plain_placement(hub, program, within=60)
    before = memory(program)
    yield
    program.check()
    decide_plain_placement(hub, program, within=within)
    wait_until_small(program, before)


def bind_plain_pod(cluster: Cluster, namespace: str, program: Program, *, within: float = SOON) -> None:
    """A plain pod gets a node in time; an error, with the end of the program's log, if it does not."""
    name, pods = f"plain-{next(_numbers)}", f"/api/v1/namespaces/{namespace}/pods"
    cluster.api().must("POST", pods, a_live_pod(name, cpu="10m"))
    until(
        "a plain pod has a node",
        lambda: cluster.api().must("GET", f"{pods}/{name}")["spec"].get("nodeName", ""),
        within,
        program.tail,
    )


def decide_plain_placement(hub: Hub, program: Program, *, within: float = SOON) -> None:
    """A placement for one of the hub's clusters is decided in time."""
    name = f"plain-{next(_numbers)}"
    hub.place(name, numberOfClusters=1)
    until("a plain placement is decided", lambda: hub.chosen(name), within, program.tail)


def wait_until_small(program: Program, before: int, *, growth: float = GROWTH) -> None:
    """The program's memory is at most so much more than before. (A moment is granted: garbage may be on its way.)"""
    most = before * (1 + growth)
    until(
        f"memory is below {most / 1e6:.0f} MB", lambda: memory(program) <= most, 10,
        lambda: f"{before / 1e6:.0f} MB before, {memory(program) / 1e6:.0f} MB now",
    )  # fmt: skip


def memory(program: Program) -> int:
    """Resident bytes of the process."""
    for line in Path(f"/proc/{program.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"{program.name} has no memory: it ended")
