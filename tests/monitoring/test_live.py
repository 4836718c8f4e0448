"""Alerts and dashboards on real runs: Prometheus scrapes our programs, which work at a real cluster.

The short run is for `make test`: every query of the dashboards of a scheduler is one that Prometheus can evaluate, and
those of a healthy scheduler have data. The long run makes trouble: each alert fires once, after it was quiet, and
each panel of every dashboard has data. In the long run times of alerts are shorter (`quick_rules`).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from stowplan.apps.cli import main
from tests.attacks.proxy import FINE, Proxy
from tests.controlplane.cluster import Cluster
from tests.controlplane.deployed import DEPLOY
from tests.controlplane.flags import free_port
from tests.controlplane.place_process import Hub, Placer
from tests.controlplane.plane import ControlPlane
from tests.controlplane.pod_groups import configuration, gang
from tests.controlplane.process import Program, until
from tests.controlplane.served_hub import a_served_hub, with_three_clusters
from tests.controlplane.spark import a_driver
from tests.controlplane.stowplan_process import Stowplan, a_live_pod, apply, bound, stowplan, wait_until_bound
from tests.embedded.running import EmbeddedCluster
from tests.monitoring.dashboards import panels
from tests.monitoring.prometheus import Prometheus, alerts, prometheus

LONG_LEASE = (
    "--leader-elect-lease-duration=900s", "--leader-elect-renew-deadline=800s", "--leader-elect-retry-period=500ms",
)  # fmt: skip
FAILING = {"scheduler: Plugin errors per second", "scheduler: Drift"}  # a healthy scheduler has nothing to show here
PAUSE = 3.0  # seconds
HELD = "held-by-nobody-of-ours"


def config(folder: Path) -> Path:
    """Groups, reservations, and a plugin that gets into trouble."""
    document = configuration(lease=True)
    enabled = document["profiles"][0]["plugins"]["multiPoint"]["enabled"]
    enabled += [{"name": "ResourceReservation"}, {"name": "troubled.py:Troubled"}]
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file


def arguments(folder: Path) -> tuple[str, ...]:
    return "--config", str(config(folder)), "--plugin-path", str(Path(__file__).parent)


def work(cluster: Cluster, namespace: str, program: Stowplan) -> None:
    """Something of everything: single pods, groups, an application of Spark, and pods that fit nowhere."""
    driver = a_driver("spark", "stowplan", 2)
    apply(cluster, namespace, driver, *gang("together", 3, cpu="100m"), *gang("waiting", 2, cpu="64"))
    apply(cluster, namespace, *(a_live_pod(f"plain-{each}", cpu="10m") for each in range(12)))
    wait_until_bound(cluster, namespace, 16, 120, program.explain)


def define(cluster: Cluster) -> None:
    cluster.kubectl("apply", "--kustomize", str(DEPLOY / "crds" / "kubenexus"))
    names = ("crd/resourcereservations.scheduling.kubenexus.io", "crd/podgroups.scheduling.x-k8s.io")
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", *names)


def test_the_dashboards_of_a_healthy_scheduler(embedded: EmbeddedCluster, tmp_path: Path) -> None:
    define(embedded)
    decisions = tmp_path / "decisions.jsonl"
    with (
        embedded.nodes(3, prefix="watched"),
        embedded.namespace("watched") as namespace,
        stowplan(embedded, "watched", *arguments(tmp_path), "--decision-log", str(decisions)) as program,
        prometheus(tmp_path / "prometheus", {"stowplan": program.port}) as found,
    ):
        program.wait_until_leading()
        work(embedded, namespace, program)
        wait_for_data(found, "scheduler", "groups", without=FAILING, meanwhile=more_work(embedded, namespace))
        for panel in panels():
            for query in panel.queries:
                found.query(query)  # an error fails, no data does not
        check_decisions(embedded, namespace, program, decisions)
        check_bundle(embedded, program, decisions, tmp_path / "bundle.tar.gz")


def check_decisions(cluster: Cluster, namespace: str, program: Stowplan, file: Path) -> None:
    """The log has the binding of each pod, after the decision for that node."""

    def events(name: str) -> dict[str, str]:
        lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        return {each["pod"]: each["node"] for each in lines if each["event"] == name and each["node"]}

    nodes = {f"{namespace}/{name}": node for name, node in bound(cluster, namespace).items()}
    until("each binding is in the log", lambda: events("bound") == nodes, 60, program.explain)
    assert nodes.items() <= events("decided").items()


def check_bundle(cluster: Cluster, program: Stowplan, decisions: Path, file: Path) -> None:
    words = ["bundle", "--pages", f"http://127.0.0.1:{program.port}", "--decision-log", str(decisions)]
    done = CliRunner().invoke(main, [*words, "--kubeconfig", str(cluster.kubeconfig()), "-o", str(file)])
    assert done.exit_code == 0, done.output
    for name in ("metrics.txt", "configz.json", "leader.txt", "livez.txt", "readyz.txt", "podgroups.json"):
        assert f"pages/127.0.0.1_{program.port}/{name}" in done.output
    assert "cluster/version.json" in done.output and "cluster/lease-stowplan.json" in done.output


def wait_for_data(
    found: Prometheus, *dashboards: str, without: Collection[str] = (), meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Every query of these dashboards has data, each at some time. `meanwhile`: something to do for the programs.

    A series that begins between two scrapes has no rate until it grows once more, so there must be more to do.
    """
    missing = {(panel.name, query) for panel in panels(*dashboards) for query in panel.queries}
    missing = {each for each in missing if each[0] not in without}
    next_at = 0.0

    def nothing_missing() -> bool:
        nonlocal next_at
        if time.monotonic() >= next_at:
            meanwhile()
            next_at = time.monotonic() + PAUSE
        missing.difference_update([each for each in missing if has_data(found.query(each[1]))])
        return not missing

    until("each panel has data", nothing_missing, 240, lambda: f"without data: {sorted(missing)}")


def more_work(cluster: Cluster, namespace: str) -> Callable[[], None]:
    numbers = itertools.count()

    def more() -> None:
        number = next(numbers)
        plain, member = a_live_pod(f"more-{number}", cpu="1m"), gang(f"more-group-{number}", 2, cpu="1m")
        apply(cluster, namespace, plain, *member)

    return more


def more_decisions(hub: Hub) -> Callable[[], None]:
    numbers = itertools.cycle((1, 2))
    return lambda: hub.place("p", numberOfClusters=next(numbers))


def has_data(series: list[dict[str, Any]]) -> bool:
    """A quantile of nothing is NaN."""
    return any(each["value"][1] != "NaN" for each in series)


# -- the long run


class Trouble:
    """A scheduler behind a proxy, replicas that wait for a lease, a hub with a score agent, and a Prometheus."""

    def __init__(
        self, plane: ControlPlane, namespace: str, proxy: Proxy, hub: Hub, found: Prometheus, second: Stowplan
    ) -> None:
        self.plane, self.namespace, self.proxy, self.hub = plane, namespace, proxy, hub
        self.prometheus, self.second = found, second

    def pods(self, trouble: str, number: int) -> None:
        made = [a_live_pod(f"{trouble}-{each}", cpu="1m") for each in range(number)]
        for pod in made:
            pod["metadata"]["labels"] = {"trouble": trouble}
        apply(self.plane, self.namespace, *made)

    def fires(self, name: str, seconds: float = 120) -> None:
        until(f"{name} fires", lambda: name in self.prometheus.firing(), seconds, self._explain)

    def is_quiet(self, name: str, seconds: float = 120) -> None:
        until(f"{name} is quiet", lambda: name not in self.prometheus.firing(), seconds, self._explain)

    def _explain(self) -> str:
        return f"firing: {sorted(self.prometheus.firing())}"


def errors(at: Trouble) -> None:
    at.pods("raises", 15)
    at.fires("StowplanErrorRate")
    at.fires("StowplanPluginFailing")


def slow_plugin(at: Trouble) -> None:
    at.pods("slow", 120)
    at.fires("StowplanQueueAge")
    at.fires("StowplanPluginSlow")


def drift(at: Trouble) -> None:
    at.pods("drift", 1)
    at.fires("StowplanDrift")


def slow_bindings(at: Trouble) -> None:
    at.proxy.mode = "delay"
    at.pods("bindings", 20)
    at.fires("StowplanBindLatency")
    at.proxy.mode = FINE


def silence(at: Trouble) -> None:
    at.proxy.mode = "blackhole"
    at.proxy.break_connections()
    at.fires("StowplanWatchStale", 300)
    at.proxy.mode = FINE
    at.proxy.break_connections()


def scores(at: Trouble) -> None:
    at.hub.score("c1", 90, validUntil="2020-01-01T00:00:00Z")
    at.fires("StowplanScoresExpired")
    at.hub.score("c2", 90, validUntil="2099-01-01T00:00:00+99:99")
    at.fires("StowplanUnreadableObjects")


def no_leader(at: Trouble) -> None:
    """Replicas are there, and somebody else has the lease."""
    at.fires("StowplanNoLeader")
    at.fires("StowplanPlacementNoLeader")


def down(at: Trouble) -> None:
    at.second.kill()
    at.fires("StowplanDown")


TROUBLES: tuple[tuple[Callable[[Trouble], None], tuple[str, ...]], ...] = (
    (errors, ("StowplanErrorRate", "StowplanPluginFailing")),
    (slow_plugin, ("StowplanQueueAge", "StowplanPluginSlow")),
    (drift, ("StowplanDrift",)),
    (slow_bindings, ("StowplanBindLatency",)),
    (silence, ("StowplanWatchStale",)),
    (scores, ("StowplanScoresExpired", "StowplanUnreadableObjects")),
    (no_leader, ("StowplanNoLeader", "StowplanPlacementNoLeader")),  # these fire from the beginning
    (down, ("StowplanDown",)),
)


@pytest.mark.full
@pytest.mark.controlplane
def test_each_alert_fires_once_and_each_panel_has_data(plane: ControlPlane, tmp_path: Path) -> None:
    assert {name for _, names in TROUBLES for name in names} == alerts().keys()
    with in_trouble(plane, tmp_path) as at:
        work(plane, at.namespace, at.second)
        fired = set[str]()
        for make, names in TROUBLES:
            if make is not no_leader:
                for name in names:
                    at.is_quiet(name)
            make(at)
            fired.update(names)
            if make is errors:
                wait_for_data(at.prometheus, "placement", meanwhile=more_decisions(at.hub))
        assert fired == alerts().keys()
        at.pods("raises", 5)
        wait_for_data(at.prometheus, "scheduler", "groups", meanwhile=more_work(plane, at.namespace))


@contextlib.contextmanager
def in_trouble(plane: ControlPlane, folder: Path) -> Iterator[Trouble]:
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        define(plane)
        enter(plane.nodes(3, prefix="troubled"))
        namespace = enter(plane.namespace("trouble"))
        served = enter(a_served_hub(plane, "troubled-hub"))
        hub = with_three_clusters(enter(served.namespace()))
        hub.place("p", numberOfClusters=2)
        proxy = enter(Proxy(plane.server))
        kubeconfig = proxy.kubeconfig(plane.kubeconfig(), folder / "via-proxy.kubeconfig")
        first = enter(stowplan(plane, "troubled", *arguments(folder), *LONG_LEASE, kubeconfig=kubeconfig))
        first.wait_until_leading()
        hold_lease(plane)
        waiting = ("--leader-elect-resource-name", HELD)
        second = enter(Stowplan(plane.kubeconfig(), plane.folder, "second", *waiting))
        second.wait_until_ready()
        placer = enter(Placer(plane.kubeconfig(), plane.folder, "second-place", *waiting))
        placer.wait_until_ready()
        agent = free_port()
        enter(score_agent(plane, folder, agent))
        targets = {
            "stowplan": first.port, "stowplan-second": second.port, "stowplan-placement": served.program.port,
            "stowplan-placement-second": placer.port, "stowplan-scores": agent,
        }  # fmt: skip
        found = enter(prometheus(folder / "prometheus", targets))
        yield Trouble(plane, namespace, proxy, hub, found, second)


@contextlib.contextmanager
def score_agent(plane: ControlPlane, folder: Path, port: int) -> Iterator[Program]:
    words = ["-m", "stowplan.apps.cli", "score-agent", "static", "--hub-kubeconfig", str(plane.kubeconfig())]
    words += ["--secure-port=0", f"--plain-port={port}", "--interval=1s", "--score-name=fixed", "--value=c3=7"]
    with Program(Path(sys.executable), words, folder / "agent.log") as program:
        yield program


def hold_lease(plane: ControlPlane) -> None:
    """Somebody holds the lease for an hour and does not renew it."""
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 3600, "leaseTransitions": 0}
    about = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": HELD}, "spec": spec}
    plane.api().must("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", about)
