"""Runs from end to end: what comes of pods, when, and that the same seed gives the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from stowplan.apps import profile_loader
from stowplan.objects.errors import ConfigError
from stowplan.simulation import output
from stowplan.simulation.figures import figures
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.run import Simulation
from stowplan.simulation.settings import RunSettings
from stowplan.simulation.stream_events import (
    AppliedObject,
    Arrival,
    DeletedObject,
    NodeCordon,
    NodeFailure,
    StreamEvent,
)
from stowplan.simulation.streams import table
from stowplan.simulation.templates import Templates
from tests.simulation.runs import a_cluster, a_cluster_text, a_run


def a_pod(name: str, at: float = 0.0, duration: float | None = None, **requests: str) -> Arrival:
    container = {"name": "main", "image": "app", "resources": {"requests": requests}}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    return Arrival(at=at, duration=duration, document=document, file="stream", place=name)


def a_workload(kind: str, version: str, **spec: Any) -> Arrival:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}
    inner: dict[str, Any] = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    if kind == "Job":
        inner["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": {"app": "web"}}
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": {"template": inner, **spec}}
    return Arrival(at=0.0, duration=100.0, document=document)


def rows(run: Simulation) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in output.outcome_rows(run)}


def test_a_pod_that_fits_is_bound_starts_and_ends_with_the_latencies_of_the_run() -> None:
    run = a_run([a_pod("a", 10, 60, cpu="1")], bind_seconds=2, start_seconds=3)
    found = rows(run)["a"]
    assert [found[key] for key in ("arrived", "bound", "waited", "started", "ended")] == [10, 12, 2, 15, 75]
    assert found["outcome"] == "succeeded"


def test_a_pod_that_fits_nowhere_waits_until_another_one_ends() -> None:
    run = a_run([a_pod("a", 0, 60, cpu="4"), a_pod("b", 5, 10, cpu="4")], a_cluster_text(count=1))
    assert rows(run)["b"]["bound"] == 60 and rows(run)["b"]["waited"] == 55


def test_a_run_without_an_end_is_over_although_a_pod_stays_pending() -> None:
    run = a_run([a_pod("a", cpu="5")])
    assert rows(run)["a"]["outcome"] == "pending"
    assert figures(run)["pods"]["neverPlaced"] == 1


WORKLOADS = [
    pytest.param(
        a_workload("Deployment", "apps/v1", replicas=3), 3, "deleted", id="a Deployment is deleted at its end"
    ),
    pytest.param(
        a_workload("StatefulSet", "apps/v1", replicas=2), 2, "deleted", id="a StatefulSet is deleted at its end"
    ),
    pytest.param(
        a_workload("ReplicaSet", "apps/v1", replicas=4), 4, "deleted", id="a ReplicaSet is deleted at its end"
    ),
    pytest.param(a_workload("Job", "batch/v1", completions=5, parallelism=2), 5, "succeeded", id="a Job runs its pods"),
]


@pytest.mark.parametrize(("workload", "pods", "outcome"), WORKLOADS)
def test_controllers_make_the_pods_of_a_workload(workload: Arrival, pods: int, outcome: str) -> None:
    run = a_run([workload])
    assert [row["outcome"] for row in rows(run).values()] == [outcome] * pods
    assert {row["ended"] for row in rows(run).values()} <= {100.0, 200.0, 300.0}


def test_a_node_that_comes_takes_the_pod_that_was_pending() -> None:
    status = {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "10"}}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "big"},
        "status": {**status, "capacity": status["allocatable"]},
    }
    run = a_run([a_pod("a", cpu="6"), AppliedObject(at=30, document=node)])
    assert rows(run)["a"]["node"] == "big" and rows(run)["a"]["bound"] == 30


def test_the_pods_of_a_node_that_fails_are_evicted_after_their_tolerations() -> None:
    run = a_run([a_pod("a", cpu="1"), NodeFailure(at=10, node="n-0")], a_cluster_text(count=1))
    assert rows(run)["a"]["outcome"] == "evicted" and rows(run)["a"]["ended"] == 310
    assert figures(run)["evictions"] == {"pods": 1, "byReason": {"DeletionByTaintManager": 1}}


def test_a_cordoned_node_takes_no_pods_until_it_is_uncordoned() -> None:
    events = [NodeCordon(at=0, node="n-0"), a_pod("a", 1, cpu="1"), NodeCordon(at=50, node="n-0", cordoned=False)]
    assert rows(a_run(events, a_cluster_text(count=1)))["a"]["bound"] == 50


def test_a_node_that_goes_takes_its_pods_with_it() -> None:
    gone = DeletedObject(at=10, api_version="v1", kind="Node", name="n-0")
    run = a_run([a_pod("a", cpu="1"), gone], a_cluster_text(count=1))
    assert rows(run)["a"]["outcome"] == "deleted" and figures(run)["nodes"]["atEnd"] == 0


REFUSED = [
    pytest.param(a_pod("Not_A_Name"), "stream: Not_A_Name: ", id="a name that no server takes"),
    pytest.param(
        NodeFailure(at=0, node="x", file="s.yaml", place="events[0]"), "s.yaml: events[0]: ", id="no such node"
    ),
]


@pytest.mark.parametrize(("event", "named"), REFUSED)
def test_what_the_server_refuses_is_refused_with_its_place(event: StreamEvent, named: str) -> None:
    with pytest.raises(ConfigError) as refused:
        a_run([event])
    assert named in str(refused.value)


@pytest.mark.parametrize(("event", "named"), REFUSED)
def test_what_the_server_refuses_can_be_skipped_and_is_counted(event: StreamEvent, named: str) -> None:
    problems = InputProblems(skip=True)
    run = a_run([event, a_pod("fine", cpu="1")], problems=problems)
    assert named in problems.named[0] and figures(run)["skipped"] == {"problems": 1}
    assert rows(run)["fine"]["node"]


def test_all_that_no_server_takes_is_named_before_the_run_begins() -> None:
    moments: list[float] = []
    late = [
        a_pod("Bad_1", 50, cpu="1"),
        a_pod("fine", 60, cpu="1"),
        a_pod("bad-2", 70, None, **{"nvidia.com/gpu": "1.5"}),
    ]
    cluster = a_cluster(a_cluster_text(), RunSettings())
    run = Simulation(cluster, late, profile_loader.defaults()[1])
    with pytest.raises(ConfigError) as refused:
        run.run(lambda found: moments.append(found.elapsed))
    assert str(refused.value).startswith("2 entries cannot be used") and moments == []
    assert "stream: Bad_1: " in str(refused.value) and "must be an integer" in str(refused.value)


def test_a_name_may_be_used_again_when_its_pod_is_gone() -> None:
    run = a_run([a_pod("a", 0, 10, cpu="1"), a_pod("a", 20, 10, cpu="1")])
    assert figures(run)["pods"]["placed"] == 2


def all_bytes(seed: int) -> bytes:
    """A run with ties between nodes, preemption aside: what its files have."""
    text = b"arrival,duration,cpu,count,namespace\n" + b"".join(
        f"{number * 7},{100 + number * 13 % 50},{1 + number % 3},2,ns-{number % 4}\n".encode() for number in range(40)
    )
    stream = table.from_csv(text, Templates(), InputProblems())
    run = a_run(stream, a_cluster_text(count=5), seed=seed)
    return output.summary(figures(run)) + b"".join(output.lines([*run.recorder.series, *output.outcome_rows(run)]))


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not() -> None:
    assert all_bytes(1) == all_bytes(1) != all_bytes(2)


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_order_of_hashes_changes_nothing(hash_seed: str) -> None:
    code = "import sys; from tests.simulation.test_run import all_bytes; sys.stdout.buffer.write(all_bytes(3))"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert found.stdout == all_bytes(3)


def steps(pods: Sequence[StreamEvent]) -> int:
    return a_run(pods, a_cluster_text(count=1, cpu=64), sample_seconds=0).steps


def test_the_work_grows_with_the_events_and_not_with_the_time() -> None:
    near = [a_pod(f"p-{number}", number, 1, cpu="1") for number in range(10)]
    far = [a_pod(f"p-{number}", number * 1e6, 1, cpu="1") for number in range(10)]
    assert steps(near) == steps(far)
