"""The seed's own files about placements, as they stand, on a real hub.

`stowplan place` decides as `deploy/placement` has it, with RBAC and leader election on.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from tests.controlplane import deployed_placement
from tests.controlplane.api import Api
from tests.controlplane.hubs import GROUP, PLACEHOLDER, SEED, apply_status, wait_until_gone
from tests.controlplane.place_process import Hub, a_taint
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until

pytestmark = pytest.mark.controlplane

NAMESPACE = "ns1"  # the seed's
CLUSTERS = ("cluster1", "cluster2", "cluster3", "cluster4", "primary", "backup")
ALL_FILES = {
    "addonplacementscore.yaml", PLACEHOLDER, "placement.yaml", "example-placement-most.yaml",
    "example-placement-least.yaml", "recovery-score-primary.yaml", "recovery-score-backup.yaml",
    "recovery-placement.yaml",
}  # fmt: skip


@pytest.fixture(scope="module")
def decided(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Program]]:
    folder = tmp_path_factory.mktemp("seed")
    with deployed_placement.granted(plane, folder):
        for name in (*CLUSTERS, NAMESPACE):
            plane.api().must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        with deployed_placement.running(plane, folder) as found:
            yield found
        for name in (*CLUSTERS, NAMESPACE):
            plane.api().must("DELETE", f"/api/v1/namespaces/{name}")
        wait_until_gone(plane, *CLUSTERS, NAMESPACE)


@pytest.fixture
def hub(plane: ControlPlane, decided: tuple[str, Program]) -> Iterator[Hub]:
    _, program = decided
    found = Hub(plane, NAMESPACE, program.tail)
    found.bind()
    yield found
    found.tidy()
    for plural in ("placements", "placementdecisions", "managedclustersetbindings"):
        plane.api().must("DELETE", found.path(plural))
    for name in CLUSTERS:
        plane.api().must("DELETE", found.path("addonplacementscores", namespace=name))


def applied(hub: Hub, file: str) -> None:
    """As it stands."""
    hub.cluster.kubectl("apply", "--filename", str(SEED / file))


def scored(hub: Hub, file: str) -> None:
    """As it stands, with its status."""
    apply_status(hub.cluster, (SEED / file).read_text())


def gets(hub: Hub, *clusters: str) -> None:
    hub.gets(*clusters, name="placement")


def written(hub: Hub) -> dict[str, int]:
    """The scores in the decisions."""
    found = [
        each for decision in hub.decisions("placement") for each in decision.get("status", {}).get("decisions", ())
    ]
    return {each["clusterName"]: each.get("score", 0) for each in found}


def explained(hub: Hub, url: str) -> dict[str, int]:
    """The totals of the same clusters, as the debug page says."""
    api = Api(url, token=hub.cluster.tokens["admin"])
    answer: Any = api.must("GET", f"/debug/placements/{NAMESPACE}/placement")
    totals = {each["clusterName"]: each["score"] for each in answer["aggregatedScores"]}
    return {name: totals[name] for name in written(hub)}


def test_no_file_is_left_out() -> None:
    assert {file.name for file in SEED.glob("*.yaml")} == ALL_FILES


def test_one_replica_leads(plane: ControlPlane, decided: tuple[str, Program]) -> None:
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{deployed_placement.NAMESPACE}/leases/stowplan-placement"
    assert plane.api().must("GET", lease)["spec"]["holderIdentity"]


def test_the_score_and_the_placement(hub: Hub, decided: tuple[str, Program]) -> None:
    """The score was valid until 2021: it counts as 0, and the placement says so. A valid one counts."""
    hub.clusters(*CLUSTERS[:4])
    scored(hub, "addonplacementscore.yaml")
    applied(hub, "placement.yaml")  # three, by Steady ×3 and cpuratio
    gets(hub, "cluster1", "cluster2", "cluster3")
    said = hub.says("PlacementSatisfied", "True", "AllDecisionsScheduled", name="placement")["message"]
    assert "AddOnPlacementScores cluster1/default expired" in said
    assert written(hub) == explained(hub, decided[0]) == dict.fromkeys(CLUSTERS[:3], 300)
    later = (datetime.now(UTC) + timedelta(minutes=15)).strftime("%Y-%m-%dT%H:%M:%SZ")
    path = hub.path("addonplacementscores", "default", "cluster1")
    hub.change(path, lambda each: each["status"].update(validUntil=later), "status")
    hub.score("cluster4", 100, name="cpuratio", resource="default")
    until("the score counts", lambda: explained(hub, decided[0])["cluster1"] == 388, 60, hub.explain)
    assert hub.chosen("placement") == ["cluster1", "cluster2", "cluster3"], "Steady outweighs 100"


def test_the_scores_in_decisions_follow_the_weights(hub: Hub, decided: tuple[str, Program]) -> None:
    hub.clusters(*CLUSTERS[:3])
    for name, value in zip(CLUSTERS, (88, 10, 60), strict=False):
        hub.score(name, value, name="cpuratio", resource="default")
    applied(hub, "example-placement-most.yaml")
    until("scores", lambda: sorted(written(hub).values()) == [10, 60, 88], 60, hub.explain)
    applied(hub, "placement.yaml")
    wanted = {"cluster1": 388, "cluster2": 310, "cluster3": 360}
    until("scores by the new weights", lambda: written(hub) == wanted, 30, hub.explain)
    assert explained(hub, decided[0]) == wanted


def test_most_and_least(hub: Hub) -> None:
    """Stories 1, 2 and 4: whoever writes the scores, as the seed's example has them for each cluster."""
    hub.clusters(*CLUSTERS[:4])
    example = (SEED / PLACEHOLDER).read_text().replace("{managed cluster namespace}", "cluster1")
    example = example.replace("prioritizer:", "name:")
    valid = yaml.safe_load(example)
    del valid["status"]["validUntil"]
    apply_status(hub.cluster, yaml.safe_dump(valid))
    for name, value in (("cluster2", 20), ("cluster3", 30), ("cluster4", 40)):
        hub.score(name, value, name="cpuratio", resource="default")
    applied(hub, "example-placement-most.yaml")
    gets(hub, "cluster1", "cluster3", "cluster4")
    applied(hub, "example-placement-least.yaml")
    gets(hub, "cluster2")


def test_recovery(hub: Hub) -> None:
    """Story 3. Two real members are in test_placement_failover.py."""
    hub.clusters("primary", "backup")
    scored(hub, "recovery-score-primary.yaml")
    scored(hub, "recovery-score-backup.yaml")
    applied(hub, "recovery-placement.yaml")
    gets(hub, "primary")
    hub.taint("primary", a_taint(f"{GROUP}/unavailable-by-hand", "NoSelect"))
    gets(hub, "backup")
    hub.taint("primary")
    gets(hub, "primary")
