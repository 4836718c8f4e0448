"""Plugins that neither filter nor score: the queue's order, binding, and the dry run of preemption."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.framework.evaluation import schedule_one
from stowplan.objects.actions import Bind, PodRef
from stowplan.plugins import BUILT_IN
from stowplan.testing.builders import a_budget, a_node, a_pod, a_profile, a_state

DEFAULT = a_profile()
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def started(when: str) -> dict[str, Any]:
    return {"startTime": when}


def test_important_pods_go_first_then_those_that_waited_longest() -> None:
    key = BUILT_IN["PrioritySort"]().sort_key
    queue = [(a_pod("low"), 1.0), (a_pod("late", priority=5), 9.0), (a_pod("early", priority=5), 3.0)]
    assert [pod.name for pod, at in sorted(queue, key=lambda each: key(*each))] == ["early", "late", "low"]


def test_a_pod_is_bound_by_name_and_uid() -> None:
    pod = a_pod("p", namespace="n", uid="u")
    assert BUILT_IN["DefaultBinder"]().bind(pod, "a") == Bind(pod=PodRef("n", "p", "u"), node_name="a")


@pytest.mark.parametrize(
    ("cluster", "pod", "node", "victims"),
    [
        pytest.param(
            {"nodes": [a_node("a", cpu=2)], "pods": [a_pod("p", node="a", cpu=2)]},
            {"cpu": 2, "priority": 5},
            "a",
            ["p"],
            id="the one pod in the way",
        ),
        pytest.param(
            {
                "nodes": [a_node("a", cpu=3)],
                "pods": [
                    a_pod("p", node="a", cpu=1, priority=1),
                    a_pod("q", node="a", cpu=1),
                    a_pod("r", node="a", cpu=1),
                ],
            },
            {"cpu": 2, "priority": 5},
            "a",
            ["q", "r"],
            id="the less important ones, and no more than needed",
        ),
        pytest.param(
            {
                "nodes": [a_node("a", cpu=1), a_node("b", cpu=1)],
                "pods": [a_pod("p", node="a", cpu=1, priority=2), a_pod("q", node="b", cpu=1, priority=1)],
            },
            {"cpu": 1, "priority": 5},
            "b",
            ["q"],
            id="the node with the least important victim",
        ),
        pytest.param(
            {
                "nodes": [a_node("a", cpu=1), a_node("b", cpu=1)],
                "pods": [a_pod("p", node="a", cpu=1, labels={"app": "x"}), a_pod("q", node="b", cpu=1, priority=1)],
                "others": [a_budget(app="x")],
            },
            {"cpu": 1, "priority": 5},
            "b",
            ["q"],
            id="budgets go before priorities",
        ),
        pytest.param(
            {
                "nodes": [a_node("a", cpu=1), a_node("b", cpu=1)],
                "pods": [
                    a_pod("p", node="a", cpu=1, status=started(EARLY)),
                    a_pod("q", node="b", cpu=1, status=started(LATE)),
                ],
            },
            {"cpu": 1, "priority": 5},
            "b",
            ["q"],
            id="the one that started last",
        ),
        pytest.param(
            {"nodes": [a_node("a", cpu=1)], "pods": [a_pod("p", node="a", cpu=1, priority=5)]},
            {"cpu": 1, "priority": 5},
            None,
            [],
            id="nobody of equal importance",
        ),
        pytest.param(
            {"nodes": [a_node("a", cpu=1, unschedulable=True)], "pods": [a_pod("p", node="a", cpu=1)]},
            {"cpu": 1, "priority": 5},
            None,
            [],
            id="not where it would not help",
        ),
        pytest.param(
            {"nodes": [a_node("a", cpu=1)], "pods": [a_pod("p", node="a", cpu=1)]},
            {"cpu": 1, "priority": 5, "preemptionPolicy": "Never"},
            None,
            [],
            id="not by a pod that never does",
        ),
    ],
)
def test_who_would_be_evicted(cluster: Any, pod: dict[str, Any], node: str | None, victims: list[str]) -> None:
    decision = schedule_one(a_pod("incoming", **pod), a_state(**cluster), DEFAULT)
    candidate = decision.post_filter.candidate if decision.post_filter else None
    assert decision.node is None
    assert (candidate.node if candidate else None, [pod.name for pod in candidate.victims] if candidate else []) == (
        node,
        victims,
    )
