"""`--decision-log`: what is written of decisions, and that the file stays bounded, private and readable."""

from __future__ import annotations

import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from stowplan.apps.logging import Log
from stowplan.apps.run import decision_entries
from stowplan.apps.run.configuration import beside_kube_scheduler
from stowplan.apps.run.decision_file import DecisionFile
from stowplan.apps.run.options import RunOptions
from stowplan.apps.run.service import SchedulerService
from stowplan.engine import reports
from stowplan.framework.decision import Candidate, Decision, PostFilterResult
from stowplan.framework.evaluation import schedule_one
from stowplan.objects.errors import ConfigError
from stowplan.testing.builders import a_node, a_pod, a_profile, a_state

NODES = [a_node("a", cpu=4), a_node("b", cpu=1), a_node("d", cpu=8), *(a_node(f"n{each}", cpu=4) for each in range(5))]
MOMENT = datetime(2026, 11, 19, 8, 0, tzinfo=UTC)
SECRET = "hunter2"


def decided(name: str = "web", **wishes: Any) -> Decision:
    return schedule_one(a_pod(name, **{"cpu": 2, **wishes}), a_state(nodes=NODES), a_profile())


class Written:
    """A decision log in a folder of the test."""

    def __init__(self, file: Path, most: int = 1 << 20, share: float = 1.0) -> None:
        self.path, self.registry, self.said = file, CollectorRegistry(), io.StringIO()
        self.file = DecisionFile(file, most, share, self.registry, Log(stream=self.said), now=lambda: MOMENT)
        self.file.started(beside_kube_scheduler())

    def entries(self, name: str = "") -> list[dict[str, Any]]:
        file = self.path.with_name(name or self.path.name)
        return [json.loads(line) for line in file.read_text().splitlines()]

    def count(self, result: str) -> float:
        return self.registry.get_sample_value("stowplan_decision_log_lines_total", {"result": result}) or 0.0


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path / "decisions.jsonl")


def test_a_decision_for_a_node(written: Written) -> None:
    decision = decided()
    written.file.decided(decision)
    started, found = written.entries()
    assert (started["event"], started["schedulers"]) == ("started", ["stowplan"])
    assert (found["time"], found["config"]) == ("2026-11-19T08:00:00.000Z", started["config"])
    assert (found["event"], found["pod"], found["node"]) == ("decided", "default/web", decision.node)
    assert (found["nodes"], found["feasible"]) == (8, 7)
    assert found["rejections"] == [{"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 1}]
    assert len(found["scores"]) == decision_entries.BEST and decision.node in found["scores"]
    for each in found["scores"].values():
        assert each["total"] == sum(score * found["weights"][plugin] for plugin, score in each["plugins"].items())


def test_the_chosen_node_is_there_even_if_others_have_the_same_total(written: Written) -> None:
    nodes = [a_node(f"n{each}", cpu=4) for each in range(9)]
    decision = schedule_one(a_pod("web", cpu=2), a_state(nodes=nodes), a_profile())
    decision.node = "n8"
    assert next(iter(decision_entries.decided(decision)["scores"])) == "n8"
    decision.node = "n0"
    assert len(decision_entries.decided(decision)["scores"]) == decision_entries.BEST


def test_a_decision_without_a_node(written: Written) -> None:
    decision = decided(cpu=99)
    decision.post_filter = PostFilterResult(candidate=Candidate("a", (a_pod("low"),), 1))
    written.file.decided(decision)
    found = written.entries()[1]
    assert (found["node"], found["feasible"], found["error"]) == (None, 0, False)
    assert found["message"].startswith("0/8 nodes are available: 8 Insufficient cpu.")
    assert found["preempts"] == {"node": "a", "victims": ["default/low"], "budgetsViolated": 1}
    assert found["rejections"] == [{"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 8}]


@pytest.mark.parametrize(
    ("report", "event"),
    [
        pytest.param(reports.PodBound("shop/web", "a", "stowplan", 2, 0.0, False), "bound", id="a binding"),
        pytest.param(reports.BindingUnconfirmed("shop/web", "a"), "lost", id="a binding that was none"),
        pytest.param(reports.AttemptFailed("shop/web", "stowplan", True, "oops"), "failed", id="an error"),
        pytest.param(reports.PreemptionStarted("shop/web", "a", 3), "preempting", id="evictions"),
        pytest.param(reports.AttemptFailed("shop/web", "stowplan", False, "no"), "", id="decided says it already"),
        pytest.param(reports.GroupWaits("shop/g", "x"), "", id="what is no decision"),
    ],
)
def test_what_became_of_it(written: Written, report: reports.Report, event: str) -> None:
    written.file.reported(report)
    found = written.entries()[1:]
    assert [(each["event"], each["pod"]) for each in found] == ([(event, "shop/web")] if event else [])


def test_nothing_of_a_pod_is_in_it_but_its_name(written: Written) -> None:
    pod = a_pod("web", cpu=2, labels={"token": SECRET}, annotations={"password": SECRET})
    for wish in (pod, a_pod("big", cpu=99, labels={"token": SECRET}, annotations={"password": SECRET})):
        written.file.decided(schedule_one(wish, a_state(nodes=NODES), a_profile()))
    assert len(written.entries()) == 3 and SECRET not in written.path.read_text()


def test_only_the_owner_can_read_it(written: Written) -> None:
    assert written.path.stat().st_mode & 0o777 == 0o600


def test_two_files_of_the_size_and_no_more(tmp_path: Path) -> None:
    written = Written(tmp_path / "log", most=4000)
    for number in range(100):
        written.file.decided(decided(f"p{number}"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log", "log.1"]
    assert all(each.stat().st_size <= 4000 for each in tmp_path.iterdir())
    pods = [each["pod"] for each in written.entries("log.1") + written.entries()]
    assert pods == [f"default/p{number}" for number in range(100 - len(pods), 100)], "the latest ones, none left out"


def test_a_restart_adds_to_the_file(written: Written) -> None:
    written.file.decided(decided())
    again = Written(written.path)
    assert [each["event"] for each in again.entries()] == ["started", "decided", "started"]


def test_all_lines_about_a_sampled_pod_or_none(tmp_path: Path) -> None:
    written = Written(tmp_path / "log", share=0.3)
    decision = decided()
    for number in range(400):
        decision.pod = a_pod(f"p{number}")
        written.file.decided(decision)
        written.file.reported(reports.PodBound(f"default/p{number}", "a", "stowplan", 1, 0.0, False))
    events = [(each["pod"], each["event"]) for each in written.entries()[1:]]
    pods = {pod for pod, _ in events}
    assert 80 < len(pods) < 160 and sorted(events) == sorted(
        (pod, each) for pod in pods for each in ("bound", "decided")
    )
    nothing = Written(tmp_path / "nothing", share=0.0)
    nothing.file.decided(decision)
    assert len(nothing.entries()) == 1


def test_a_full_disk_costs_lines_and_nothing_else(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    real, room = os.write, [10, 0, None]

    def write(descriptor: int, line: bytes) -> int:
        left = room.pop(0) if room else None
        if left == 0:
            raise OSError(28, "No space left on device")
        return real(descriptor, line if left is None else line[:left])

    monkeypatch.setattr(os, "write", write)
    for number in range(3):
        written.file.decided(decided(f"p{number}"))
    *_, last = written.path.read_text().splitlines()
    assert json.loads(last)["pod"] == "default/p2", "a line that is there in part does not spoil the next"
    assert (written.count("lost"), written.count("written")) == (2, 2)
    assert written.said.getvalue().count("cannot be written") == 1
    assert written.said.getvalue().count("can be written again") == 1


@pytest.mark.parametrize("what", ["folder", "link", "missing"])
def test_a_path_that_cannot_be_used(tmp_path: Path, what: str) -> None:
    file = {"folder": tmp_path, "link": tmp_path / "link", "missing": tmp_path / "no" / "log"}[what]
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=r"cannot be written: .*; give --decision-log a path"):
        Written(file)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("v", [0, 4])
def test_the_scheduler_writes_it(tmp_path: Path, v: int) -> None:
    said, options = io.StringIO(), RunOptions(decision_log=tmp_path / "log", v=v)
    service = SchedulerService(options, beside_kube_scheduler, Log(v, stream=said))
    service.engine_loop.engine.decisions.keep(decided())
    service._report(reports.PodBound("default/web", "a", "stowplan", 1, 0.0, False))
    events = [json.loads(line)["event"] for line in (tmp_path / "log").read_text().splitlines()]
    assert events == ["started", "decided", "bound"]
    assert ("Decided about pod" in said.getvalue()) == (v == 4)
    assert b"stowplan_decision_log_lines_total" in service.metrics.text()[0]
