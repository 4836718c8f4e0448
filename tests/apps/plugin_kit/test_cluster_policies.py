"""`stowplan plugin check` and `bench` of cluster policies: whom they take for one, and what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.apps.plugin_kit.bench import sentence
from stowplan.apps.plugin_kit.measuring import Cost
from stowplan.framework.extension_points import CLUSTERS

POLICIES = """
import numpy as np

from stowplan.plugin import Reject, per_node


class Heavy:
    def filter(self, placement, clusters):
        if placement.labels.get("heavy") == "true":
            1 / 0
            yield Reject(clusters.label("size") != "large", "cluster(s) are small")


class Named:
    def __init__(self, region: str = "a") -> None:
        self.region = region

    def filter(self, placement, clusters):
        if placement.name == "large":
            yield Reject(clusters.label("region") == self.region, "cluster(s) are elsewhere")

    def changes_at(self, placement, clusters):
        return None


@per_node
class Twin:
    def fits(self, placement, cluster):
        if placement.name == "large" and cluster.labels.get("region") == "a":
            return "cluster(s) are elsewhere"


class Priced:
    def score(self, placement, clusters):
        return clusters.score("pri" + clusters.__class__.__name__[:0] + "ces", "hour").values


class Slow:
    def score(self, placement, clusters):
        worth = 0
        for cluster in clusters:
            for step in range(10_000):
                worth += step
        return np.zeros(len(clusters), np.int64)


class Fails:
    def score(self, placement, clusters):
        raise KeyError("oops")


class Unclear:
    def score(self, one, two):
        return np.array([len(name) for name in two.names])


class ForNodes:
    def filter(self, pod, nodes):
        yield Reject(nodes.label("zone") == "a", "node(s) are in a")
"""
PLACEMENT = """
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: large}
"""
SCORES = """
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata: {name: prices, namespace: %s}
status: {scores: [{name: hour, value: 7}]}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: %s}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {containers: [{name: c}]}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(POLICIES)
    (tmp_path / "placements.yaml").write_text(PLACEMENT)
    (tmp_path / "hub.yaml").write_text(f"{SCORES % ('alder', 'alder')}---{PLACEMENT}")
    (tmp_path / "pods.yaml").write_text(POD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def called(command: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["plugin", command, *words])


def check(policy: str, *words: str) -> Result:
    return called("check", f"mine.py:{policy}", "--clusters", "20", *words)


def bench(policy: str, *words: str) -> Result:
    return called("bench", f"mine.py:{policy}", "--rounds", "1", *words)


GIVE = (
    "give placements that it acts on with --placements FILE (or placements= in check_plugin), and clusters and scores"
)


# -- check


def test_a_policy_that_never_had_a_say_fails_with_a_sentence_that_says_what_to_do() -> None:
    done = check("Heavy")
    assert done.exit_code == 1
    assert "Heavy: filter fails: ZeroDivisionError: division by zero (mine.py:10) (placement " in done.output
    assert "Heavy: filter never rejected a cluster: none of the 40 drawn placements made it" in done.output
    assert f"{GIVE} with --objects FILE (or objects= in check_plugin)" in done.output
    assert 'yield Reject(clusters.label("size") != "large"' in done.output, "the line that never ran"


def test_placements_that_it_acts_on() -> None:
    assert check("Named").exit_code == 1
    done = check("Named", "--placements", "placements.yaml", "--args", "region=b")
    assert done.exit_code == 0, done.output
    assert "mine.py:Named: keeps the contract, with 80 placements on small random fleets" in done.output


def test_objects_that_it_acts_on() -> None:
    assert "score never preferred one cluster to another" in check("Priced").output
    assert check("Priced", "--objects", "hub.yaml").exit_code == 0


def test_a_twin() -> None:
    words = ["--twin", "mine.py:Twin", "--placements", "placements.yaml"]
    assert check("Named", *words).exit_code == 0
    done = check("Named", "--args", "region=b", *words)
    assert done.exit_code == 1 and "filter and its twin's fits disagree: cluster c" in done.output


def test_output_for_programs() -> None:
    found = json.loads(check("Named", "-o", "json").stdout)
    assert (found["kind"], found["placements"], len(found["problems"])) == ("PluginCheck", 40, 1)
    assert found["methods"]["filter"]["hadASay"] == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        pytest.param(["Balance"], 0, "with 80 placements", id="a cluster plugin of Stowplan"),
        pytest.param(["NodeUnschedulable"], 0, "with 80 pods", id="a node plugin of Stowplan"),
        pytest.param(["TaintToleration"], 2, "of one for clusters; say --kind node or --kind cluster", id="both"),
        pytest.param(["TaintToleration", "--kind", "cluster"], 0, "placements", id="this one"),
        pytest.param(["TaintToleration", "--kind", "node"], 0, "pods", id="the other one"),
        pytest.param(["NodeName", "--kind", "cluster"], 2, "NodeName is for nodes, expected", id="not that kind"),
        pytest.param(["mine.py:ForNodes"], 0, "pods", id="its own"),
        pytest.param(["mine.py:Named", "--kind", "node"], 2, "Named is for clusters, expected", id="it says no"),
        pytest.param(["mine.py:Unclear"], 2, "tell what mine.py:Unclear chooses; name the parameters of", id="unclear"),
        pytest.param(["mine.py:Unclear", "--kind", "cluster"], 1, "placements", id="told"),
        pytest.param(["mine.py:Named", "--twin", "mine.py:ForNodes"], 2, "is for nodes, expected", id="a node's twin"),
        pytest.param(["mine.py:Named", "--pods", "pods.yaml"], 2, "give --placements instead of --pods", id="pods"),
        pytest.param(
            ["mine.py:ForNodes", "--placements", "hub.yaml"], 2, "give --pods instead of --placements", id="placements"
        ),
        pytest.param(["mine.py:Named", "--placements", "pods.yaml"], 2, "found no Placement, but Pod", id="not one"),
        pytest.param(
            ["mine.py:Named", "--objects", "pods.yaml"],
            2,
            "found no ManagedCluster or AddOnPlacementScore or PlacementDecision, but Pod",
            id="objects of no fleet",
        ),
    ],
)
def test_for_nodes_or_for_clusters(words: list[str], code: int, said: str) -> None:
    done = called("check", *words)
    assert done.exit_code == code and said in done.output, done.output
    assert "Traceback" not in done.output


# -- bench


def test_a_policy_that_is_a_hundred_times_slower_than_a_pass_is_named() -> None:
    done = bench("Slow", "--clusters", "50")
    assert done.exit_code == 1
    assert "mine.py:Slow: score costs " in done.output and " yardsticks a placement (" in done.output
    assert " ms at 50 clusters; more than 100 is slow)" in done.output
    assert "times: it looks at one cluster at a time; see docs/plugins.md#what-is-slow" in done.output


def test_five_thousand_clusters() -> None:
    found = json.loads(bench("Named", "-o", "json", "--placements", "placements.yaml").stdout)
    assert (found["kind"], found["clusters"]) == ("PluginBench", 5000) and found["decisionYardsticks"] > 0
    rows = [(cost["method"], cost["form"], cost["calledByScheduler"], cost["placement"]) for cost in found["costs"]]
    assert rows == [("filter", "arrays", True, "default/large"), ("changes_at", "", True, "default/large")]


def test_both_forms_beside_each_other() -> None:
    found = json.loads(bench("Named", "--clusters", "50", "--twin", "mine.py:Twin", "-o", "json").stdout)
    forms = [(cost["form"], cost["calledByScheduler"]) for cost in found["costs"] if cost["method"] == "filter"]
    assert forms == [("arrays", True), ("per cluster", False)]


def test_what_is_said_of_a_slow_method() -> None:
    cost = Cost("score", "per cluster", "p", 240.4, 9600.0, own=True, why="it looks at one cluster at a time")
    assert sentence(cost, CLUSTERS, 5000) == (
        "score costs 240 yardsticks a placement (9.6 ms at 5,000 clusters; more than 100 is slow); it looks at one "
        "cluster at a time; see docs/plugins.md#what-is-slow"
    )


@pytest.mark.parametrize(
    ("policy", "words", "problem"),
    [
        pytest.param("Fails", [], "score fails for placement ", id="it fails"),
        pytest.param("Named", ["--nodes", "50"], "give --clusters instead of --nodes", id="nodes"),
        pytest.param("ForNodes", ["--clusters", "50"], "give --nodes instead of --clusters", id="clusters"),
    ],
)
def test_what_cannot_be_measured(policy: str, words: list[str], problem: str) -> None:
    done = bench(policy, *words)
    assert done.exit_code == 2 and problem in done.output, done.output
