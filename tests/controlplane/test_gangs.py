"""Gangs in the embedded cluster and on a real one: who runs, that none runs by half, and that kills change neither."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.controlplane.ours import Stowplan, a_live_pod, apply, check_nothing_over_committed, pods
from tests.controlplane.process import until

GROUP = "pod-group.scheduling.kubenexus.io"
QUIET = 3.0  # seconds in which nothing happens any more


# The real one is what counts here; the embedded one has its turn in the long run.
MOSTLY_REAL = [
    pytest.param("embedded", id="embedded", marks=pytest.mark.full),
    pytest.param("plane", id="on Kubernetes 1.36", marks=pytest.mark.controlplane),
]


@pytest.fixture(params=MOSTLY_REAL)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    found: Cluster = request.getfixturevalue(request.param)
    return found


@contextmanager
def coscheduling(
    cluster: Cluster, folder: Path, args: dict[str, Any] | None = None
) -> Iterator[Callable[[], Stowplan]]:
    """Start a scheduler that knows of gangs, as often as wanted; the last one goes with the test."""
    plugins = {
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
    }
    profile: dict[str, Any] = {"schedulerName": "stowplan", "plugins": plugins}
    profile["pluginConfig"] = [{"name": "Coscheduling", "args": args or {}}]
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }
    config = folder / "gangs.yaml"
    config.write_text(yaml.safe_dump(document))
    programs: list[Stowplan] = []

    def start() -> Stowplan:
        if programs:
            programs.pop().kill()
        program = Stowplan(cluster.kubeconfig(), cluster.folder, "gangs", "--config", str(config))
        programs.append(program)
        return program

    try:
        yield start
    finally:
        for program in programs:
            program.kill()


def gang(name: str, count: int, needed: int | None = None, **spec: Any) -> list[dict[str, Any]]:
    labels = {f"{GROUP}/name": name, f"{GROUP}/min-available": str(count if needed is None else needed)}
    found = [a_live_pod(f"{name}-{at}", **spec) for at in range(count)]
    for pod in found:
        pod["metadata"]["labels"] = labels
    return found


def asking(memory: int, pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for pod in pods:
        pod["spec"]["containers"][0]["resources"] = {"requests": {"memory": str(memory)}}
    return pods


def running(cluster: Cluster, namespace: str) -> Counter[str]:
    """How many pods of each gang have a node, and pods without one by their names."""
    found: Counter[str] = Counter()
    for pod in pods(cluster, namespace):
        if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]:
            found[pod["metadata"].get("labels", {}).get(f"{GROUP}/name", pod["metadata"]["name"])] += 1
    return found


def settled(cluster: Cluster, namespace: str, seconds: float = 60) -> Counter[str]:
    """What runs when nothing has changed for a while."""
    before, since, end = running(cluster, namespace), time.monotonic(), time.monotonic() + seconds
    while time.monotonic() < end and time.monotonic() - since < QUIET:
        time.sleep(0.3)
        now = running(cluster, namespace)
        if now != before:
            before, since = now, time.monotonic()
    return before


def interleaved(*gangs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    longest = max(map(len, gangs))
    return [each[at] for at in range(longest) for each in gangs if at < len(each)]


HIGH, MIDDLE = ({"priorityClassName": name} for name in ("gang-high", "gang-middle"))
CLASSES = [
    {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
        "preemptionPolicy": "Never",
    }
    for name, value in (("gang-high", 10_000), ("gang-middle", 100))
]  # fmt: skip

SITUATIONS = {
    "equal gangs one after the other": (
        [*asking(50, gang("a", 3)), *asking(100, gang("b", 4))],
        [{"a": 3}],
    ),
    "equal gangs interleaved": (
        interleaved(asking(50, gang("a", 3)), asking(100, gang("b", 4))),
        [{"a": 3}],
    ),
    "a gang with too few members": (
        [*asking(50, gang("a", 3, 4)), *asking(100, [a_live_pod("r0"), a_live_pod("r1")])],
        [{"r0": 1, "r1": 1}],
    ),
    "the more important gang": (
        [*asking(100, gang("a", 3, **MIDDLE)), *asking(50, gang("b", 3, **HIGH))],
        [{"b": 3}],
    ),
    "important pods against a gang": (
        [*asking(100, [a_live_pod(f"r{at}", **HIGH) for at in range(3)]), *asking(50, gang("b", 3, **MIDDLE))],
        [{"r0": 1, "r1": 1, "r2": 1}],
    ),
    "three gangs interleaved": (
        interleaved(asking(50, gang("a", 3)), asking(100, gang("b", 4)), asking(400, gang("c", 2))),
        [{"a": 3}],
    ),
    "one that never fits and a small one": (
        [*asking(100, gang("a", 6)), *asking(100, gang("b", 2))],
        [{"b": 2}],
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_who_runs_where_300_bytes_are_free(cluster: Cluster, namespace: str, tmp_path: Path, situation: str) -> None:
    """All pods exist before the scheduler starts, so that it sees them at once."""
    manifests, expected = SITUATIONS[situation]
    with (
        cluster.having(*CLASSES),
        cluster.nodes(1, prefix="gang", capacity={"memory": "300"}),
        coscheduling(cluster, tmp_path) as start,
    ):
        apply(cluster, namespace, *manifests)
        start().wait_until_ready()
        until(f"it is one of {expected}", lambda: dict(running(cluster, namespace)) in expected, 60)
        assert dict(settled(cluster, namespace)) in expected


def test_of_two_gangs_of_ten_one_runs_whole(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    check_that_one_of_two_runs_whole(cluster, namespace, tmp_path, times=3)


@pytest.mark.controlplane
@pytest.mark.full
def test_of_two_gangs_of_ten_one_runs_whole_again_and_again(plane: Cluster, namespace: str, tmp_path: Path) -> None:
    check_that_one_of_two_runs_whole(plane, namespace, tmp_path, times=50)


def check_that_one_of_two_runs_whole(cluster: Cluster, namespace: str, tmp_path: Path, times: int) -> None:
    with cluster.nodes(10, prefix="gang", capacity={"cpu": "1"}), coscheduling(cluster, tmp_path) as start:
        program = start()
        program.wait_until_ready()
        for number in range(times):
            names = [f"a{number}", f"b{number}"]
            apply(cluster, namespace, *interleaved(*(gang(name, 10, cpu="1") for name in names)))
            until(
                "one of them runs",
                lambda: max(running(cluster, namespace).values(), default=0) == 10,
                60,
                program.explain,
            )
            (first,) = settled_gangs(cluster, namespace)
            cluster.kubectl(
                "-n",
                namespace,
                "delete",
                "pods",
                "-l",
                f"{GROUP}/name={first}",
                "--wait=false",
                "--grace-period=0",
                "--force",
            )
            (second,) = set(names) - {first}
            until(
                "then the other one",
                lambda name=second: dict(running(cluster, namespace)) == {name: 10},
                60,
                program.explain,
            )
            cluster.kubectl("-n", namespace, "delete", "pods", "--all", "--wait=true", "--grace-period=0", "--force")


def settled_gangs(cluster: Cluster, namespace: str) -> list[str]:
    """Those that run, for two seconds on: each whole."""
    for _ in range(10):
        found = running(cluster, namespace)
        assert set(found.values()) == {10}, found
        time.sleep(0.2)
    return list(found)


POLICIES = ["Complete", "Evict"]
ROOM = [pytest.param(1.0, id="room for all"), pytest.param(0.5, id="room for half")]


@pytest.mark.parametrize(("policy", "share"), [("Complete", 0.5), ("Evict", 1.0)])
def test_kills_leave_no_gang_by_half(
    cluster: Cluster, namespace: str, tmp_path: Path, policy: str, share: float
) -> None:
    check_that_none_is_left_by_half(cluster, namespace, tmp_path, policy, share, gangs=10, kills=3)


@pytest.mark.controlplane
@pytest.mark.full
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("share", ROOM)
def test_many_kills_leave_none_of_many_gangs_by_half(
    plane: Cluster, namespace: str, tmp_path: Path, policy: str, share: float
) -> None:
    check_that_none_is_left_by_half(plane, namespace, tmp_path, policy, share, gangs=100, kills=12)


def check_that_none_is_left_by_half(
    cluster: Cluster, namespace: str, tmp_path: Path, policy: str, share: float, gangs: int, kills: int
) -> None:
    room, draw = int(gangs * 8 * share), random.Random(gangs)
    args = {"onPartialBind": policy}
    with (
        cluster.nodes(max(room // 8, 1), prefix="gang", capacity={"cpu": "8"}),
        coscheduling(cluster, tmp_path, args) as start,
    ):
        program = start()
        program.wait_until_ready()
        for number in range(gangs):
            apply(cluster, namespace, *gang(f"g{number}", 8, cpu="1"))
            if number % max(gangs // kills, 1) == 0:
                time.sleep(draw.random() * 0.4)
                program = start()
        program.wait_until_ready()

        def fine() -> bool:
            found = running(cluster, namespace)
            at_work = sum(count == 8 for count in found.values())
            wanted = gangs if share == 1.0 else gangs // 2
            return set(found.values()) == {8} and (at_work == wanted or policy == "Evict")

        until(
            "all gangs that run are whole", fine, 120, lambda *_: f"{running(cluster, namespace)}\n{program.tail(60)}"
        )
        assert set(settled(cluster, namespace).values()) <= {8}
        check_nothing_over_committed(cluster)
