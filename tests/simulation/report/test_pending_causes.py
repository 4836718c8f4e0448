"""One cause for each pod that waits, from the scheduler's messages and from a real queue."""

from __future__ import annotations

import pytest

from stowplan.simulation.report.pending_causes import MOST_TEXT, NOT_TRIED, cause_of_message, causes_of
from stowplan.simulation.stream_events import Arrival
from tests.simulation.runs import a_cluster_text, a_run


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        pytest.param("0/5 nodes are available: 5 Insufficient cpu.", "Insufficient cpu", id="one reason"),
        pytest.param(
            "0/5 nodes are available: 3 Insufficient memory, 5 Insufficient cpu. preemption: 0/5 nodes are available: "
            "5 No preemption victims found for incoming pod.",
            "Insufficient cpu, memory",
            id="two reasons, and what preemption says",
        ),
        pytest.param(
            "0/9 nodes are available: 1 Insufficient nvidia.com/gpu, 8 node(s) didn't match Pod's node "
            "affinity/selector.",
            "Insufficient nvidia.com/gpu",
            id="most nodes are not for the pod",
        ),
        pytest.param(
            "0/9 nodes are available: 4 node(s) had untolerated taint(s), 5 node(s) were unschedulable.",
            "node(s) had untolerated taint(s); node(s) were unschedulable",
            id="no node is for the pod",
        ),
        pytest.param(
            "Pod group shop/web does not fit as a whole: 0/2 nodes are available: 2 Too many pods.",
            "Too many pods",
            id="a group",
        ),
        pytest.param(
            '0/2 nodes are available: persistentvolumeclaim "data-7" not found.',
            "persistentvolumeclaim not found",
            id="what is refused for all nodes, without names",
        ),
        pytest.param(
            "0/4 nodes are available: 1 Too many pods, 2 Insufficient memory, 3 Insufficient cpu, 4 node(s) were "
            "unschedulable.",
            "Insufficient cpu, memory; Too many pods",
            id="all that is scarce together",
        ),
        pytest.param("no nodes available to schedule pods", "no nodes available to schedule pods", id="no nodes"),
        pytest.param("", "rejected", id="no words"),
    ],
)
def test_a_message_has_a_cause(message: str, cause: str) -> None:
    assert cause_of_message(message) == cause


def test_a_long_cause_is_cut() -> None:
    assert len(cause_of_message("0/1 nodes are available: 1 " + "x" * 5000 + ".")) == MOST_TEXT


def pod(name: str, **spec: object) -> Arrival:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": spec.pop("cpu", "1")}}}
    document = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }  # fmt: skip
    return Arrival(at=0.0, file="pods", place=name, document=document)


def test_the_pods_of_a_queue_are_counted_by_cause() -> None:
    pods = [pod("one", cpu="9"), pod("two", cpu="9"), pod("gated", schedulingGates=[{"name": "example.com/wait"}])]
    pods += [pod("picky", nodeSelector={"disk": "fast"}), pod("fits")]
    run = a_run(pods, a_cluster_text(count=2, cpu=4), until=60.0)
    assert causes_of(run.engine.queue) == {
        "Insufficient cpu": 2, "held back by SchedulingGates": 1,
        "node(s) didn't match Pod's node affinity/selector": 1,
    }  # fmt: skip
    assert NOT_TRIED not in causes_of(run.engine.queue)
