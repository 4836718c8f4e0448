"""Kill -9 of the scheduler while gangs are created and while they are bound: none is left by half, and no room is lost.

ReplicaSets make the gangs, so that members that were evicted come again and the end is really reached: every gang
whole where there is room for all; where there is room for half, half of them whole and the others wholly pending.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import MOSTLY_REAL
from tests.controlplane.pod_groups import Starter, coscheduling, gang, kept_gang, running, settled
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, apply, bound, check_nothing_over_committed, pods

SIZE = 8
POLICIES = ["Complete", "Evict"]
ROOM = [pytest.param(1.0, id="room for all"), pytest.param(0.5, id="room for half")]


@pytest.fixture(params=MOSTLY_REAL)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    found: Cluster = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize(("policy", "share"), [("Complete", 0.5), ("Evict", 1.0)])
def test_kills_leave_no_gang_by_half(
    cluster: Cluster, namespace: str, tmp_path: Path, policy: str, share: float
) -> None:
    play(cluster, namespace, tmp_path, policy, share, gangs=8, kills=3)


@pytest.mark.controlplane
@pytest.mark.full
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("share", ROOM)
def test_many_kills_leave_none_of_many_gangs_by_half(
    plane: Cluster, namespace: str, tmp_path: Path, policy: str, share: float
) -> None:
    found = play(plane, namespace, tmp_path, policy, share, gangs=100, kills=12)
    assert found, "not one of the kills fell between the first and the last binding of a gang"


def play(
    cluster: Cluster, namespace: str, folder: Path, policy: str, share: float, gangs: int, kills: int
) -> Counter[str]:
    """The whole story; the gangs that a kill left by half."""
    whole, draw = int(gangs * share), random.Random(gangs)
    with (
        cluster.nodes(whole, prefix="gang", capacity={"cpu": str(SIZE)}),
        coscheduling(cluster, folder, {"onPartialBind": policy}) as scheduler,
    ):
        early, late = range(gangs // 4), range(gangs // 4, gangs)
        create_and_kill(cluster, namespace, scheduler, early, kills // 2, draw)
        hit = bind_and_kill(cluster, namespace, scheduler, late, kills - kills // 2, draw)
        program = scheduler.ready()
        until(
            f"{whole} gangs are whole and the others are not there at all",
            lambda: sorted(running(cluster, namespace).values()) == [SIZE] * whole,
            180,
            lambda: f"{running(cluster, namespace)}\n{program.tail(60)}",
        )
        assert sorted(settled(cluster, namespace).values()) == [SIZE] * whole
        check_nothing_over_committed(cluster)
        check_nothing_is_left(cluster, namespace, program)
    return hit


def create_and_kill(
    cluster: Cluster, namespace: str, scheduler: Starter, numbers: range, kills: int, draw: random.Random
) -> None:
    """The scheduler is at work, and dies at random moments, while gangs come one by one."""
    scheduler.ready()
    for number in numbers:
        apply(cluster, namespace, kept_gang(f"g{number}", SIZE))
        if number % max(len(numbers) // kills, 1) == 0:
            time.sleep(draw.random() * 0.4)
            scheduler.start()


def bind_and_kill(
    cluster: Cluster, namespace: str, scheduler: Starter, numbers: range, kills: int, draw: random.Random
) -> Counter[str]:
    """All the others are there when it starts, and each time it dies soon after its first bindings."""
    scheduler.kill()
    apply(cluster, namespace, *(kept_gang(f"g{number}", SIZE) for number in numbers))
    until("all pods exist", lambda: len(pods(cluster, namespace)) >= numbers.stop * SIZE, 120)
    hit: Counter[str] = Counter()
    for _ in range(kills):
        if sum(running(cluster, namespace).values()) == sum(room(cluster)):
            break  # there is nothing more to bind
        program = scheduler.ready()
        wait_for_the_first_binding(program)
        time.sleep(draw.random() * 0.05)
        scheduler.kill()
        hit.update(name for name, count in running(cluster, namespace).items() if count != SIZE)
    return hit


def wait_for_the_first_binding(program: Stowplan, seconds: float = 60) -> None:
    """Without the pauses that `until` makes: a few milliseconds are all that a gang's bindings take."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if program.metric("scheduler_schedule_attempts_total", result="scheduled"):
            return
        time.sleep(0.002)
    raise AssertionError(f"nothing is bound\n{program.tail(60)}")


def check_nothing_is_left(cluster: Cluster, namespace: str, program: Stowplan) -> None:
    """No pod is assumed or lost; and once all groups are deleted, a group that needs every core fits."""
    size = {"type": "assumed_pods"}
    until("no pod is assumed", lambda: program.metric("scheduler_cache_size", **size) == 0, 30, program.explain)
    assert program.metric("scheduler_cache_size", type="pods") == len(bound(cluster, namespace))
    path = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
    for owner in cluster.api().must("GET", path)["items"]:  # one by one: a request for all could take too long
        cluster.api().must("DELETE", f"{path}/{owner['metadata']['name']}?propagationPolicy=Background")
    until("all pods are gone", lambda: not pods(cluster, namespace), 180)
    cores = sum(room(cluster))
    apply(cluster, namespace, *gang("last", cores, cpu="1"))
    until("it runs", lambda: dict(running(cluster, namespace)) == {"last": cores}, 60, program.explain)


def room(cluster: Cluster) -> list[int]:
    """The cores of each node of ours."""
    nodes = cluster.api().must("GET", "/api/v1/nodes")["items"]
    return [int(node["status"]["allocatable"]["cpu"]) for node in nodes if node["metadata"]["name"].startswith("gang-")]
