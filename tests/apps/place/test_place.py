"""`stowplan place explain`, invalid command lines of `stowplan place`, and its metrics, without a hub."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.apps.place.metrics import PlacementMetrics
from stowplan.framework.placement.interfaces import Misconfigured
from stowplan.objects.actions import Patch
from stowplan.objects.changes import Put, Result
from stowplan.objects.meta import Object
from stowplan.objects.placements import AddOnScore, ScoreCoordinate
from stowplan.placement.scheduler import PlacementScheduler
from stowplan.plugins import clusters
from tests.placement import fleets
from tests.placement.fleets import BOUND, a_cluster

GROUP = "cluster.open-cluster-management.io"
VERSIONS = {"ManagedCluster": "v1", "Placement": "v1beta1", "AddOnPlacementScore": "v1alpha1"}


def document(found: Object) -> dict[str, Any]:
    kind = type(found).__name__
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found, enc_hook=str))
    return {"apiVersion": f"{GROUP}/{VERSIONS.get(kind, 'v1beta2')}", "kind": kind} | decoded


def a_dump(folder: Path, *more: dict[str, Any]) -> Path:
    fleet = [
        a_cluster("c1", cpu="10"),
        a_cluster("c2", cpu="7"),
        a_cluster("c3", cpu="4", taints=["gone:NoSelect"]),
        a_cluster("c4", cpu="2"),
    ]
    file = folder / "hub.yaml"
    file.write_text(yaml.safe_dump_all([*(document(each) for each in (*BOUND, *fleet)), *more]))
    return file


def placement(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "test", "uid": "1"}
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": "Placement", "metadata": metadata, "spec": spec}


def cpu(number: int) -> dict[str, Any]:
    configuration = {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"}}
    return placement(
        numberOfClusters=number, prioritizerPolicy={"mode": "Exact", "configurations": [configuration | {"weight": 1}]}
    )


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["place", *words], env={"COLUMNS": "160"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_a_placement_explained_as_a_table(tmp_path: Path) -> None:
    code, said = run("explain", "p", "-n", "test", "--from", str(a_dump(tmp_path, cpu(1))))
    assert code == 0
    assert "test/p gets 1 of 4 clusters" in said
    lines = {line.split("│")[1].strip(): line for line in said.splitlines() if line.startswith("│")}
    assert "selected" in lines["c1"] and "100" in lines["c1"]
    assert "needs +76 to enter" in lines["c2"], "25 to 100, and one more since its name comes later"
    assert "gone:NoSelect, which is not tolerated" in lines["c3"]


def held(name: str) -> dict[str, Any]:
    """A decision for a cluster."""
    metadata = {"name": "p-decision-1", "namespace": "test", "labels": {f"{GROUP}/placement": "p"}}
    about = {"apiVersion": f"{GROUP}/v1beta1", "kind": "PlacementDecision", "metadata": metadata}
    return about | {"status": {"decisions": [{"clusterName": name, "reason": ""}]}}


@pytest.mark.parametrize(
    ("words", "annotation"),
    [
        pytest.param(["explain", "p", "--hysteresis", "40"], "", id="a flag"),
        pytest.param(["--hysteresis", "40", "explain", "p"], "", id="a flag before the word explain"),
        pytest.param(["explain", "p", "--hysteresis", "1"], "40", id="an annotation comes first"),
    ],
)
def test_what_hysteresis_keeps_is_explained(tmp_path: Path, words: list[str], annotation: str) -> None:
    wanted = cpu(1)
    if annotation:
        wanted["metadata"]["annotations"] = {"stowplan.io/hysteresis": annotation}
    file = a_dump(tmp_path, wanted, held("c2"))
    code, said = run(*words, "-n", "test", "--from", str(file))
    assert code == 0
    assert "Hysteresis: another cluster must have more than 80 points on a selected one" in said
    lines = {line.split("│")[1].strip(): line for line in said.splitlines() if line.startswith("│")}
    assert "selected, kept by hysteresis" in lines["c2"] and "needs +6 to enter" in lines["c1"]
    found = json.loads(run(*words, "-n", "test", "--from", str(file), "-o", "json")[1])
    assert (found["hysteresis"], found["selected"]) == (
        {"margin": 80, "kept": ["c2"]},
        [{"clusterName": "c2", "score": 25}],
    )


def test_without_hysteresis_nothing_is_said_of_it(tmp_path: Path) -> None:
    file = a_dump(tmp_path, cpu(1), held("c2"))
    code, said = run("explain", "p", "-n", "test", "--from", str(file), "-o", "json")
    found = json.loads(said)
    assert code == 0 and "hysteresis" not in found and found["selected"][0]["clusterName"] == "c1"


def test_a_placement_explained_as_json(tmp_path: Path) -> None:
    file = a_dump(tmp_path, cpu(5))
    code, said = run("explain", "placement/p", "-n", "test", "--from", str(file), "-o", "json")
    found = json.loads(said)
    assert code == 1, "the placement does not get all clusters"
    assert (found["kind"], found["unscheduled"], found["candidates"]) == ("PlacementExplanation", 2, 4)
    assert found["filteredPipelineResults"][-1] == {
        "name": "Predicate,TaintToleration",
        "filteredClusters": ["c1", "c2", "c4"],
    }
    assert [each["clusterName"] for each in found["aggregatedScores"]] == ["c1", "c2", "c4"]
    assert found["dropped"][0]["clusterName"] == "c3"
    code, said = run("explain", "p", "-n", "test", "--from", str(file), "-o", "yaml")
    assert yaml.safe_load(said) == found


def test_a_placement_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(cpu(2)))
    code, said = run("explain", "-f", str(file), "--from", str(a_dump(tmp_path)), "-o", "json")
    assert code == 0
    assert [each["clusterName"] for each in json.loads(said)["selected"]] == ["c1", "c2"]


def test_a_placement_that_cannot_be_decided(tmp_path: Path) -> None:
    bad = placement(prioritizerPolicy={"mode": "Sideways"})
    code, said = run("explain", "p", "-n", "test", "--from", str(a_dump(tmp_path, bad)))
    assert code == 1
    assert "spec.prioritizerPolicy.mode: incorrect prioritizer policy mode: Sideways" in said
    code, said = run("explain", "p", "-n", "test", "--from", str(tmp_path), "-o", "json")
    assert json.loads(said)["error"].startswith("spec.prioritizerPolicy.mode")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["explain"], "found neither NAME nor --filename", id="nothing to explain"),
        pytest.param(["explain", "pod/p", "--from", "."], "'pod/p' is not a placement", id="another kind"),
        pytest.param(["--hysteresis", "101"], "101 is not in the range 0<=x<=100", id="more than scores have"),
        pytest.param(
            ["--hysteresis", "5", "--compatibility", "ocm"], "found 5 with --compatibility=ocm", id="OCM has none"
        ),
        pytest.param(
            ["explain", "q", "--from", ".", "--hysteresis", "5", "--compatibility", "ocm"],
            "Open Cluster Management has no hysteresis; leave one of them out",
            id="OCM has none to explain",
        ),
        pytest.param(["explain", "q", "--from", "."], "there is no placement default/q", id="no such placement"),
        pytest.param(["explain", "-f", "nowhere.yaml", "--from", "."], "no such file", id="no such file"),
        pytest.param(["--reschedule-interval", "soon"], "'soon' is not a duration", id="not a duration"),
        pytest.param(["--reschedule-interval", "0s"], "found 0s", id="an interval of 0"),
        pytest.param(
            ["--leader-elect-renew-deadline", "20s"],
            "expected lease_duration > renew_deadline > retry_period",
            id="a lease too short",
        ),
        pytest.param(["--compatibility", "karmada"], "karmada", id="unknown compatibility"),
    ],
)
def test_invalid_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str) -> None:
    a_dump(tmp_path)
    monkeypatch.chdir(tmp_path)
    code, output = run(*words)
    assert code == 2 and said in output and "Traceback" not in output


def test_plugins_that_are_timed_decide_the_same() -> None:
    metrics = PlacementMetrics()
    plain, timed = (PlacementScheduler(policy) for policy in (clusters.policy(), metrics.timed(clusters.policy())))
    found = []
    for engine in (plain, timed):
        for each in (*BOUND, a_cluster("c1", cpu="10"), a_cluster("c2", cpu="7")):
            engine.handle(Put(each), fleets.NOW)
        found.append(engine.choose(fleets.a_placement(numberOfClusters=1), fleets.NOW).names)
    assert found[0] == found[1] == ["c1"]
    text = metrics.text("")[0].decode()
    assert 'scheduling_plugin_duration_seconds_count{name="placement_scheduling",plugin_name="Predicate"' in text
    wrong = ScoreCoordinate("AddOn", add_on=AddOnScore("r", "s"), when_missing="x")
    made = metrics.timed(clusters.policy()).add_on(wrong, 1)
    assert isinstance(made, Misconfigured)


@pytest.mark.parametrize(
    ("kind", "times"),
    [pytest.param("PlacementDecision", 1, id="a decision"), pytest.param("Placement", 0, id="another kind")],
)
def test_writes_of_decisions_are_timed_as_bindings(kind: str, times: int) -> None:
    ticks = iter((1.0, 3.5))
    metrics = PlacementMetrics(lambda: next(ticks))

    async def perform(action: Any) -> Result:
        return Result(action.id, 200)

    asyncio.run(metrics.timed_write(perform, Patch(kind=kind, key="ns/name", body={})))
    bound = metrics.registry.get_sample_value("scheduling_bind_duration_seconds_sum", {"name": "placement_scheduling"})
    assert bound == (2.5 if times else None)
    written = {"does": "patch", "kind": kind, "code": "200"}
    assert metrics.registry.get_sample_value("stowplan_placement_write_duration_seconds_sum", written) == 2.5
