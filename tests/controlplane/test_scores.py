"""`stowplan score-agent` at both clusters: usage of a cluster, a PromQL query, a scorer over HTTP, and fixed values."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import REAL_AT_LENGTH
from tests.controlplane.http_fakes import Prometheus, ThirdParty, answering
from tests.controlplane.hubs import GROUP, SEED, a_placement, apply_status, define, managed, score_status, scores_of
from tests.controlplane.process import Program, until
from tests.controlplane.stowplan_process import a_live_pod, apply

FLEET = ("east", "west", "north")


@pytest.fixture(scope="module", params=REAL_AT_LENGTH)
def fleet(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A hub with three clusters, and two that are a primary and a backup."""
    found: Cluster = request.getfixturevalue(request.param)
    define(found)
    with managed(found, *FLEET, "primary", "backup"):
        yield found


@pytest.fixture
def hub(fleet: Cluster) -> Iterator[Cluster]:
    """The same, without any scores."""
    yield fleet
    for name in (*FLEET, "primary", "backup"):
        fleet.api().must("DELETE", f"/apis/{GROUP}/v1alpha1/namespaces/{name}/addonplacementscores")
    fleet.check()


@pytest.fixture
def place(hub: Cluster) -> Iterator[str]:
    """A namespace of the hub."""
    with hub.namespace("scores") as name:
        yield name


def command(hub: Cluster, producer: str, *arguments: str) -> list[str]:
    words = ["-m", "stowplan.apps.cli", "score-agent", producer, "--hub-kubeconfig", str(hub.kubeconfig())]
    return [*words, "--secure-port=0", *arguments]


def run(hub: Cluster, producer: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One round."""
    words = [sys.executable, *command(hub, producer, *arguments, "--once", "-v", "2")]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)


@contextmanager
def running(hub: Cluster, folder: Path, producer: str, *arguments: str) -> Iterator[Program]:
    """At work, and told to stop at the end."""
    words = command(hub, producer, *arguments, "-v", "2")
    with Program(Path(sys.executable), words, folder / f"{producer}.log") as program:
        yield program
        program.check()
        program.stop(grace=90)
    assert program.code == 0, program.tail()


def version_of(hub: Cluster, name: str, resource: str = "default") -> str:
    path = f"/apis/{GROUP}/v1alpha1/namespaces/{name}/addonplacementscores/{resource}"
    return str(hub.api().must("GET", path)["metadata"]["resourceVersion"])


# --- one PromQL query


def query(server: Prometheus, *more: str) -> list[str]:
    return ["--url", server.url, "--query", server.METRIC, "--score-name", "mem", *more]


def test_a_query_becomes_scores_of_each_cluster(hub: Cluster) -> None:
    server = Prometheus(east=100e9, west=50.5e9, strange=7)
    with answering(server):
        done = run(hub, "prometheus", *query(server, "--bounds", "1G:100G"))
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
        assert [scores_of(hub, name) for name in FLEET] == [{"mem": 100}, {"mem": 0}, {}]
        status = score_status(hub, "east")
        assert status["conditions"][0]["status"] == "True"
        left = (datetime.fromisoformat(status["validUntil"]) - datetime.now(UTC)).total_seconds()
        assert 500 < left <= 600, "ten intervals, less a little"
        assert "strange" in done.stderr, "no such cluster"
        before = [version_of(hub, name) for name in ("east", "west")]
        assert run(hub, "prometheus", *query(server, "--bounds", "1G:100G")).returncode == 0
        assert [version_of(hub, name) for name in ("east", "west")] == before, "nothing is written that did not change"
    assert server.asked == [{"query": server.METRIC}] * 2


def test_a_query_over_the_fleet_and_a_cluster_that_drops_out(hub: Cluster, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("open sesame\n")
    server = Prometheus(east=10, west=20, north=15)
    with answering(server):
        assert run(hub, "prometheus", *query(server, "--token-file", str(token))).returncode == 0
        assert [scores_of(hub, name)["mem"] for name in FLEET] == [-100, 100, 0]
        server.values = {"east": 10, "west": 20, "north": "NaN"}
        assert run(hub, "prometheus", *query(server, "--less-is-better", "--over-fleet")).returncode == 0
    assert [scores_of(hub, name)["mem"] for name in FLEET] == [100, -100, 0], "the last one is as it was"
    (condition,) = score_status(hub, "north")["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "NoValue")
    assert server.tokens == ["Bearer open sesame", ""]


def test_queries_that_cannot_be_answered(hub: Cluster) -> None:
    server = Prometheus()
    with answering(server):
        done = run(hub, "prometheus", "--url", server.url, "--query", "free memory", "--score-name", "mem")
    assert done.returncode == 2
    assert "400 bad_data: parse error: unexpected identifier" in done.stderr and "Traceback" not in done.stderr
    done = run(hub, "prometheus", *query(server))  # the server is gone
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert scores_of(hub, "east") == {}


def test_an_agent_keeps_scores_up_to_date(hub: Cluster, tmp_path: Path) -> None:
    """A change of the metric, and a cluster that comes later."""
    server = Prometheus(east=0, west=100, south=50)
    arguments = query(server, "--interval", "1s", "--bounds", "0:100")
    with answering(server), running(hub, tmp_path, "prometheus", *arguments) as agent:
        until(
            "both are written",
            lambda: (scores_of(hub, "east"), scores_of(hub, "west")) == ({"mem": -100}, {"mem": 100}),
        )
        server.values["east"] = 75
        until("the change is written", lambda: scores_of(hub, "east") == {"mem": 50}, 60, agent.tail)
        with managed(hub, "south"):
            until("the new one is written", lambda: scores_of(hub, "south") == {"mem": 0}, 60, agent.tail)


# --- on demand


def test_scores_on_demand(hub: Cluster, tmp_path: Path, place: str) -> None:
    server = ThirdParty(east={"latency": 80, "sla": 10}, west={"latency": -80, "sla": 20})
    arguments = ("--url", f"{server.url}/score", "--on-demand", "--interval", "1s", "--resource-name", "demanded")
    with answering(server), running(hub, tmp_path, "http", *arguments) as agent:
        until("it has looked", lambda: "A round is done" in agent.tail(), 60, agent.tail)
        assert [scores_of(hub, name, "demanded") for name in FLEET] == [{}, {}, {}]
        assert server.asked == [], "no placement asks for scores"
        hub.kubectl("apply", "-n", place, "-f", "-", input=a_placement("p", ("demanded", "latency", 1)))
        until("it is written", lambda: scores_of(hub, "east", "demanded") == {"latency": 80}, 60, agent.tail)
        assert server.asked[-1]["scores"] == ["latency"]
        hub.kubectl("delete", "placement", "p", "-n", place)
        until("it stops asking", Quiet(server, agent), 120, agent.tail)  # one round may be under way
        server.scores["east"]["latency"] = 0
        until("it does not ask again", Quiet(server, agent), 120, agent.tail)
        assert scores_of(hub, "east", "demanded") == {"latency": 80}, "it expires in its own time"


class Quiet:
    """Whether three rounds passed without a question."""

    def __init__(self, server: ThirdParty, agent: Program) -> None:
        self._server, self._agent = server, agent
        self._asked, self._since = -1, 0

    def __call__(self) -> bool:
        asked, rounds = len(self._server.asked), self._agent.log.read_text().count("A round is done")
        if asked != self._asked:
            self._asked, self._since = asked, rounds
        return rounds >= self._since + 3


# --- a scorer over HTTP


def test_a_third_party_scores_clusters(hub: Cluster) -> None:
    server = ThirdParty(east={"latency": 80}, west={"latency": 250}, north={"latency": -12.9})
    with answering(server):
        done = run(hub, "http", "--url", f"{server.url}/score")
        assert done.returncode == 1, "one of them is no score"
        assert "scores.west.latency" in done.stderr and "250" in done.stderr
        assert [scores_of(hub, name) for name in FLEET] == [{"latency": 80}, {}, {"latency": -12}]
        done = run(hub, "http", "--url", f"{server.url}/score", "--bounds", "250:-12.9")
        assert done.returncode == 0, done.stderr
    assert [scores_of(hub, name)["latency"] for name in FLEET] == [29, -100, 100]
    described = {each["name"]: each for each in server.asked[0]["clusters"]}
    assert described["east"]["labels"] == {"name": "east"}


# --- fixed values


def test_a_primary_and_a_backup(hub: Cluster) -> None:
    """What it writes is what the seed shows for story 3, but for the time."""
    values = ("--resource-name", "disasterrecovery", "--score-name", "workload", "--value", "primary=100")
    assert run(hub, "static", *values, "--value", "backup=0").returncode == 0
    for name in ("primary", "backup"):
        wanted = yaml.safe_load((SEED / f"recovery-score-{name}.yaml").read_text())["status"]
        found = score_status(hub, name, "disasterrecovery")
        for each in (wanted, found):
            each["conditions"][0].pop("lastTransitionTime")
        assert found == wanted, "and no validUntil"


def test_the_seeds_own_scores_are_left_as_they_are(hub: Cluster) -> None:
    apply_status(hub, (SEED / "recovery-score-primary.yaml").read_text())
    before = version_of(hub, "primary", "disasterrecovery")
    values = ("--resource-name", "disasterrecovery", "--score-name", "workload", "--value", "primary=100")
    assert run(hub, "static", *values).returncode == 0
    assert version_of(hub, "primary", "disasterrecovery") == before


def test_a_dry_run_prints_what_would_be_written(hub: Cluster) -> None:
    words = [sys.executable, *command(hub, "static", "--score-name", "x", "--value", "east=7", "--dry-run")]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    (document,) = (each for each in yaml.safe_load_all(done.stdout) if each)
    assert (document["metadata"], document["status"]["scores"]) == (
        {"name": "default", "namespace": "east"},
        [{"name": "x", "value": 7}],
    )
    assert scores_of(hub, "east") == {}


# --- usage


def test_what_a_cluster_has_left(hub: Cluster, place: str, tmp_path: Path) -> None:
    """The cluster is its own hub here; two planes are in test_scores_deployed.py."""
    capacity = {"cpu": "10", "memory": "100G", "pods": "110"}
    own = ("--kubeconfig", str(hub.kubeconfig()), "--cluster-name", "east", "--cpu-bounds", "0:20")
    with (
        hub.nodes(1, prefix="usage", capacity=capacity),
        running(hub, tmp_path, "usage", *own, "--interval", "1s") as agent,
    ):
        wanted = {"cpuratio": 100, "memratio": 100, "cpu": 0, "mem": 100}
        until("an empty cluster", lambda: scores_of(hub, "east") == wanted, 60, agent.tail)
        pod = a_live_pod("busy", scheduler="nobody", cpu="5", nodeName="usage-0")
        pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "75G"
        apply(hub, place, pod)
        wanted = {"cpuratio": 0, "memratio": -50, "cpu": -50, "mem": -51}
        until("the pod counts", lambda: scores_of(hub, "east") == wanted, 60, agent.tail)
        hub.kubectl("cordon", "usage-0")
        until("no node takes pods", lambda: set(scores_of(hub, "east").values()) == {-100}, 60, agent.tail)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(
            ["--cluster-name", "nowhere"],
            2,
            "the hub has no ManagedCluster nowhere; register the cluster",
            id="no cluster",
        ),
        pytest.param(
            ["--cluster-name", "east", "--free", "gpu"],
            2,
            "--free: found 'gpu'",
            id="half a score",
        ),
    ],
)
def test_usage_that_cannot_be_written(hub: Cluster, arguments: list[str], code: int, said: str) -> None:
    done = run(hub, "usage", "--kubeconfig", str(hub.kubeconfig()), *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert said in done.stderr.replace("\\", "")


def test_a_hub_that_does_not_answer(hub: Cluster, tmp_path: Path) -> None:
    config: Any = yaml.safe_load(hub.kubeconfig().read_text())
    config["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:9"
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    words = ["-m", "stowplan.apps.cli", "score-agent", "usage", "--cluster-name", "east", "--once"]
    words += ["--kubeconfig", str(hub.kubeconfig()), "--hub-kubeconfig", str(tmp_path / "kubeconfig")]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2 and "127.0.0.1:9" in done.stderr and "Traceback" not in done.stderr
