"""`stowplan plugin bench`: what it measures, and whom it names. How long something takes is not tested here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.apps.plugin_kit.bench import sentence
from stowplan.apps.plugin_kit.measuring import Cost
from stowplan.framework.extension_points import NODES

RARE = """
apiVersion: v1
kind: Pod
metadata: {name: rare}
spec: {containers: [{name: main}]}
"""
PLUGINS = """
import numpy as np

from stowplan.plugin import SKIP, Reject, per_node


class Arrays:
    def pre_filter(self, pod, cluster):
        cluster.notes["Arrays"] = 5

    def filter(self, pod, nodes):
        assert nodes.cluster.notes["Arrays"] == 5, "a pre-filter comes before its filter"
        yield Reject(nodes.label("zone") == "a", "no")

    def score(self, pod, nodes):
        return np.where(nodes.label("zone") == "b", 100, 0)


@per_node
class OneByOne:
    def fits(self, pod, node):
        return "no" if node.labels.get("zone") == "a" else None


class Slow:
    def filter(self, pod, nodes):
        worth = 0
        for node in nodes:
            for step in range(10_000):
                worth += step
        yield Reject(np.full(len(nodes), worth > 0), "no")


class Rare:  # acts on pods that are not drawn
    def filter(self, pod, nodes):
        if pod.name == "rare":
            worth = sum(step for _ in nodes for step in range(10_000))
            yield Reject(np.full(len(nodes), worth > 0), "no")

    def score(self, pod, nodes):
        return None


class Skips(Rare):
    def pre_filter(self, pod, cluster):
        if pod.name != "rare":
            return SKIP
        cluster.notes["Skips"] = "rare"

    def filter(self, pod, nodes):
        yield Reject(nodes.name == nodes.cluster.notes["Skips"], "no")

    score = None


class Third:  # acts on few of the pods that are drawn
    def filter(self, pod, nodes):
        if pod.labels.get("batch") == "true" and pod.labels.get("team") and pod.labels.get("shift") == "night":
            yield Reject(nodes.label("zone") == "a", "no")


class Fails:
    def filter(self, pod, nodes):
        raise KeyError("oops")


class Sorts:
    def sort_key(self, pod, queued_at):
        return 0
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(PLUGINS)
    (tmp_path / "rare.yaml").write_text(RARE)
    return tmp_path / "mine.py"


def bench(file: Path, plugin: str, *words: str) -> Result:
    few = ["--nodes", "50", "--rounds", "1"]
    return CliRunner().invoke(main, ["plugin", "bench", f"{file}:{plugin}", *few, *words])


def test_a_plugin_that_is_a_hundred_times_slower_than_a_pass_is_named(file: Path) -> None:
    done = bench(file, "Slow")
    assert done.exit_code == 1
    assert "mine.py:Slow: filter costs " in done.output
    assert "it looks at one node at a time; see docs/plugins.md#what-is-slow" in done.output
    assert "runs 500,000 times" in done.output.replace("500,050", "500,000")


def test_a_method_that_never_acted_was_not_measured(file: Path) -> None:
    done = bench(file, "Rare")
    line = PLUGINS.splitlines().index('        if pod.name == "rare":') + 2
    assert done.exit_code == 1
    assert (
        "mine.py:Rare: filter never rejected a node: none of the 81 drawn pods made it; "
        f"lines {line} to {line + 1} never ran; give pods that it acts on with --pods FILE; see docs/" in done.output
    )
    assert "mine.py:Rare: score never preferred one node to another: none of the 81 drawn pods made it" in done.output
    assert "no method costs more" not in done.output and "(never acted)" in done.output
    found = json.loads(bench(file, "Rare", "-o", "json").stdout)
    assert [cost["neverActed"] for cost in found["costs"]] == [True, True] and len(found["problems"]) == 2


def test_the_pods_that_it_acts_on_can_be_given(file: Path) -> None:
    done = bench(file, "Rare", "--pods", str(file.with_name("rare.yaml")), "--idle", "score=it has no opinion")
    assert done.exit_code == 1 and "filter costs" in done.output and "never" not in done.output, done.output
    done = bench(file, "Rare", "--pods", str(file.with_name("rare.yaml")))
    assert "none of the 1 given pods made it" in done.output
    done = bench(file, "Rare", "--idle", "score=it has no opinion", "--idle", "filter=nor this")
    assert done.exit_code == 0 and "no method costs more than 100 yardsticks" in done.output


def test_a_filter_is_not_called_for_pods_that_its_pre_filter_skips(file: Path) -> None:
    done = bench(file, "Skips")
    assert done.exit_code == 1, done.output
    assert "filter was never called: pre_filter left it nothing to do for all 81 drawn pods" in done.output


def test_more_pods_are_drawn_until_a_method_acts(file: Path) -> None:
    assert bench(file, "Third").exit_code == 0


def test_what_is_measured(file: Path) -> None:
    found = json.loads(bench(file, "Arrays", "--idle", "pre_filter=makes a note", "-o", "json").stdout)
    assert found["problems"] == []
    assert (found["kind"], found["nodes"]) == ("PluginBench", 50) and found["decisionYardsticks"] > 0
    rows = [(cost["method"], cost["form"], cost["calledByScheduler"]) for cost in found["costs"]]
    assert rows == [("pre_filter", "", True), ("filter", "arrays", True), ("score", "arrays", True)]


def test_both_forms_beside_each_other(file: Path) -> None:
    found = json.loads(bench(file, "Arrays", "--twin", f"{file}:OneByOne", "-o", "json").stdout)
    rows = [(cost["method"], cost["form"], cost["calledByScheduler"]) for cost in found["costs"]]
    assert ("filter", "arrays", True) in rows and ("filter", "per node", False) in rows
    found = json.loads(bench(file, "OneByOne", "-o", "json").stdout)
    assert [(cost["form"], cost["calledByScheduler"]) for cost in found["costs"]] == [("per node", True)]


@pytest.mark.parametrize(
    ("cost", "slow"),
    [
        pytest.param(Cost("filter", "arrays", "p", 99.0, 10.0, own=True), False, id="less"),
        pytest.param(Cost("filter", "arrays", "p", 101.0, 10.0, own=True), True, id="more"),
        pytest.param(Cost("filter", "per node", "p", 5000.0, 10.0, own=False), False, id="a twin may be slow"),
    ],
)
def test_who_is_slow(cost: Cost, slow: bool) -> None:
    assert cost.slow is slow


def test_what_is_said_of_it() -> None:
    cost = Cost("filter", "arrays", "p", 240.4, 9600.0, own=True, why="it looks at one node at a time")
    assert sentence(cost, NODES, 5000) == (
        "filter costs 240 yardsticks a pod (9.6 ms at 5,000 nodes; more than 100 is slow); it looks at one node at a "
        "time; see docs/plugins.md#what-is-slow"
    )


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        pytest.param("Fails", "filter fails for pod ", id="it fails"),
        pytest.param("Sorts", "has neither filter nor score", id="nothing to measure"),
    ],
)
def test_what_cannot_be_measured(file: Path, plugin: str, problem: str) -> None:
    done = bench(file, plugin)
    assert done.exit_code == 2 and problem in done.output, done.output
