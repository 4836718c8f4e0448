"""Figures whose values can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stowplan.apps import profile_loader
from stowplan.simulation.figures import figures, waiting
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.namespace_shares import dominant, jain
from stowplan.simulation.run import Simulation
from stowplan.simulation.settings import RunSettings
from stowplan.simulation.streams import table
from stowplan.simulation.templates import Templates
from tests.simulation.runs import HEAD, a_cluster

NODES = HEAD + "nodes: [{name: w, count: 2, capacity: {cpu: 4, memory: 8Gi, pods: 10}%s}]\n"


def a_run(
    rows: str, *, price: str = "", prices: Mapping[str, float] | None = None, until: float | None = 7200,
    sample: float = 600,
) -> Simulation:  # fmt: skip
    settings = RunSettings(until=until, sample_seconds=sample)
    stream = table.from_csv(f"arrival,duration,cpu,namespace\n{rows}".encode(), Templates(), InputProblems())
    cluster = a_cluster((NODES % price).encode(), settings)
    run = Simulation(cluster, stream, profile_loader.defaults()[1], settings, prices=prices)
    run.run()
    return run


def test_allocation_is_averaged_over_the_whole_run() -> None:
    """Two of eight CPUs for half of the time."""
    found = figures(a_run("0,3600,2,a\n"))
    assert found["allocation"] == found["utilisation"] == {"cpu": 0.125, "memory": 0, "pods": 0.025}


@pytest.mark.parametrize("sample", [0, 7, 60, 600])
def test_a_run_without_an_end_is_averaged_until_its_last_change(sample: float) -> None:
    """Two of eight CPUs for 100 seconds, then four for 50: sums do not go on to samples after the end."""
    run = a_run("0,150,2,a\n100,50,2,a\n", price=", price: 3.6", until=None, sample=sample)
    found = figures(run)
    assert found["seconds"] == 150 and found["allocation"]["cpu"] == round((2 * 150 + 2 * 50) / (8 * 150), 6)
    assert found["nodes"]["hours"] == round(2 * 150 / 3600, 6)
    assert found["cost"]["all"] == pytest.approx(2 * 0.15)
    assert all(row["cost"] == pytest.approx(2 * row["at"] / 1000) for row in run.recorder.series)


@pytest.mark.parametrize(
    ("price", "prices"),
    [
        pytest.param(", price: 0.5", {"w-0": 9.0, "w-1": 9.0}, id="the annotation goes before the table"),
        pytest.param(", labels: {stowplan.io/price-per-hour: '0.5'}", {}, id="a label has the price"),
        pytest.param("", {"w-0": 0.5, "w-1": 0.5}, id="the table has the names of the nodes"),
        pytest.param(", labels: {node.kubernetes.io/instance-type: m5}", {"m5": 0.5}, id="the table has the type"),
    ],
)
def test_the_cost_of_nodes_by_their_price(price: str, prices: dict[str, float]) -> None:
    """Two nodes for two hours; a pod is on one of them for one hour."""
    cost = figures(a_run("0,3600,2,a\n", price=price, prices=prices))["cost"]
    assert cost == {"all": 2.0, "used": 0.5, "nodesWithoutPrice": 0}


def test_nodes_without_a_price_are_counted() -> None:
    assert figures(a_run("0,60,1,a\n"))["cost"] == {"all": 0, "used": 0, "nodesWithoutPrice": 2}


def test_what_is_free_where_no_pod_fits_is_fragmented() -> None:
    """Three of the four CPUs of each node are taken, and all pods request three."""
    run = a_run("0,,3,a\n0,,3,a\n")
    assert run.recorder.series[-1]["fragmentation"]["cpu"] == 1.0
    assert a_run("0,,2,a\n0,,2,a\n").recorder.series[-1]["fragmentation"]["cpu"] == 0.0


def test_a_namespace_that_waits_half_of_its_time_is_half_satisfied() -> None:
    """Both nodes are full for an hour with the pods of a; that of b gets its node after it."""
    fairness = figures(a_run("0,3600,4,a\n0,3600,4,a\n0,,4,b\n"))["fairness"]
    assert {name: each["satisfaction"] for name, each in fairness["namespaces"].items()} == {"a": 1.0, "b": 0.5}
    assert fairness["namespaces"]["b"]["meanWait"] == 3600 and fairness["index"] == 0.9


def test_percentiles_are_waits_of_pods() -> None:
    assert waiting([None, *map(float, range(1, 11))]) == {
        "mean": 5.5, "p50": 5, "p90": 9, "p95": 10, "p99": 10, "p100": 10,
    }  # fmt: skip
    assert waiting([None])["p50"] is None


@pytest.mark.parametrize(("values", "index"), [([1.0, 1.0], 1.0), ([1.0, 0.0], 0.5), ([0.0], 1.0), ([], None)])
def test_jains_index(values: list[float], index: float | None) -> None:
    assert jain(values) == index


def test_the_dominant_share_leaves_out_what_no_node_offers() -> None:
    assert dominant({"cpu": 1, "memory": 4, "gpu": 1}, {"cpu": 4, "memory": 8, "gpu": 0}) == 0.5
