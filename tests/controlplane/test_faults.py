"""What goes wrong in real clusters, done to a real one: afterwards every pod is bound once, and nothing over-committed.

Each fault comes in two sizes: a short one for every run, a long one (`full`) that repeats it under more load.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.ours import (
    Stowplan,
    a_deployment,
    apply,
    bound,
    check_nothing_over_committed,
    pods,
    stowplan,
    wait_until_bound,
)
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.kube.gate import Gate

pytestmark = pytest.mark.controlplane

SIZES = [pytest.param(60, 1, id="short"), pytest.param(150, 3, id="long", marks=pytest.mark.full)]
ROOM = {"cpu": "32", "pods": "500"}
QUICK_LEASE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 9s, renewDeadline: 7s, retryPeriod: 1s, resourceName: %s}
profiles: [{schedulerName: stowplan}]
"""


@pytest.fixture
def nodes(plane: ControlPlane) -> Iterator[list[str]]:
    with plane.nodes(6, prefix="fault", capacity=ROOM) as names:
        yield names


def configuration(folder: Path, name: str, text: str = QUICK_LEASE) -> str:
    file = folder / f"{name}.yaml"
    file.write_text(text % name if "%s" in text else text, encoding="utf-8")
    return str(file)


def settle(plane: ControlPlane, namespace: str, number: int, program: Stowplan) -> None:
    """All is well in the end."""
    wait_until_bound(plane, namespace, number, 180, program.explain)
    until("nobody is too many", lambda: len(pods(plane, namespace)) == number, 60)  # a controller may have miscounted
    program.check()
    assert program.page("/healthz") == "ok"
    check_nothing_over_committed(plane)
    uids = [pod["metadata"]["uid"] for pod in pods(plane, namespace)]
    assert len(bound(plane, namespace)) == len(uids) == len(set(uids)) == number


@pytest.mark.parametrize(("number", "times"), SIZES)
def test_the_api_server_is_killed_and_comes_back(
    plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path, number: int, times: int
) -> None:
    with stowplan(plane, "killed-server", "--config", configuration(tmp_path, namespace)) as program:
        for round_ in range(times):
            apply(plane, namespace, a_deployment(f"web-{round_}", number))
            until("some are bound", lambda: bound(plane, namespace), 60, program.explain)
            plane.kill_apiserver()
            plane.restart_apiserver()
            if not program.running:  # it may have lost its lease; whoever runs it starts it anew
                break
        if not program.running:
            with stowplan(plane, "killed-server-2", "--config", configuration(tmp_path, namespace)) as second:
                settle(plane, namespace, number * (round_ + 1), second)
        else:
            settle(plane, namespace, number * times, program)


@pytest.mark.parametrize(("number", "times"), SIZES)
def test_history_is_compacted_under_its_watches(
    plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path, number: int, times: int
) -> None:
    long_lease = QUICK_LEASE.replace("leaderElect: true", "leaderElect: false")
    with stowplan(plane, "compacted", "--config", configuration(tmp_path, namespace, long_lease)) as program:
        for round_ in range(times):
            apply(plane, namespace, a_deployment(f"web-{round_}", number))
            plane.compact_etcd()
            plane.restart_apiserver()  # its own cache of the past goes with it
        settle(plane, namespace, number * times, program)


@pytest.mark.parametrize(("number", "times"), SIZES)
def test_the_scheduler_is_killed_in_mid_flight(
    plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path, number: int, times: int
) -> None:
    config = configuration(tmp_path, namespace)
    for round_ in range(times):
        with stowplan(plane, f"mid-flight-{round_}", "--config", config) as program:
            program.wait_until_leading()
            apply(plane, namespace, a_deployment(f"web-{round_}", number))
            wait_until_bound(plane, namespace, number * round_ + 1, 60, program.explain)
            program.kill()
    with stowplan(plane, "mid-flight-last", "--config", config) as program:
        settle(plane, namespace, number * times, program)


@pytest.mark.parametrize(("number", "times"), SIZES)
def test_of_two_replicas_the_leader_is_killed(
    plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path, number: int, times: int
) -> None:
    config = configuration(tmp_path, namespace)
    with stowplan(plane, "replica-0", "--config", config) as leader:
        leader.wait_until_leading()
        for round_ in range(times):
            with stowplan(plane, f"replica-{round_ + 1}", "--config", config) as standby:
                assert standby.page("/leader") == "following\n"
                apply(plane, namespace, a_deployment(f"web-{round_}", number))
                wait_until_bound(plane, namespace, number * round_ + 1, 60, leader.explain)
                leader.kill()
                standby.wait_until_leading(40)  # a lease lasts 9 s
                settle(plane, namespace, number * (round_ + 1), standby)
                if round_ + 1 < times:
                    standby.stop()
            if round_ + 1 < times:
                leader = Stowplan(plane.kubeconfig(), plane.folder, f"replica-again-{round_}", "--config", config)
                leader.wait_until_leading()
        leader.kill()


@contextmanager
def gate_to(plane: ControlPlane) -> Iterator[tuple[Gate, Path]]:
    """A way to the server that can be shut, and a kubeconfig that goes through it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    gate = Gate(plane.server)
    asyncio.run_coroutine_threadsafe(gate.__aenter__(), loop).result(10)
    text = plane.kubeconfig().read_text(encoding="utf-8").replace(plane.server, gate.url)
    file = plane.folder / f"gate-{gate.url.rpartition(':')[2]}.kubeconfig"
    file.write_text(text, encoding="utf-8")
    try:
        yield gate, file
    finally:
        asyncio.run_coroutine_threadsafe(gate.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


def test_a_partition_shorter_than_the_lease(
    plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    config = configuration(tmp_path, namespace, QUICK_LEASE.replace("9s", "30s").replace("7s", "25s"))
    with gate_to(plane) as (gate, file), stowplan(plane, "short-gap", "--config", config, kubeconfig=file) as program:
        program.wait_until_leading()
        apply(plane, namespace, a_deployment("web", 40))
        until("some are bound", lambda: bound(plane, namespace), 60, program.explain)
        gate.shut()
        apply(plane, namespace, a_deployment("more", 20))
        until("both are there", lambda: len(pods(plane, namespace)) == 60, 30)
        gate.open()
        settle(plane, namespace, 60, program)


def test_a_partition_longer_than_the_lease(
    plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    config = configuration(tmp_path, namespace)
    with gate_to(plane) as (gate, file), stowplan(plane, "cut-off", "--config", config, kubeconfig=file) as first:
        first.wait_until_leading()
        with stowplan(plane, "takes-over", "--config", config) as second:
            apply(plane, namespace, a_deployment("web", 40))
            gate.shut()
            second.wait_until_leading(40)
            until("who lost the lease has ended", lambda: not first.running, 40, first.explain)
            settle(plane, namespace, 40, second)


@pytest.mark.parametrize(("number", "times"), SIZES)
def test_somebody_else_binds_the_same_pods(
    plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path, number: int, times: int
) -> None:
    config = configuration(tmp_path, namespace)
    stolen: list[str] = []
    with stowplan(plane, "contested", "--config", config) as program:
        program.wait_until_leading()
        stop = threading.Event()
        thief = threading.Thread(target=steal, args=(plane, namespace, nodes, stop, stolen), daemon=True)
        thief.start()
        try:
            for round_ in range(times):
                before = len(stolen)
                os.kill(program.pid, signal.SIGSTOP)  # or the thief would not always be quick enough
                try:
                    apply(plane, namespace, a_deployment(f"web-{round_}", number))
                    until("something is stolen", lambda: len(stolen) > before, 30)  # noqa: B023
                finally:
                    os.kill(program.pid, signal.SIGCONT)
                settle(plane, namespace, number * (round_ + 1), program)
        finally:
            stop.set()
            thief.join(30)
        assert stolen, "nobody was contested"


def steal(plane: ControlPlane, namespace: str, nodes: list[str], stop: threading.Event, stolen: list[str]) -> None:
    """Bind whatever is pending, to any node, without a thought."""
    api = plane.api()
    while not stop.is_set():
        path = f"/api/v1/namespaces/{namespace}/pods?fieldSelector=spec.nodeName%3D"
        waiting = api.must("GET", path)["items"]
        for at, pod in enumerate(waiting[::2]):
            name = pod["metadata"]["name"]
            target = {"kind": "Node", "name": nodes[at % len(nodes)]}
            body: dict[str, Any] = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            if api.ask("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", body).status == 201:
                stolen.append(name)


PLUGIN = '''
import time

class Moody:
    """Raises for some pods and takes its time for others."""

    def filter(self, pod, nodes):
        if pod.labels.get("app") == "raises" and not hasattr(self, "calm"):
            self.calm = True
            raise KeyError("oops")
        if pod.labels.get("app") == "sleeps" and not hasattr(self, "awake"):
            self.awake = True
            time.sleep(%s)
        return ()
'''
MOODY = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 9s, renewDeadline: 7s, retryPeriod: 1s, resourceName: moody}
profiles:
  - schedulerName: stowplan
    plugins: {filter: {enabled: [{name: "moody.py:Moody"}]}}
"""


@pytest.mark.parametrize("seconds", [pytest.param(12, id="short"), pytest.param(30, id="long", marks=pytest.mark.full)])
def test_a_plugin_that_raises_and_one_that_sleeps_longer_than_the_lease(
    plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path, seconds: int
) -> None:
    (tmp_path / "moody.py").write_text(PLUGIN % seconds, encoding="utf-8")
    config = configuration(tmp_path, "moody", MOODY)
    with stowplan(plane, "moody", "--config", config) as program:
        program.wait_until_leading()
        apply(plane, namespace, a_deployment("raises", 5), a_deployment("sleeps", 5), a_deployment("web", 20))
        settle(plane, namespace, 30, program)
        assert program.page("/leader") == "leading\n", "the lease is renewed while a plugin sleeps"
        log = program.log.read_text(encoding="utf-8")
        assert 'plugin \\"moody.py:Moody\\" failed at filter' in log
        assert "The lease is lost" not in log


def test_a_graceful_stop_finishes_what_it_began(
    plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    config = configuration(tmp_path, namespace)
    with stowplan(plane, "graceful", "--config", config) as program:
        program.wait_until_leading()
        apply(plane, namespace, a_deployment("web", 100))
        until("some are bound", lambda: bound(plane, namespace), 60, program.explain)
        program.stop(grace=30)
    lease = plane.api().must("GET", f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{namespace}")
    assert not lease["spec"].get("holderIdentity"), "the lease is given back"
    there = bound(plane, namespace)
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    told = [each for each in plane.api().must("GET", path)["items"] if each["reason"] == "Scheduled"]
    assert {each["regarding"]["name"] for each in told} >= set(there), "every binding has its event"
    with stowplan(plane, "graceful-2", "--config", config) as program:
        settle(plane, namespace, 100, program)
