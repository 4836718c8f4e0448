"""HTTP extenders, asked by a scheduler at a real control plane: filter, prioritize, preempt and bind."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.controlplane.flags import free_port
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import (
    Stowplan,
    a_live_pod,
    apply,
    bound,
    condition,
    noted,
    pods,
    stowplan,
    wait_until_bound,
)

FAVOURITE = "extended-2"
RESOURCE = "example.com/widget"


class Extender(ThreadingHTTPServer):
    """Keeps pods off the first node, likes the third best, binds by itself, and spares pods called "dear"."""

    def __init__(self, cluster: Cluster, *, capable: bool) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.cluster, self.capable = cluster, capable
        self.asked: list[tuple[str, Any]] = []
        self.fails = False
        self.answers = threading.Event()  # once it is set
        self.answers.set()

    def filter(self, body: Any) -> Any:
        names = body["NodeNames"] if self.capable else [each["metadata"]["name"] for each in body["Nodes"]["items"]]
        kept = [name for name in names if name != "extended-0"]
        refused = {name: "not this one" for name in names if name not in kept}
        if self.capable:
            return {"nodenames": kept, "failedNodes": refused}
        return {"Nodes": {"items": [each for each in body["Nodes"]["items"] if each["metadata"]["name"] in kept]}}

    def prioritize(self, body: Any) -> Any:
        names = body["NodeNames"] if self.capable else [each["metadata"]["name"] for each in body["Nodes"]["items"]]
        return [{"host": name, "score": 10 if name == FAVOURITE else 0} for name in names]

    def preempt(self, body: Any) -> Any:
        left = {}
        for node, victims in (body.get("NodeNameToVictims") or body["NodeNameToMetaVictims"]).items():
            pods = [{"UID": each.get("UID") or each["metadata"]["uid"]} for each in victims["Pods"]]
            if node == FAVOURITE:
                left[node] = {"Pods": pods, "NumPDBViolations": 0}
        return {"NodeNameToMetaVictims": left}

    def bind(self, body: Any) -> Any:
        path = f"/api/v1/namespaces/{body['PodNamespace']}/pods/{body['PodName']}/binding"
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": body["PodName"], "uid": body["PodUID"]},
            "target": {"kind": "Node", "name": body["Node"]},
        }
        answer = self.cluster.api().ask("POST", path, binding)
        return {"Error": "" if answer.status == 201 else answer.body.decode()}


class Handler(BaseHTTPRequestHandler):
    server: Extender

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verb = self.path.rpartition("/")[2]
        self.server.asked.append((verb, body))
        self.server.answers.wait(60)
        answer = {} if self.server.fails else getattr(self.server, verb)(body)
        text = json.dumps(answer).encode()
        with suppress(BrokenPipeError):  # the caller does not wait any more
            self.send_response(500 if self.server.fails else 200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def extended(
    cluster: Cluster,
    folder: Path,
    *,
    capable: bool = True,
    plugins: Mapping[str, Any] | None = None,
    dead: bool = False,
    **options: Any,
) -> Iterator[tuple[Extender, Stowplan]]:
    server = Extender(cluster, capable=capable)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    port = free_port() if dead else server.server_port
    extender = {"urlPrefix": f"http://127.0.0.1:{port}/e/", "nodeCacheCapable": capable, **options}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "stowplan", "plugins": dict(plugins or {})}],
        "extenders": [extender],
    }
    file = folder / "extended.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    try:
        with stowplan(cluster, f"extended-{server.server_port}", "--config", str(file)) as program:
            yield server, program
    finally:
        server.answers.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[list[str]]:
    with cluster.nodes(3, prefix="extended", capacity={"cpu": "4"}) as names:
        yield names


@pytest.mark.parametrize("capable", [pytest.param(True, id="names only"), pytest.param(False, id="whole nodes")])
def test_filter_prioritize_and_bind(
    cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path, capable: bool
) -> None:
    verbs: dict[str, Any] = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 5, "bindVerb": "bind"}
    with extended(cluster, tmp_path, capable=capable, **verbs) as (server, program):
        apply(cluster, namespace, *(a_live_pod(f"p{number}") for number in range(5)))
        wait_until_bound(cluster, namespace, 5, explain=program.explain)
        assert set(bound(cluster, namespace).values()) == {FAVOURITE}
        by_verb = dict(server.asked)
        assert set(by_verb) == {"filter", "prioritize", "bind"}
        assert by_verb["filter"]["Pod"]["spec"]["containers"], "the pod comes whole"
        if not capable:
            assert all(each["status"]["capacity"] for each in by_verb["filter"]["Nodes"]["items"]), "nodes, too"


@pytest.mark.parametrize(
    ("ignorable", "outcome"),
    [pytest.param(False, "SchedulerError", id="the pod waits"), pytest.param(True, "", id="it is done without")],
)
def test_an_extender_that_fails(
    cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path, ignorable: bool, outcome: str
) -> None:
    with extended(cluster, tmp_path, filterVerb="filter", ignorable=ignorable) as (server, program):
        server.fails = True
        apply(cluster, namespace, a_live_pod("web"))
        if ignorable:
            wait_until_bound(cluster, namespace, 1, explain=program.explain)
            return
        until(
            "it says so",
            lambda: condition(cluster, namespace, "web").get("reason") == outcome,
            60,
            program.explain,
        )
        assert "code 500" in condition(cluster, namespace, "web")["message"]
        server.fails = False
        wait_until_bound(cluster, namespace, 1, explain=program.explain)


@pytest.mark.parametrize("dead", [pytest.param(False, id="slow"), pytest.param(True, id="dead")])
@pytest.mark.parametrize(
    "ignorable", [pytest.param(False, id="the pod waits"), pytest.param(True, id="it is done without")]
)
def test_an_extender_that_does_not_answer(
    cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path, dead: bool, ignorable: bool
) -> None:
    """The extender answers after a minute, or does not listen; the scheduler does not wait longer than httpTimeout."""
    verbs: dict[str, Any] = {"filterVerb": "filter", "httpTimeout": "1s", "ignorable": ignorable}
    with extended(cluster, tmp_path, dead=dead, **verbs) as (server, program):
        server.answers.clear()
        apply(cluster, namespace, a_live_pod("web"))
        if ignorable:
            wait_until_bound(cluster, namespace, 1, seconds=55, explain=program.explain)  # before it would answer
            return
        until("it says so", lambda: condition(cluster, namespace, "web").get("message"), 60, program.explain)
        said = condition(cluster, namespace, "web")
        assert said["reason"] == "SchedulerError" and "http://127.0.0.1:" in said["message"]
        assert not bound(cluster, namespace)
        if not dead:
            server.answers.set()
            wait_until_bound(cluster, namespace, 1, explain=program.explain)


KUBENEXUS, SIGS = "pod-group.scheduling.kubenexus.io", "pod-group.scheduling.sigs.k8s.io"
UNDERSTOOD = {
    "multiPoint": {"enabled": [{"name": "Coscheduling"}, {"name": "PreExtender"}]},
    "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
}


def labelled(name: str, **labels: str) -> dict[str, Any]:
    pod = a_live_pod(name)
    pod["metadata"]["labels"] = labels
    return pod


def own_labels(pod: dict[str, Any]) -> dict[str, str]:
    """Without those that a server copies from the pod's node."""
    return {key: said for key, said in pod["metadata"]["labels"].items() if not key.startswith("topology.")}


def test_it_sees_application_role_and_group_however_they_are_spelt(
    cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    """It filters, prioritizes and binds a gang whose members spell their labels differently."""
    verbs: dict[str, Any] = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 5, "bindVerb": "bind"}
    driver = {"spark-app-selector": "pi", "spark-role": "driver", f"{SIGS}/name": "pi", f"{SIGS}/min-available": "2"}
    executor = {
        "scheduling.kubenexus.io/app-id": "pi",
        "scheduling.kubenexus.io/role": "executor",
        f"{KUBENEXUS}/name": "pi",
        f"{KUBENEXUS}/min-available": "2",
    }
    with extended(cluster, tmp_path, plugins=UNDERSTOOD, **verbs) as (server, program):
        apply(cluster, namespace, labelled("driver", **driver))
        until(
            "it waits for the other",
            lambda: any("1 of 2 pods exist" in each for each in noted(cluster, namespace, "driver")),
            60,
            program.explain,
        )
        assert not server.asked
        apply(cluster, namespace, labelled("executor", **executor))
        wait_until_bound(cluster, namespace, 2, explain=program.explain)
        assert set(bound(cluster, namespace).values()) == {FAVOURITE}
        assert {verb for verb, _ in server.asked} == {"filter", "prioritize", "bind"}
        group = {
            f"{each}/{word}": said
            for each in (KUBENEXUS, SIGS)
            for word, said in (("name", "pi"), ("min-available", "2"))
        }
        canonical = {"spark-app-id": "pi", **group}
        for _, body in (each for each in server.asked if each[0] != "bind"):
            found = body["Pod"]["metadata"]
            assert canonical.items() <= found["labels"].items()
            assert found["labels"]["spark-role"] == found["name"]
        there = {pod["metadata"]["name"]: own_labels(pod) for pod in pods(cluster, namespace)}
        assert there == {"driver": driver, "executor": executor}, "the pods themselves are as they were"


def test_labels_that_contradict_each_other(cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path) -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "PreExtender"}]}}
    with extended(cluster, tmp_path, plugins=plugins, filterVerb="filter") as (server, program):
        apply(cluster, namespace, labelled("web", **{"spark-app-id": "a", "scheduling.kubenexus.io/app-id": "b"}))
        until("it says so", lambda: condition(cluster, namespace, "web").get("message"), 60, program.explain)
        said = condition(cluster, namespace, "web")
        assert said["reason"] == "Unschedulable"
        assert "labels scheduling.kubenexus.io/app-id and spark-app-id contradict each other" in said["message"]
        assert not server.asked
        cluster.kubectl("-n", namespace, "label", "pod", "web", "spark-app-id-", "--overwrite")
        wait_until_bound(cluster, namespace, 1, explain=program.explain)


def test_only_pods_with_its_resources_are_its_business(
    cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    managed = [{"name": RESOURCE, "ignoredByScheduler": True}]
    with extended(cluster, tmp_path, filterVerb="filter", managedResources=managed) as (server, program):
        apply(cluster, namespace, a_live_pod("plain"))
        wait_until_bound(cluster, namespace, 1, explain=program.explain)
        assert not server.asked
        special = a_live_pod("special")
        limits = {"cpu": "100m", RESOURCE: "1"}
        special["spec"]["containers"][0]["resources"] = {"requests": limits, "limits": {RESOURCE: "1"}}
        apply(cluster, namespace, special)
        wait_until_bound(cluster, namespace, 2, explain=program.explain)
        assert [verb for verb, _ in server.asked] == ["filter"]
        assert bound(cluster, namespace)["special"] != "extended-0"


@pytest.mark.parametrize("capable", [pytest.param(True, id="uids only"), pytest.param(False, id="whole pods")])
def test_preempt(cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path, capable: bool) -> None:
    """Room could be made on any node; the extender lets it be made on its favourite only."""
    with extended(cluster, tmp_path, capable=capable, preemptVerb="preempt") as (server, program):
        apply(cluster, namespace, *(a_live_pod(f"low-{number}", cpu="3") for number in range(3)))
        wait_until_bound(cluster, namespace, 3, explain=program.explain)
        victim = next(name for name, node in bound(cluster, namespace).items() if node == FAVOURITE)
        apply(cluster, namespace, a_live_pod("high", cpu="3", priorityClassName="system-cluster-critical"))
        until("it has its place", lambda: bound(cluster, namespace).get("high"), 60, program.explain)
        assert bound(cluster, namespace)["high"] == FAVOURITE and victim not in bound(cluster, namespace)
        assert [verb for verb, _ in server.asked][:1] == ["preempt"]
