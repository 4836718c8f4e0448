"""The log lines of the engine's reports, and their levels."""

from __future__ import annotations

import io
import re

import pytest

from stowplan.apps.logging import Log
from stowplan.apps.run import report_log
from stowplan.engine import reports

TRIED = reports.GroupAttempted("default/g", "p", 2, 3, whole=False, message="0/2 nodes fit")


def lines(what: reports.Report, v: int) -> str:
    stream = io.StringIO()
    report_log.write(Log(v, stream=stream), what)
    return re.sub(r"^(.).*? stowplan\] ", r"\1 ", stream.getvalue(), flags=re.MULTILINE).strip()


@pytest.mark.parametrize(
    ("what", "level", "line"),
    [
        pytest.param(
            reports.PodBound("default/a", "n", "p", 1, 0.0, False),
            2,
            'I "Successfully bound pod to node" pod="default/a" node="n"',
            id="a pod",
        ),
        pytest.param(
            reports.PodBound("default/a", "n", "p", 1, 0.0, False, "default/g"),
            4,
            'I "Successfully bound pod to node" pod="default/a" node="n"',
            id="a pod of a group",
        ),
        pytest.param(
            reports.AttemptFailed("default/a", "p", False, "no room"),
            2,
            'I "Unable to schedule pod; waiting" pod="default/a" err="no room"',
            id="an unschedulable pod",
        ),
        pytest.param(
            reports.AttemptFailed("default/a", "p", False, "no room", "default/g"),
            4,
            'I "Unable to schedule pod; waiting" pod="default/a" err="no room"',
            id="an unschedulable pod of a group",
        ),
        pytest.param(
            reports.AttemptFailed("default/a", "p", True, "oops"),
            0,
            'E "Error scheduling pod; retrying" pod="default/a" err="oops"',
            id="an error at any level",
        ),
        pytest.param(
            reports.PreemptionStarted("default/a", "n", 2),
            2,
            'I "Preempting" pod="default/a" node="n" victims=2',
            id="a preemption",
        ),
        pytest.param(
            reports.PermitWaited(1.23456, True, "default/a"),
            3,
            'I "Pod was permitted" pod="default/a" seconds=1.235',
            id="permitted",
        ),
        pytest.param(
            reports.PermitWaited(10.0, False, "default/a"),
            3,
            'I "Pod was not permitted" pod="default/a" seconds=10.0',
            id="not permitted",
        ),
        pytest.param(
            reports.GroupWaits("default/g", "2 of 3 pods exist"),
            3,
            'I "Pod group waits" group="default/g" why="2 of 3 pods exist"',
            id="a group with too few pods",
        ),
        pytest.param(
            reports.GroupAttempted("default/g", "p", 3, 3, whole=True),
            3,
            'I "Pod group has its nodes, binding when all are ready" group="default/g" pods=3',
            id="a group that has its nodes",
        ),
        pytest.param(
            TRIED,
            2,
            'I "Unable to schedule pod group; waiting" group="default/g" found=2 needed=3 err="0/2 nodes fit"',
            id="a group that does not fit",
        ),
        pytest.param(
            reports.AttemptFailed("default/a", "p", True, "oops", "default/g"),
            0,
            'E "Error scheduling pod; retrying" pod="default/a" err="oops"',
            id="a group with an error",
        ),
        pytest.param(
            reports.GroupComplete("default/g", 3, 1.5),
            2,
            'I "Pod group is complete" group="default/g" pods=3 seconds=1.5',
            id="a group that is complete",
        ),
        pytest.param(
            reports.GroupTimedOut("default/g", 10.0),
            2,
            'I "Pod group timed out, its nodes are released" group="default/g" seconds=10.0',
            id="a group that timed out",
        ),
        pytest.param(
            reports.GroupPartiallyBound("default/g", "a is bound", evicts=False),
            2,
            'I "Partially bound pod group is to be completed" group="default/g" why="a is bound"',
            id="a partially bound group",
        ),
        pytest.param(
            reports.GroupPartiallyBound("default/g", "a is bound", evicts=True),
            2,
            'I "Partially bound pod group is evicted" group="default/g" why="a is bound"',
            id="a partially bound group that is evicted",
        ),
    ],
)
def test_a_line_and_its_level(what: reports.Report, level: int, line: str) -> None:
    assert lines(what, level) == line
    assert level == 0 or lines(what, level - 1) == ""
