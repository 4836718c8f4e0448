"""Our programs during the storm: two schedulers, of which one leads, and one that decides placements.

They reach the API server through a proxy that can misbehave. One that is killed is started again, as a service manager
would do it. The memory of each process is noted by its age. A scheduler that waits for the lease makes no decisions and
keeps none, so waiting and leading are two roles, and each has ten minutes to settle.
"""

from __future__ import annotations

import math
import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.attacks.survivor import memory
from tests.controlplane.deployed import DEPLOY
from tests.controlplane.place_process import Placer
from tests.controlplane.plane import ControlPlane
from tests.controlplane.stowplan_process import Stowplan

KEPT_LOGS = Path(__file__).resolve().parents[2] / "build" / "soak"  # of processes that ended by themselves
SAMPLE_EVERY = 10.0  # seconds
LEADING = "leading\n"  # what the page /leader says
LEASE_LOST = "The lease is lost"  # a leader that cannot renew it has to end, as kube-scheduler does
SETTLED = 600.0  # seconds in a role after which the memory of a process has to be flat
GROWTH = 0.15
POLICY: dict[str, Any] = {
    "apiVersion": "kosmos.io/v1alpha1",
    "kind": "WorkloadPolicy",
    "metadata": {"name": "spread-out"},
    "spec": {
        "topologyKey": "topology.kubernetes.io/zone",
        "labelSelector": {"matchLabels": {"workload-policy.kosmos.io": "spread-out"}},
        "allocationType": "Preferred",
        "allocationPolicy": [{"name": f"zone-{number}", "replicas": 100} for number in range(3)],
    },
}


def write_configuration(folder: Path) -> Path:
    """All policies, and a plain profile for everybody else."""
    found = yaml.safe_load((DEPLOY / "profiles" / "all" / "config.yaml").read_text(encoding="utf-8"))
    plain = {"queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}}
    found["profiles"].append({"schedulerName": "stowplan", "plugins": plain})
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(found), encoding="utf-8")
    return file


class Settled(NamedTuple):
    """The memory of a process in a role: after ten minutes, the most it had later, until which minute of its age."""

    after_ten_minutes: int
    most: int
    until: float


@dataclass
class Life:
    """One process, from its start to its end."""

    name: str
    program: Stowplan
    started: float
    ended_by: str = ""
    samples: list[tuple[float, int]] = field(default_factory=list)  # age in seconds, bytes
    leads_from: float | None = None  # the age at which it was first seen to lead; None: it never led

    def settled(self) -> dict[str, Settled]:
        """Its memory in each role that it had for longer than ten minutes."""
        if self.name == "place":
            phases = {"": (0.0, math.inf)}
        elif self.leads_from is None:
            phases = {"waiting": (0.0, math.inf)}
        else:
            phases = {"waiting": (0.0, self.leads_from), "leading": (self.leads_from, math.inf)}
        found = {}
        for role, (begin, end) in phases.items():
            later = [(age, size) for age, size in self.samples if begin + SETTLED <= age < end]
            if len(later) > 1:
                found[role] = Settled(later[0][1], max(size for _, size in later), later[-1][0] / 60)
        return found


class Programs(threading.Thread):
    """`kubeconfig` leads through the proxy."""

    def __init__(self, plane: ControlPlane, kubeconfig: Path, folder: Path) -> None:
        super().__init__(name="programs", daemon=True)
        self._plane, self._kubeconfig, self._folder = plane, kubeconfig, folder
        self.configuration = write_configuration(folder)
        self.lives: list[Life] = []
        self._running: dict[str, Life] = {}
        self._lock, self._ended = threading.Lock(), False
        self.problems: list[str] = []
        self.lost_leases = 0

    def begin(self) -> None:
        for name in ("scheduler-1", "scheduler-2", "place"):
            self._start(name)
        for life in self._running.values():
            life.program.wait_until_ready()
        self.start()

    def leader(self) -> str:
        """The name of the scheduler that leads now; empty if none says so."""
        for name, life in list(self._running.items()):
            if name != "place" and life.program.answers("/leader") == LEADING:
                return name
        return ""

    def memories(self) -> str:
        """The memory that each process was last seen with: what to look at when one grows."""
        last = ((name, life.samples[-1][1]) for name, life in list(self._running.items()) if life.samples)
        return ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in last)

    def kill(self, name: str) -> None:
        """As a crash would, and started again."""
        with self._lock:
            life = self._running[name]
            life.ended_by = "kill -9"
            life.program.kill()
            self._start(name)

    def run(self) -> None:
        while not self._ended:
            time.sleep(1.0)
            with self._lock:
                for name, life in [] if self._ended else list(self._running.items()):
                    self._look(name, life)

    def end(self) -> None:
        self._ended = True
        with self._lock:
            for life in self._running.values():
                life.ended_by = "the end"
                life.program.stop(grace=20)

    def _look(self, name: str, life: Life) -> None:
        if not life.program.running:
            lost = LEASE_LOST in life.program.tail(5)
            life.ended_by = "a lost lease" if lost else f"itself, with {life.program.code}"
            if not lost:
                self.problems.append(f"{name} ended with {life.program.code}; its log is in {self._kept_log(life)}")
            self.lost_leases += lost
            self._start(name)
            return
        age = time.monotonic() - life.started
        if life.leads_from is None and name != "place" and life.program.answers("/leader") == LEADING:
            life.leads_from = age
        if not life.samples or age - life.samples[-1][0] >= SAMPLE_EVERY:
            life.samples.append((age, memory(life.program)))

    def _kept_log(self, life: Life) -> str:
        """Keep the log, which has the stacks of a crash, and return where: the folder of the soak goes with it."""
        KEPT_LOGS.mkdir(parents=True, exist_ok=True)
        shutil.copy(life.program.log, KEPT_LOGS)
        return f"build/soak/{life.program.log.name}"

    def _start(self, name: str) -> None:
        if name == "place":
            program: Stowplan = Placer(self._kubeconfig, self._folder, name)
        else:
            program = Stowplan(self._kubeconfig, self._folder, name, "--config", str(self.configuration))
        life = Life(name, program, time.monotonic())
        self._running[name] = life
        self.lives.append(life)
