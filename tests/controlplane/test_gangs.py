"""Gangs in the embedded cluster and on a real one: who runs, and that none runs by half."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import MOSTLY_REAL
from tests.controlplane.pod_groups import (
    GROUP,
    HIGH,
    MIDDLE,
    asking,
    coscheduling,
    gang,
    interleaved,
    priority_classes,
    running,
    settled,
)
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import a_live_pod, apply, condition, noted


@pytest.fixture(params=MOSTLY_REAL)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    found: Cluster = request.getfixturevalue(request.param)
    return found


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
        cluster.having(*priority_classes("Never")),
        cluster.nodes(1, prefix="gang", capacity={"memory": "300"}),
        coscheduling(cluster, tmp_path) as scheduler,
    ):
        apply(cluster, namespace, *manifests)
        scheduler.ready()
        until(f"it is one of {expected}", lambda: dict(running(cluster, namespace)) in expected, 60)
        assert dict(settled(cluster, namespace)) in expected


def test_a_member_that_has_ended_does_not_count(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """Six are needed: one has succeeded and five are new, so none runs until there is a sixth new one."""
    done, *new = asking(50, gang("a", 7, 6))
    path = f"/api/v1/namespaces/{namespace}/pods/{done['metadata']['name']}"
    with (
        cluster.nodes(1, prefix="gang", capacity={"memory": "300"}) as [node],
        coscheduling(cluster, tmp_path) as scheduler,
    ):
        done["spec"]["nodeName"] = node
        apply(cluster, namespace, done)
        until("it runs", lambda: cluster.api().must("GET", path)["status"].get("phase") == "Running")
        cluster.kubectl(
            *("-n", namespace, "patch", "pod", done["metadata"]["name"], "--subresource=status"),
            *("--type=merge", "-p", '{"status": {"phase": "Succeeded"}}'),
        )
        apply(cluster, namespace, *new[:5])
        program = scheduler.ready()
        waits = f"pod group {namespace}/a: 5 of 6 pods exist"
        name = new[0]["metadata"]["name"]
        until("they wait", lambda: waits in noted(cluster, namespace, name), 30, program.explain)
        assert not settled(cluster, namespace) and not condition(cluster, namespace, name)
        apply(cluster, namespace, new[5])
        until("all six run", lambda: dict(running(cluster, namespace)) == {"a": 6}, 30, program.explain)


def test_of_two_gangs_of_ten_one_runs_whole(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    check_that_one_of_two_runs_whole(cluster, namespace, tmp_path, times=3)


@pytest.mark.controlplane
@pytest.mark.full
def test_of_two_gangs_of_ten_one_runs_whole_again_and_again(plane: Cluster, namespace: str, tmp_path: Path) -> None:
    check_that_one_of_two_runs_whole(plane, namespace, tmp_path, times=50)


def only_runs(cluster: Cluster, namespace: str, name: str, count: int) -> bool:
    """True if this gang runs with this many pods, and nothing else runs."""
    return dict(running(cluster, namespace)) == {name: count}


def check_that_one_of_two_runs_whole(cluster: Cluster, namespace: str, tmp_path: Path, times: int) -> None:
    with cluster.nodes(10, prefix="gang", capacity={"cpu": "1"}), coscheduling(cluster, tmp_path) as scheduler:
        program = scheduler.ready()
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
                partial(only_runs, cluster, namespace, second, 10),
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
