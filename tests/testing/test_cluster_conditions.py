"""What waits look for, and what they tell of a cluster that is otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.testing import cluster_conditions
from stowplan.testing.cluster_conditions import Seen

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are free."}


def pod(name: str = "web", node: str = "", phase: str = "Pending", **metadata: Any) -> dict[str, Any]:
    conditions = [] if node else [UNSCHEDULABLE]
    spec = {"nodeName": node} if node else {}
    return {"metadata": {"name": name} | metadata, "spec": spec, "status": {"phase": phase, "conditions": conditions}}


def deployment(generation: int = 1, **status: Any) -> dict[str, Any]:
    return {"metadata": {"generation": generation}, "spec": {"replicas": 2}, "status": status}


RUNS, WAITS = pod("a", "n", "Running"), pod("b")
REFUSED = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(cluster_conditions.scheduled(pod(node="n")), Seen(True, "n"), id="scheduled: a node"),
        pytest.param(cluster_conditions.scheduled(None), Seen(False, "there is no such pod"), id="scheduled: no pod"),
        pytest.param(
            cluster_conditions.scheduled(pod()),
            Seen(False, "it is Pending without a node, Unschedulable: 0/2 nodes are free."),
            id="scheduled: why not",
        ),
        pytest.param(
            cluster_conditions.pending(pod(), "nodes are free"),
            Seen(True, "Unschedulable: 0/2 nodes are free."),
            id="pending: a part of the message",
        ),
        pytest.param(
            cluster_conditions.pending(pod(), "Unschedulable").met, True, id="pending: the reason of the condition"
        ),
        pytest.param(cluster_conditions.pending(pod(), "memory").met, False, id="pending: another reason"),
        pytest.param(
            cluster_conditions.pending({**pod(), "status": {}}, ""),
            Seen(False, "it is Pending without a node"),
            id="pending: nothing was said yet",
        ),
        pytest.param(
            cluster_conditions.pending(pod(node="n"), ""),
            Seen(False, "it is on n", final=True),
            id="pending: it is not",
        ),
        pytest.param(cluster_conditions.running([RUNS], None).met, True, id="running: one is enough"),
        pytest.param(cluster_conditions.running([RUNS], 2).met, False, id="running: one is too few"),
        pytest.param(cluster_conditions.running([RUNS, RUNS], 1).met, False, id="running: one too many"),
        pytest.param(cluster_conditions.running([], 0).met, True, id="running: none, as wanted"),
        pytest.param(cluster_conditions.running([], None).text, "there is no such pod", id="running: none"),
        pytest.param(
            cluster_conditions.running([RUNS, pod("c", deletionTimestamp="now")], 1).met, True, id="running: one leaves"
        ),
        pytest.param(
            cluster_conditions.running([RUNS, *7 * [WAITS]], 8).text,
            "; ".join(
                [
                    "1 of 8 are Running",
                    *5 * ["b is Pending without a node, Unschedulable: 0/2 nodes are free."],
                    "and 2 more",
                ]
            ),
            id="running: a few that are not are named",
        ),
        pytest.param(
            cluster_conditions.available(
                deployment(observedGeneration=1, replicas=2, updatedReplicas=2, availableReplicas=2)
            ).met,
            True,
            id="available: all replicas",
        ),
        pytest.param(
            cluster_conditions.available(
                deployment(2, observedGeneration=1, replicas=2, updatedReplicas=2, availableReplicas=2)
            ).met,
            False,
            id="available: of the last generation",
        ),
        pytest.param(
            cluster_conditions.available(
                deployment(observedGeneration=1, replicas=3, updatedReplicas=2, availableReplicas=3)
            ).met,
            False,
            id="available: an old replica is still there",
        ),
        pytest.param(
            cluster_conditions.available(deployment(observedGeneration=1, conditions=[REFUSED])).text,
            "0 of 2 replicas are updated and available; exceeded quota",
            id="available: refused pods",
        ),
    ],
)
def test_conditions(seen: object, expected: object) -> None:
    assert seen == expected
