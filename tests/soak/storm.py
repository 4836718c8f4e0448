"""The storm itself: starts everything, waits, lets it calm down, and judges."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.attacks.proxy import Proxy
from tests.controlplane.deployed import DEPLOY
from tests.controlplane.hubs import define
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.soak.connection import Connection
from tests.soak.faults import Faults
from tests.soak.load import Load
from tests.soak.placements import Placements
from tests.soak.pod_judge import PodJudge
from tests.soak.pod_watch import PodWatch
from tests.soak.poison import Poison
from tests.soak.programs import POLICY, Programs
from tests.soak.report import SoakResult
from tests.soak.workload import Workload

NODES = 60
CAPACITY = {"cpu": "16", "memory": "64Gi", "pods": "110"}
CALM = 180.0  # seconds for what is left when the storm is over
TELL_EVERY = 10.0  # seconds
Tell = Callable[[str], None]


def soak(minutes: float, rate: float, seed: int, tell: Tell) -> SoakResult:
    """Run a storm of so many minutes, with so many pods a second."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stowplan-soak-")))
        plane = stack.enter_context(ControlPlane(benchmark=True, apiserver_flags=["--event-ttl=5m"]))
        stack.enter_context(plane.nodes(NODES, prefix="soak", capacity=CAPACITY))
        for crds in (DEPLOY / "crds", DEPLOY / "crds" / "kubenexus"):
            plane.kubectl("apply", "--kustomize", str(crds))
        define(plane)
        namespace = stack.enter_context(plane.namespace("soak"))
        until("the policy is there", lambda: _apply_policy(plane, namespace), 60)
        proxy = stack.enter_context(Proxy(plane.server))
        programs = Programs(plane, proxy.kubeconfig(plane.kubeconfig(), folder / "kubeconfig"), folder)
        stack.callback(programs.end)
        programs.begin()
        found = _storm(plane, proxy, programs, namespace, minutes, rate, seed, tell)
        tell(found.table())  # before anything else can go wrong
        return found


def _storm(
    plane: ControlPlane, proxy: Proxy, programs: Programs, namespace: str, minutes: float, rate: float, seed: int,
    tell: Tell,
) -> SoakResult:  # fmt: skip
    def connect() -> Connection:
        return Connection(plane.server, plane.tokens["admin"], plane.ca)

    offered = {f"soak-{number}": (int(CAPACITY["cpu"]) * 1000, int(CAPACITY["pods"])) for number in range(NODES)}
    judge = PodJudge(offered)
    watch = PodWatch(plane.api(), namespace, judge)
    load, poison = Load(connect, namespace, Workload(seed), watch), Poison(connect, namespace)
    placements, faults = Placements(connect, namespace), Faults(plane, proxy, programs, minutes * 60)
    placements.make_fleet()
    start = time.monotonic()
    for each in (watch, poison, placements, faults):
        each.start()
    load.start(rate)
    while (elapsed := time.monotonic() - start) < minutes * 60:
        time.sleep(TELL_EVERY)
        there, bound = watch.counts()
        tell(
            f"{elapsed / 60:5.1f} min: {load.created} created, {there} there, {bound} bound, "
            f"{placements.decided} placements, {faults.now or 'no fault'}; {programs.memories()}"
        )
    faults.end()
    load.stop_creating()
    faults.join()
    deadline = time.monotonic() + CALM
    while time.monotonic() < deadline and (
        load.creating or watch.unbound() or placements.missing() or watch.partial_groups()
    ):
        time.sleep(1.0)
    placements.end()
    poison.end()
    poison.join()
    found = SoakResult(
        commit=_commit(), minutes=minutes, created=load.created, bound=judge.bound,
        waits=judge.waits, groups_in_part=watch.partial_groups(), never_bound=watch.unbound(),
        placements=placements.decided, poison=poison.sent, faults=dict(faults.done),
        lost_leases=programs.lost_leases, lives=programs.lives,
        problems=[*judge.problems, *placements.problems, *programs.problems],
    )  # fmt: skip
    found.problems += [f"placement {name} was never decided" for name in placements.missing()]
    load.end()
    watch.end()
    return found


def _apply_policy(plane: ControlPlane, namespace: str) -> bool:
    """The server takes it once its definition is served."""
    path = f"/apis/kosmos.io/v1alpha1/namespaces/{namespace}/workloadpolicies"
    return plane.api().ask("POST", path, json.loads(json.dumps(POLICY))).status in (201, 409)


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
