"""What goes wrong around a scheduler, done to one in a cluster: afterwards every pod is bound once, and nothing
over-committed. What goes wrong with the server itself is in `test_server_faults.py`.

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

from tests.controlplane.cluster import Cluster
from tests.controlplane.fault_endings import LONG_LEASE, ROOM, SIZES, configuration, settle
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, a_deployment, apply, bound, pods, stowplan, wait_until_bound
from tests.kube.gate import Gate


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[list[str]]:
    with cluster.nodes(6, prefix="fault", capacity=ROOM) as names:
        yield names


@pytest.mark.parametrize(("number", "times"), SIZES)
def test_the_scheduler_is_killed_in_mid_flight(
    cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path, number: int, times: int
) -> None:
    config = configuration(tmp_path, namespace)
    for round_ in range(times):
        with stowplan(cluster, f"mid-flight-{round_}", "--config", config) as program:
            program.wait_until_leading()
            apply(cluster, namespace, a_deployment(f"web-{round_}", number))
            wait_until_bound(cluster, namespace, number * round_ + 1, 60, program.explain)
            program.kill()
    with stowplan(cluster, "mid-flight-last", "--config", config) as program:
        settle(cluster, namespace, number * times, program)


@pytest.mark.parametrize(("number", "times"), SIZES)
def test_of_two_replicas_the_leader_is_killed(
    cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path, number: int, times: int
) -> None:
    config = configuration(tmp_path, namespace)
    with stowplan(cluster, "replica-0", "--config", config) as leader:
        leader.wait_until_leading()
        for round_ in range(times):
            with stowplan(cluster, f"replica-{round_ + 1}", "--config", config) as standby:
                assert standby.page("/leader") == "following\n"
                apply(cluster, namespace, a_deployment(f"web-{round_}", number))
                wait_until_bound(cluster, namespace, number * round_ + 1, 60, leader.explain)
                leader.kill()
                standby.wait_until_leading()  # a lease lasts 9 s
                settle(cluster, namespace, number * (round_ + 1), standby)
                if round_ + 1 < times:
                    standby.stop()
            if round_ + 1 < times:
                leader = Stowplan(cluster.kubeconfig(), cluster.folder, f"replica-again-{round_}", "--config", config)
                leader.wait_until_leading()
        leader.kill()


@contextmanager
def gate_to(cluster: Cluster) -> Iterator[tuple[Gate, Path]]:
    """A way to the server that can be shut, and a kubeconfig that goes through it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    gate = Gate(cluster.server)
    asyncio.run_coroutine_threadsafe(gate.__aenter__(), loop).result(60)
    text = cluster.kubeconfig().read_text(encoding="utf-8").replace(cluster.server, gate.url)
    file = cluster.folder / f"gate-{gate.url.rpartition(':')[2]}.kubeconfig"
    file.write_text(text, encoding="utf-8")
    try:
        yield gate, file
    finally:
        asyncio.run_coroutine_threadsafe(gate.__aexit__(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


def test_a_partition_shorter_than_the_lease(cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path) -> None:
    config = configuration(tmp_path, namespace, LONG_LEASE)
    with (
        gate_to(cluster) as (gate, file),
        stowplan(cluster, "short-gap", "--config", config, kubeconfig=file) as program,
    ):
        program.wait_until_leading()
        apply(cluster, namespace, a_deployment("web", 40))
        until("some are bound", lambda: bound(cluster, namespace), 60, program.explain)
        gate.shut()
        apply(cluster, namespace, a_deployment("more", 20))
        until("both are there", lambda: len(pods(cluster, namespace)) == 60, 120)
        gate.open()
        settle(cluster, namespace, 60, program)


def test_a_partition_longer_than_the_lease(cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path) -> None:
    config = configuration(tmp_path, namespace)
    with gate_to(cluster) as (gate, file), stowplan(cluster, "cut-off", "--config", config, kubeconfig=file) as first:
        first.wait_until_leading()
        with stowplan(cluster, "takes-over", "--config", config) as second:
            apply(cluster, namespace, a_deployment("web", 40))
            gate.shut()
            second.wait_until_leading()
            until("who lost the lease has ended", lambda: not first.running, 120, first.explain)
            settle(cluster, namespace, 40, second)


@pytest.mark.parametrize(("number", "times"), SIZES)
def test_somebody_else_binds_the_same_pods(
    cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path, number: int, times: int
) -> None:
    config = configuration(tmp_path, namespace, LONG_LEASE)  # it is stopped for as long as the theft takes
    stolen: list[str] = []
    with stowplan(cluster, "contested", "--config", config) as program:
        program.wait_until_leading()
        stop = threading.Event()
        thief = threading.Thread(target=steal, args=(cluster, namespace, nodes, stop, stolen), daemon=True)
        thief.start()
        try:
            for round_ in range(times):
                before = len(stolen)
                os.kill(program.pid, signal.SIGSTOP)  # or the thief would not always be quick enough
                try:
                    apply(cluster, namespace, a_deployment(f"web-{round_}", number))
                    until("something is stolen", lambda: len(stolen) > before, 120)  # noqa: B023
                finally:
                    os.kill(program.pid, signal.SIGCONT)
                settle(cluster, namespace, number * (round_ + 1), program)
        finally:
            stop.set()
            thief.join(60)
        assert stolen, "no pod was contested"


def steal(cluster: Cluster, namespace: str, nodes: list[str], stop: threading.Event, stolen: list[str]) -> None:
    """Bind whatever is pending, to any node, without a thought."""
    api = cluster.api()
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
    cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path, seconds: int
) -> None:
    (tmp_path / "moody.py").write_text(PLUGIN % seconds, encoding="utf-8")
    config = configuration(tmp_path, "moody", MOODY)
    with stowplan(cluster, "moody", "--config", config, "--plugin-path", str(tmp_path)) as program:
        program.wait_until_leading()
        apply(cluster, namespace, a_deployment("raises", 5), a_deployment("sleeps", 5), a_deployment("web", 20))
        settle(cluster, namespace, 30, program)
        assert program.page("/leader") == "leading\n", "the lease is renewed while a plugin sleeps"
        log = program.log.read_text(encoding="utf-8")
        assert 'plugin \\"moody.py:Moody\\" failed at filter' in log
        assert "The lease is lost" not in log


def test_a_graceful_stop_finishes_what_it_began(
    cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    config = configuration(tmp_path, namespace)
    with stowplan(cluster, "graceful", "--config", config) as program:
        program.wait_until_leading()
        apply(cluster, namespace, a_deployment("web", 100))
        until("some are bound", lambda: bound(cluster, namespace), 60, program.explain)
        program.stop(grace=120)
    lease = cluster.api().must("GET", f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{namespace}")
    assert not lease["spec"].get("holderIdentity"), "the lease is given back"
    there = bound(cluster, namespace)
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    told = [each for each in cluster.api().must("GET", path)["items"] if each["reason"] == "Scheduled"]
    assert {each["regarding"]["name"] for each in told} >= set(there), "every binding has its event"
    with stowplan(cluster, "graceful-2", "--config", config) as program:
        settle(cluster, namespace, 100, program)
