"""What is looked at during a run: nodes that fill, come and go, at few moments however long the run is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.apps import profile_loader
from stowplan.simulation.figures import figures
from stowplan.simulation.report.report_recorder import MOST_MOMENTS, ReportRecorder, some_of
from stowplan.simulation.report.report_run import NO_NODE, ReportRun
from stowplan.simulation.run import Simulation
from stowplan.simulation.settings import RunSettings
from stowplan.simulation.stream_events import AppliedObject, Arrival, DeletedObject, StreamEvent
from tests.simulation.runs import a_cluster, a_cluster_text


def pod(name: str, at: float, duration: float | None, cpu: str = "1") -> Arrival:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    document = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }  # fmt: skip
    return Arrival(at=at, duration=duration, file="pods", place=name, document=document)


def node(name: str, cpu: str) -> dict[str, Any]:
    capacity = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    status = {"capacity": capacity, "allocatable": capacity}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def followed(stream: list[StreamEvent], cpu: int = 4, **settings: Any) -> ReportRun:
    """A run of one node, n-0, as its report shows it."""
    chosen = RunSettings(**settings)
    cluster = a_cluster(a_cluster_text(count=1, cpu=cpu), chosen)
    run = Simulation(cluster, stream, profile_loader.defaults()[1], chosen)
    recorder = ReportRecorder()
    run.run(recorder.moment)
    return recorder.finished(run, "one", figures(run), facts={"Seed": "0"})


def filled(run: ReportRun, resource: str) -> dict[str, list[int]]:
    """The percentages of each node, moment by moment."""
    rows = np.frombuffer(run.fill.parts[resource], np.uint8).reshape(len(run.fill.moments), len(run.fill.nodes))
    return {name: rows[:, place].tolist() for place, name in enumerate(run.fill.nodes)}


def test_nodes_fill_come_and_go() -> None:
    stream = [
        pod("a", 30, 200), pod("b", 90, 60, cpu="3"),
        AppliedObject(at=150, document=node("n-new", "8"), file="f", place="x"),
        pod("c", 170, None, cpu="6"), DeletedObject(at=290, api_version="v1", kind="Node", name="n-new"),
    ]  # fmt: skip
    run = followed(stream, until=360.0)
    assert run.fill.moments == [0, 60, 120, 180, 240, 300, 360]
    assert filled(run, "cpu") == {
        "n-0": [0, 25, 100, 25, 0, 0, 0],
        "n-new": [NO_NODE, NO_NODE, NO_NODE, 75, 75, NO_NODE, NO_NODE],
    }
    assert filled(run, "memory")["n-0"] == [0, 6, 12, 6, 0, 0, 0]  # an even number, where two are as near


def test_a_node_that_is_nearly_full_or_nearly_empty_is_neither() -> None:
    run = followed([pod("much", 0, None, cpu="999"), pod("more", 60, None, cpu="1")], cpu=1000, until=120.0)
    assert filled(run, "cpu")["n-0"] == [99, 100, 100]
    assert filled(followed([pod("little", 0, None, cpu="1m")], until=60.0), "cpu")["n-0"] == [1, 1]


def test_pods_that_wait_are_counted_by_cause() -> None:
    run = followed([pod("big", 30, None, cpu="9"), pod("a", 30, None, cpu="4"), pod("b", 90, None)], until=180.0)
    assert run.causes.moments == [0, 60, 120, 180]
    assert run.causes.pods == {"Insufficient cpu": [0, 1, 2, 2]}


def test_pods_that_are_being_bound_wait_as_well() -> None:
    run = followed([pod("slow", 55, None)], until=120.0, bind_seconds=20.0)
    assert run.causes.pods == {"on its way to a node": [0, 1, 0]}


def test_a_long_run_is_looked_at_now_and_then() -> None:
    run = followed([pod("a", 0, 3600), pod("b", 3 * 86_400.0, 10)], until=4 * 86_400.0)
    moments = run.fill.moments
    assert MOST_MOMENTS / 2 <= len(moments) <= MOST_MOMENTS + 1
    assert moments[0] == 0 and moments[-1] == 4 * 86_400
    apart = np.diff(moments[:-1])
    assert (apart == apart[0]).all() and apart[0] == 64 * 60
    assert filled(run, "cpu")["n-0"][:2] == [25, 0]
    assert len(run.series) == 4 * 1440 + 1  # the curves have all samples


def test_a_run_ends_where_its_figures_end() -> None:
    run = followed([pod("a", 0, 130)])
    assert run.figures["seconds"] == 130 and run.fill.moments == [0, 60, 120, 130]
    assert filled(run, "cpu")["n-0"] == [25, 25, 25, 0]


def test_a_run_in_which_nothing_happens_has_a_moment() -> None:
    run = followed([])
    assert run.fill.moments == [0] and run.fill.nodes == ["n-0"] and run.fill.parts == {} and run.causes.pods == {}


@pytest.mark.parametrize("number", [0, 1, 400, 401, 100_000])
def test_many_waits_are_represented_by_some(number: int) -> None:
    found = some_of([float(each) for each in range(number)])
    assert len(found) == min(number, 401) and found[:1] + found[-1:] == ([0.0, number - 1.0] if number else [])
