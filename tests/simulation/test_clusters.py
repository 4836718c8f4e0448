"""Clusters: dumps, exports of kube-scheduler-simulator, templates; and what the API server would refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stowplan.objects.errors import ConfigError
from stowplan.simulation.clusters import documents, served
from stowplan.simulation.figures import figures
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.settings import RunSettings
from tests.simulation.runs import HEAD, NAMES, a_cluster, a_run

CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "10"}
NODE: dict[str, Any] = {
    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
    "status": {"allocatable": CAPACITY, "capacity": CAPACITY},
}  # fmt: skip


def a_pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def a_dump(*items: Any) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def test_pods_of_a_dump_keep_their_nodes_and_pending_ones_get_one() -> None:
    run = a_run([], a_dump(NODE, a_pod("a", nodeName="n"), a_pod("b")))
    pods = figures(run)["pods"]
    assert (pods["initial"], pods["arrived"], pods["placed"]) == (1, 1, 1)


def test_an_export_of_the_simulator_is_read() -> None:
    nameless = {key: value for key, value in NODE.items() if key not in ("apiVersion", "kind")}
    export: dict[str, Any] = {
        "nodes": [nameless],
        "pods": [a_pod("a")],
        "pvs": None,
        "schedulerConfig": {"profiles": []},
    }
    run = a_run([], json.dumps(export).encode())
    assert figures(run)["pods"]["placed"] == 1


def test_a_template_makes_nodes_in_zones_with_a_price() -> None:
    text = HEAD + "nodes: [{name: w, count: 3, capacity: {cpu: 2}, zones: [a, b], price: 0.5}]"
    found = [document for _, document in documents(text.encode(), "c.yaml", InputProblems())]
    assert [each["metadata"]["labels"]["topology.kubernetes.io/zone"] for each in found] == ["a", "b", "a"]
    assert found[0]["metadata"]["annotations"] == {"stowplan.io/price-per-hour": "0.5"}
    assert found[2]["status"]["allocatable"] == {"cpu": "2", "pods": "110"}


def test_a_cluster_with_cron_jobs_needs_an_end() -> None:
    template = {"spec": {"template": {"spec": {**a_pod("x")["spec"], "restartPolicy": "Never"}}}}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"},
            "spec": {"schedule": "0 * * * *", "jobTemplate": template}}  # fmt: skip
    with pytest.raises(ConfigError, match="never end; say when"):
        a_run([], a_dump(NODE, cron))
    assert figures(a_run([], a_dump(NODE, cron), until=7300))["pods"]["placed"] == 2


WRONG = [
    ("nodes: [{count: -1}]", "c.yaml: nodes[0].count: found -1"),
    ("nodes: [{capacity: {cpu: much}}]", "c.yaml: nodes[0].capacity.cpu: found 'much'"),
    ("objects: [{metadata: {name: a}}]", "c.yaml: objects[0]: not a Kubernetes object"),
    ("nodes: [{price: -1}]", "c.yaml: nodes[0].price: found -1"),
    ("nodes: [{cont: 1}]", "c.yaml: nodes[0].cont: unknown field"),
]


@pytest.mark.parametrize(("text", "problem"), WRONG)
def test_a_template_that_makes_no_sense_is_named(text: str, problem: str) -> None:
    problems = InputProblems()
    assert list(documents((HEAD + text).encode(), "c.yaml", problems)) == []
    assert problem in problems.named[0]


def test_what_the_server_would_refuse_is_named_and_counted() -> None:
    with pytest.raises(ConfigError) as refused:
        a_cluster(a_dump(NODE, a_pod("Bad_Name"), a_pod("fine"), a_pod("none", containers=[])), RunSettings())
    text = str(refused.value)
    assert "2 entries" in text and "Pod Bad_Name: " in text and "Pod none: " in text


def test_a_pending_pod_for_no_profile_is_a_problem_and_one_with_a_node_is_none() -> None:
    problems = InputProblems(skip=True)
    pods = [a_pod("a", schedulerName="other"), a_pod("b", schedulerName="other", nodeName="n"), a_pod("c")]
    found = served([("d.json", each) for each in pods], NAMES, problems)
    assert [document["metadata"]["name"] for _, document in found] == ["b", "c"]
    assert "d.json: Pod a: no profile has the schedulerName 'other'" in problems.named[0]
