"""The log lines of decisions, and their levels."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest

from stowplan.apps.logging import Log
from stowplan.apps.run import decision_lines
from stowplan.apps.run.configuration import beside_kube_scheduler
from stowplan.apps.run.options import RunOptions
from stowplan.apps.run.service import SchedulerService
from stowplan.framework.decision import UNRESOLVABLE, Decision, Verdict
from stowplan.framework.evaluation import schedule_one
from stowplan.testing.builders import a_node, a_pod, a_profile, a_state

NODES = [a_node("a", cpu=4), a_node("b", cpu=1), a_node("d", cpu=8)]
DECIDED = r'I "Decided about pod" pod="default/web" node="[ad]" evaluatedNodes=3 feasibleNodes=2'
VERDICTS = [
    'I "Node is feasible" pod="default/web" node="a"',
    'I "Node is rejected" pod="default/web" node="b" plugin="NodeResourcesFit" code="UnschedulableAndUnresolvable" '
    'reason="Insufficient cpu"',
    'I "Node is feasible" pod="default/web" node="d"',
]


def decided(**wishes: Any) -> Decision:
    return schedule_one(a_pod("web", **{"cpu": 2, **wishes}), a_state(nodes=NODES), a_profile())


def lines(decision: Decision, v: int, logging_format: str = "text") -> list[str]:
    stream = io.StringIO()
    decision_lines.write(Log(v, logging_format, stream=stream), decision)
    return re.sub(r"^(.).*? stowplan\] ", r"\1 ", stream.getvalue(), flags=re.MULTILINE).splitlines()


@pytest.mark.parametrize(("v", "kinds"), [(3, 0), (4, 1), (5, 2), (6, 3), (7, 3), (8, 4), (10, 4)])
def test_each_level_adds_its_lines(v: int, kinds: int) -> None:
    first = ["Decided", "Node is feasible", "Node is scored", "Trail of"]
    found = lines(decided(), v)
    assert [any(each in line for line in found) for each in first] == [number < kinds for number in range(4)]


def test_the_verdict_on_each_node() -> None:
    found = lines(decided(), 5)
    assert re.fullmatch(DECIDED, found[0]) and found[1:] == VERDICTS


def test_the_scores_of_each_feasible_node() -> None:
    scored = [line for line in lines(decided(), 6) if "is scored" in line]
    assert [re.findall(r'node="(\w)" total=\d+', line) for line in scored] == [["a"], ["d"]]
    assert all(re.search(r'scores=".*NodeResourcesFit \d+\*1, ', line) for line in scored)
    for line in scored:
        (total,) = re.findall(r"total=(\d+)", line)
        assert int(total) == sum(int(score) * int(weight) for score, weight in re.findall(r" (\d+)\*(\d+)", line))


def test_the_trail_is_what_the_page_shows() -> None:
    (line,) = (line for line in lines(decided(), 8, "json") if "Trail of" in line)
    trail = json.loads(json.loads(line)["trail"])
    assert trail["kind"] == "Decision" and trail["rejected"]["b"]["reasons"] == ["Insufficient cpu"]
    assert trail["scores"].keys() == {"a", "d"}


def test_a_pod_that_is_refused_as_a_whole() -> None:
    decision = decided()
    decision.node, decision.refused = None, Verdict("VolumeBinding", UNRESOLVABLE, ("no such claim",))
    refused, *others = lines(decision, 5)[1:]
    assert refused.startswith('I "Pod is rejected" pod="default/web" plugin="VolumeBinding"')
    assert not any("is feasible" in line for line in others), "no filter was asked"


@pytest.mark.parametrize(("v", "listens"), [(0, False), (3, False), (4, True), (10, True)])
def test_a_quiet_scheduler_does_not_listen(v: int, listens: bool) -> None:
    service = SchedulerService(RunOptions(), beside_kube_scheduler, Log(v, stream=io.StringIO()))
    assert (service.engine_loop.engine.decisions.on_decision is not None) == listens
