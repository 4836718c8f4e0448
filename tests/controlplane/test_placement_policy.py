"""A policy of somebody else at both hubs: a file with an argument decides, and its changed configuration is adopted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import REAL_AT_LENGTH
from tests.controlplane.hubs import GROUP, define
from tests.controlplane.place_process import Hub, placing
from tests.controlplane.process import until

POLICY = '''
from stowplan.plugin import Clusters, Placement, Reject


class Certified:
    """Clusters whose claim has the wanted level; those with less cpu first, to fill them up."""

    def __init__(self, level: str) -> None:
        self.level = level

    def filter(self, placement: Placement, clusters: Clusters):
        if placement.labels.get("certified") != "no":
            yield Reject(clusters.claim("level") != self.level, f"cluster(s) were not certified for {self.level}")

    def score(self, placement: Placement, clusters: Clusters):
        return 100 - clusters.allocatable["cpu"] // 1000
'''
NAME = "certified.py:Certified"


def write(folder: Path, level: str) -> Path:
    (folder / "certified.py").write_text(POLICY)
    file = folder / "config.yaml"
    document = {
        "apiVersion": "placement.config.stowplan.io/v1",
        "kind": "PlacementConfiguration",
        "plugins": {"multiPoint": {"enabled": [{"name": NAME, "weight": 3}]}},
        "pluginConfig": [{"name": NAME, "args": {"level": level}}],
    }
    file.write_text(yaml.safe_dump(document))
    return file


@pytest.fixture(params=REAL_AT_LENGTH)
def hub(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hub]:
    """A hub at which placements are decided by a policy of a file, and three clusters."""
    found: Cluster = request.getfixturevalue(request.param)
    define(found)
    everywhere = f"/apis/{GROUP}/v1beta1/placementdecisions"

    def none_is_left() -> bool:
        answer = found.api().ask("GET", everywhere)  # 429 while the storage of a new definition is made
        return answer.status == 200 and not json.loads(answer.body)["items"]

    until("no decision is left", none_is_left, 60)
    with placing(found, "policy", *flags(write(tmp_path, "gold"))) as program, found.namespace("policy") as name:
        hub = Hub(found, name, program.explain)
        for cluster, level, cpu in (("p1", "gold", 8), ("p2", "gold", 4), ("p3", "silver", 2)):
            hub.a_cluster(cluster, cpu=(cpu, cpu), claims={"level": level})
        hub.bind()
        yield hub
        hub.tidy()
        found.api().must("DELETE", hub.path("placements"))
        found.api().must("DELETE", hub.path("placementdecisions"))
    found.check()


def flags(config: Path) -> list[str]:
    return ["--config", str(config), "--plugin-path", str(config.parent)]


def explained(hub: Hub, config: Path) -> dict[str, Any]:
    """The program as a user would call it."""
    words = ["place", "explain", "p", "-n", hub.namespace, *flags(config), "-o", "json"]
    command = [sys.executable, "-m", "stowplan.apps.cli", *words, "--kubeconfig", str(hub.cluster.kubeconfig())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_policy_of_a_file_decides(hub: Hub, tmp_path: Path) -> None:
    hub.place(numberOfClusters=1)
    hub.gets("p2")
    found = explained(hub, tmp_path / "config.yaml")
    reason = "cluster(s) were not certified for gold"
    assert found["dropped"] == [{"clusterName": "p3", "plugin": NAME, "reason": reason}]
    scores = next(each for each in found["prioritizeResults"] if each["name"] == NAME)
    assert (scores["weight"], scores["scores"]) == (3, {"p1": 92, "p2": 96})
    totals = {each["clusterName"]: each["score"] for each in found["aggregatedScores"]}
    assert totals["p2"] == 100 + 100 + 3 * 96, "Balance, Steady, and the policy three times"

    hub.change(hub.path("managedclusters", "p1"), more_room, "status")
    hub.place(numberOfClusters=2)
    hub.gets("p1", "p2")
    hub.change(hub.path("placements", "p"), lambda each: each["metadata"].update(labels={"certified": "no"}))
    hub.place(numberOfClusters=3)
    hub.gets("p1", "p2", "p3")

    write(tmp_path, "silver")
    hub.change(hub.path("placements", "p"), lambda each: each["metadata"].update(labels={}))
    hub.gets("p3")


def more_room(cluster: Any) -> None:
    cluster["status"]["allocatable"]["cpu"] = "3"
