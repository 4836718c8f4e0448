"""`stowplan place` at a hub that has no definitions yet, and one that loses one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.fixtures import kubectl
from tests.controlplane.hubs import CRDS, GROUP, define
from tests.controlplane.place_process import Hub, Placer, a_taint, exact
from tests.controlplane.process import until
from tests.embedded.running import EmbeddedCluster, served

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def bare(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A hub of the test's own, without the definitions."""
    with served() as found:
        cluster = EmbeddedCluster(found, kubectl(request.config), tmp_path)
        for file in CRDS.glob("*.io.yaml"):
            cluster.api().must("DELETE", f"{DEFINITIONS}/{file.stem}")
        yield cluster


def test_definitions_are_waited_for(bare: EmbeddedCluster) -> None:
    with Placer(bare.kubeconfig(), bare.folder, "bare", "--leader-elect=false") as program:
        until("it has looked", lambda: "until the hub has these definitions" in program.tail(), 60, program.explain)
        until("it is well", lambda: program.answers("/healthz") == "ok", 60, program.explain)
        assert program.answers("/readyz") == ""
        define(bare)
        program.wait_until_ready()
        hub = Hub(bare, "default", program.explain)
        hub.clusters("c1", "c2")
        hub.bind()
        hub.place()
        hub.gets("c1", "c2")
        bare.api().must("DELETE", f"{DEFINITIONS}/managedclusters.{GROUP}")
        until("it is noticed", lambda: program.answers("/readyz") == "", 60, program.explain)
        assert program.page("/healthz") == "ok"
        define(bare)
        program.wait_until_ready()
        hub.gets()  # a definition takes its objects along


def test_no_more_than_open_cluster_management_does(bare: EmbeddedCluster) -> None:
    """With --compatibility ocm decisions have names alone, and a soft taint is no reason to go elsewhere."""
    define(bare)
    for compatibility, chosen, reason in (("ocm", "c1", ""), ("none", "c2", "BestScore")):
        words = ("--leader-elect=false", "--compatibility", compatibility)
        with Placer(bare.kubeconfig(), bare.folder, f"as-{compatibility}", *words) as program:
            program.wait_until_ready()
            hub = Hub(bare, "default", program.explain)
            hub.a_cluster("c1", taints=[a_taint("old", "PreferNoSelect")])
            hub.clusters("c2")
            hub.bind(f"set-{compatibility}", clusterSelector={"selectorType": "LabelSelector", "labelSelector": {}})
            hub.place(compatibility, numberOfClusters=1, prioritizerPolicy=exact())
            hub.gets(chosen, name=compatibility)
            (decision,) = hub.decisions(compatibility)
            assert decision["status"]["decisions"][0]["reason"] == reason
        hub.tidy()
