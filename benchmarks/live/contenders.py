"""The programs that are measured, and how each is started: as one process, with the same rights and settings."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane import build, manifests
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program

QPS = 5000
STOWPLAN, KUBE_SCHEDULER = "stowplan", "kube_scheduler"
FLOOR, FLOOR_WITH_EVENTS = "floor", "floor_with_events"


@dataclass(frozen=True)
class Contender:
    """`name` is as in the JSON. `{namespace}` in an argument becomes that of the run's pods."""

    name: str
    path: Path
    arguments: tuple[str, ...]
    writes_events: bool = True

    @property
    def title(self) -> str:
        return self.name.replace("_", " ") if self.name.startswith("floor") else self.name.replace("_", "-")

    def start(self, namespace: str, log: Path) -> Program:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        return Program(self.path, [each.format(namespace=namespace) for each in self.arguments], log)


def everybody(plane: ControlPlane) -> dict[str, Contender]:
    kubeconfig = plane.kubeconfig("scheduler")
    config = plane.folder / "bench-live.json"
    limits = {"clientConnection": {"qps": QPS, "burst": QPS}}
    config.write_text(json.dumps(manifests.scheduler_configuration(limits, kubeconfig)))
    # Neither serves metrics, writes more than warnings or keeps a lease.
    theirs = (f"--config={config}", "--secure-port=0", "--v=0")
    ours = ("run", f"--config={config}", f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0")
    python, floor = Path(sys.executable), ("-m", "benchmarks.live.floor", f"--kubeconfig={kubeconfig}")
    found = (
        Contender(KUBE_SCHEDULER, build.programs(plane.version)["kube-scheduler"], theirs),
        Contender(STOWPLAN, python, ("-m", "stowplan.apps.cli", *ours, "--replace")),
        Contender(FLOOR, python, (*floor, "--namespace={namespace}"), writes_events=False),
        Contender(FLOOR_WITH_EVENTS, python, (*floor, "--namespace={namespace}", "--events")),
    )
    return {contender.name: contender for contender in found}
