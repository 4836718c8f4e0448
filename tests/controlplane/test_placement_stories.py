"""The seed's user stories from end to end, with its YAML unchanged: a producer scores clusters, `stowplan place`
decides, and a workload follows.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import REAL_AT_LENGTH
from tests.controlplane.fixtures import kubectl
from tests.controlplane.http_fakes import Prometheus, ThirdParty, answering
from tests.controlplane.hubs import SEED, apply_status, define, wait_until_gone
from tests.controlplane.place_process import QUICK_LEASE, Hub, Placer, a_taint, placing
from tests.controlplane.process import Program, until
from tests.controlplane.stowplan_process import a_live_pod, apply
from tests.embedded.running import EmbeddedCluster, served

FLEET = ("cluster1", "cluster2", "cluster3", "cluster4", "primary", "backup")
NAMESPACE = "ns1"  # the seed's
EXAMPLE = Path(__file__).parents[2] / "examples" / "08-follow-decisions"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/database"
LEASE = "managed-cluster-lease"


@pytest.fixture(scope="module", params=REAL_AT_LENGTH)
def at_work(request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, Placer]]:
    found: Cluster = request.getfixturevalue(request.param)
    define(found)
    for name in (*FLEET, NAMESPACE):
        found.api().must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    with placing(found, "stories", "--taint-unavailable", *QUICK_LEASE) as program:
        yield found, program
    for name in (*FLEET, NAMESPACE):
        found.api().must("DELETE", f"/api/v1/namespaces/{name}")
    wait_until_gone(found, *FLEET, NAMESPACE)


@pytest.fixture
def hub(at_work: tuple[Cluster, Placer]) -> Iterator[Hub]:
    cluster, program = at_work
    hub = Hub(cluster, NAMESPACE, program.explain)
    hub.bind()
    yield hub
    hub.tidy()
    for plural in ("placements", "placementdecisions", "managedclustersetbindings"):
        cluster.api().must("DELETE", hub.path(plural))
    # The program may create a decision again if it sees it deleted before the placement; the next test wants none.
    until("no decision is left", lambda: not decisions_left(hub), 60, lambda: str(decisions_left(hub)))
    for name in FLEET:
        cluster.api().must("DELETE", hub.path("addonplacementscores", namespace=name))
    program.check()
    cluster.check()


def decisions_left(hub: Hub) -> list[Any]:
    """Decisions without a placement, which are deleted."""
    left: list[Any] = hub.api.must("GET", hub.path("placementdecisions"))["items"]
    for each in left:
        hub.api.ask("DELETE", hub.path("placementdecisions", each["metadata"]["name"]))
    return left


@pytest.fixture
def four(hub: Hub) -> Hub:
    hub.clusters(*FLEET[:4])
    return hub


def seed(hub: Hub, file: str) -> None:
    """As it stands."""
    hub.cluster.kubectl("apply", "--filename", str(SEED / file))


def gets(hub: Hub, *clusters: str, seconds: float = 60) -> None:
    hub.gets(*clusters, name="placement", seconds=seconds)


@contextlib.contextmanager
def agent(hub: Hub, folder: Path, producer: str, *arguments: str) -> Iterator[Program]:
    words = ["-m", "stowplan.apps.cli", "score-agent", producer, "--hub-kubeconfig", str(hub.cluster.kubeconfig())]
    words += ["--secure-port=0"]
    with Program(Path(sys.executable), [*words, "--interval", "1s", *arguments], folder / f"{producer}.log") as program:
        yield program
        program.check()


@pytest.fixture
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A cluster that is not the hub."""
    with served() as found:
        yield EmbeddedCluster(found, kubectl(request.config), tmp_path)


# --- story 1


def test_data_that_each_cluster_pushes(four: Hub, another: EmbeddedCluster, tmp_path: Path) -> None:
    push(four, another, tmp_path)


@pytest.mark.full
@pytest.mark.controlplane
def test_data_that_a_real_cluster_pushes(four: Hub, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    push(four, request.getfixturevalue("plane_137"), tmp_path)


def push(four: Hub, another: Cluster, folder: Path) -> None:
    """An agent in cluster1 measures it; the others say what they have."""
    for name, value in (("cluster2", 40), ("cluster3", 30), ("cluster4", 20)):
        four.score(name, value, name="cpuratio", resource="default")
    seed(four, "example-placement-most.yaml")
    gets(four, "cluster2", "cluster3", "cluster4")
    own = ("--cluster-name", "cluster1", "--kubeconfig", str(another.kubeconfig()))
    with another.nodes(1, prefix="pushing", capacity={"cpu": "10"}), agent(four, folder, "usage", *own):
        gets(four, "cluster1", "cluster2", "cluster3")
        with another.namespace() as place:
            apply(another, place, a_live_pod("busy", scheduler="nobody", cpu="9", nodeName="pushing-0"))
            gets(four, "cluster2", "cluster3", "cluster4")
            seed(four, "example-placement-least.yaml")
            gets(four, "cluster1")
            # Steady has three times the weight: cluster1 is held on to, the busiest of all.
            seed(four, "placement.yaml")
            gets(four, "cluster1", "cluster2", "cluster3")


# --- story 2


def test_metrics_collected_on_the_hub(four: Hub, tmp_path: Path) -> None:
    server = Prometheus(cluster1=10e9, cluster2=20e9, cluster3=30e9, cluster4=40e9)
    query = ("--url", server.url, "--query", server.METRIC, "--score-name", "cpuratio", "--bounds", "1G:100G")
    seed(four, "example-placement-most.yaml")
    with answering(server), agent(four, tmp_path, "prometheus", *query):
        gets(four, "cluster2", "cluster3", "cluster4")
        server.values["cluster1"] = 90e9
        gets(four, "cluster1", "cluster3", "cluster4")


# --- story 4


def test_scores_of_a_third_party(four: Hub, tmp_path: Path) -> None:
    ratios = zip(FLEET, (80.0, -20.0, 60.0, 10.0), strict=False)
    server = ThirdParty(**{name: {"cpuratio": value} for name, value in ratios})
    with answering(server), agent(four, tmp_path, "http", "--url", f"{server.url}/score"):
        seed(four, "example-placement-most.yaml")  # weight 1
        gets(four, "cluster1", "cluster3", "cluster4")
        seed(four, "example-placement-least.yaml")  # weight -1
        gets(four, "cluster2")
        server.scores["cluster3"]["cpuratio"] = -90
        gets(four, "cluster3")


# --- story 3


class Leases:
    """The agents of clusters, as far as they renew their leases."""

    def __init__(self, hub: Hub, *names: str) -> None:
        self._hub, self.alive = hub, {*names}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Leases:
        for name in self.alive:
            body = {"metadata": {"name": LEASE}, "spec": {"holderIdentity": LEASE, "renewTime": moment()}}
            self._hub.api.must("POST", self._path(name).rpartition("/")[0], body)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        for name in ("primary", "backup"):
            self._hub.api.ask("DELETE", self._path(name))

    def _path(self, name: str) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{name}/leases/{LEASE}"

    def _work(self) -> None:
        while not self._stop.wait(0.5):
            for name in tuple(self.alive):
                self._hub.change(self._path(name), lambda each: each["spec"].update(renewTime=moment()))


def moment() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@contextlib.contextmanager
def recovery(hub: Hub, folder: Path) -> Iterator[tuple[dict[str, EmbeddedCluster], Program]]:
    """Two clusters, the seed's scores and placement, and a workload that follows."""
    hub.clusters("primary", "backup", lease_seconds=2)  # five times that is the grace
    for name in ("primary", "backup"):
        apply_status(hub.cluster, (SEED / f"recovery-score-{name}.yaml").read_text())
    seed(hub, "recovery-placement.yaml")
    with contextlib.ExitStack() as stack:
        clusters: dict[str, EmbeddedCluster] = {}
        words = ["-m", "stowplan.apps.cli", "place", "follow", "ns1/placement", "-f", str(EXAMPLE / "workload.yaml")]
        words += ["--kubeconfig", str(hub.cluster.kubeconfig()), "--secure-port=0", "-v=2"]
        for name in ("primary", "backup"):
            (folder / name).mkdir()
            clusters[name] = EmbeddedCluster(stack.enter_context(served()), Path("kubectl"), folder / name)
            words += ["--cluster", f"{name}={clusters[name].kubeconfig()}"]
        follower = stack.enter_context(Program(Path(sys.executable), words, folder / "follow.log"))
        yield clusters, follower
        follower.check()


def runs_in(clusters: dict[str, EmbeddedCluster], name: str, explain: Any) -> None:
    def as_wanted() -> bool:
        return {each: found.api().answers(DEPLOYMENT) for each, found in clusters.items()} == {
            each: each == name for each in clusters
        }

    until(f"it runs in {name} only", as_wanted, 60, explain)


def test_a_workload_leaves_a_primary_that_is_dead(hub: Hub, tmp_path: Path) -> None:
    with Leases(hub, "primary", "backup") as leases, recovery(hub, tmp_path) as (clusters, follower):
        gets(hub, "primary")
        runs_in(clusters, "primary", follower.tail)
        leases.alive.discard("primary")
        gets(hub, "backup")

        def tainted() -> tuple[list[str], list[str]]:
            return hub.taints("primary"), hub.taints("backup")

        until("one is tainted", lambda: tainted() == (["unreachable:NoSelect"], []), 60, lambda: str(tainted()))
        runs_in(clusters, "backup", follower.tail)
        leases.alive.add("primary")
        gets(hub, "primary")
        until("none is", lambda: tainted() == ([], []), 60, lambda: str(tainted()))
        runs_in(clusters, "primary", follower.tail)


def test_a_workload_leaves_a_primary_that_was_tainted_by_hand(hub: Hub, tmp_path: Path) -> None:
    with recovery(hub, tmp_path) as (clusters, follower):
        gets(hub, "primary")
        runs_in(clusters, "primary", follower.tail)
        hub.taint("primary", a_taint("example.com/maintenance", "NoSelect"))
        gets(hub, "backup")
        runs_in(clusters, "backup", follower.tail)
        hub.taint("primary")
        gets(hub, "primary")
        runs_in(clusters, "primary", follower.tail)
