"""Fleets for tests of cluster policies: what is in them, what a policy says of them, and what is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stowplan.objects.placements import PlacementDecision
from stowplan.plugin import Clusters, ConfigError, Misconfigured, Placement, Reject
from stowplan.testing import (
    a_fleet,
    a_managed_cluster,
    a_placement,
    a_pod,
    a_score,
    a_state,
    check_plugin,
    chosen,
    from_yaml,
    refused,
    scored,
)

FLEET = (
    a_managed_cluster(
        "alder", cpu=8, resources={"example.com/gpu": 2}, labels={"region": "eu"}, taints=["slow:NoSelect"]
    ),
    a_managed_cluster("birch", cpu="500m", memory="1Gi", claims={"tier": "gold"}),
    a_score("birch", "prices", hourly=70),
)


def test_what_is_in_a_fleet() -> None:
    fleet = a_fleet(*FLEET, has=["birch"])
    assert fleet.names == ["alder", "birch"]
    assert fleet.allocatable["cpu"].tolist() == [8000, 500] and fleet.capacity["memory"].tolist() == [0, 2**30]
    assert fleet.allocatable["example.com/gpu"].tolist() == [2, 0]
    assert (fleet.label("region") == "eu").tolist() == [True, False]
    assert (fleet.claim("tier") == "gold").tolist() == [False, True]
    assert [len(each.taints) for each in fleet] == [1, 0]
    assert fleet.score("prices", "hourly").values.tolist() == [0, 70]
    assert (fleet.current.tolist(), fleet.decisions.tolist()) == ([False, True], [0, 0])


def test_decisions_of_other_placements() -> None:
    listed = from_yaml(PlacementDecision, "{metadata: {name: d}, status: {decisions: [{clusterName: alder}]}}")
    assert a_fleet(*FLEET, listed, has=["birch"], decisions={"alder": 2, "birch": 1}).decisions.tolist() == [3, 1]
    with pytest.raises(
        ValueError, match="decisions names 'adler', and there is no such cluster; did you mean \"alder\""
    ):
        a_fleet(*FLEET, decisions={"adler": 1})


class Fewest:
    """Prefers clusters that few placements have."""

    def score(self, placement: Placement, clusters: Clusters) -> Any:
        return -clusters.decisions


def test_a_score_that_counts_decisions_can_be_tested() -> None:
    assert scored(Fewest(), a_placement(), a_fleet(*FLEET, decisions={"birch": 2})) == {"alder": 0, "birch": -2}
    clusters = [a_managed_cluster("a"), a_managed_cluster("b")]
    assert chosen(a_placement(numberOfClusters=1), *clusters, decisions={"a": 1}) == ["b"]


@pytest.mark.parametrize("stranger", [a_placement("shop"), a_pod(), "alder"], ids=["a placement", "a pod", "a text"])
def test_what_a_fleet_has_no_place_for_is_refused(stranger: Any) -> None:
    due = "is nothing that a fleet has; ManagedCluster or AddOnPlacementScore or PlacementDecision was due"
    with pytest.raises(TypeError, match=due):
        a_fleet(*FLEET, stranger)
    with pytest.raises(TypeError, match=due):
        chosen(a_placement(), *FLEET, stranger)
    if not isinstance(stranger, str):
        with pytest.raises(TypeError, match=due):
            check_plugin(Fewest(), objects=[stranger])


def test_a_configuration_is_a_path() -> None:
    with pytest.raises(TypeError, match=r"must be a Path: chosen\(…, config=Path\('config.yaml'\)\)"):
        chosen(a_placement(), *FLEET, config="config.yaml")  # type: ignore[arg-type]


class Policy:
    def filter(self, placement: Placement, clusters: Clusters) -> Any:
        if placement.labels.get("region") == "mars":
            yield Misconfigured("no such region")
        yield Reject(clusters.label("region") != placement.labels.get("region", "eu"), "cluster(s) are elsewhere")

    def score(self, placement: Placement, clusters: Clusters) -> Any:
        price = clusters.score("prices", "hourly")
        return np.ma.masked_array(price.values, ~price.present) if placement.name != "free" else None


def test_what_a_policy_says() -> None:
    fleet = a_fleet(*FLEET)
    assert refused(Policy(), a_placement(), fleet) == {"birch": ("cluster(s) are elsewhere",)}
    wrong = {"alder": ("no such region",), "birch": ("no such region",)}
    assert refused(Policy(), a_placement(labels={"region": "mars"}), fleet) == wrong
    assert scored(Policy(), a_placement(), fleet) == {"birch": 70}
    assert scored(Policy(), a_placement("free"), fleet) is None


def test_pods_have_nodes_and_placements_have_clusters() -> None:
    with pytest.raises(AssertionError, match="clusters are chosen for a placement"):
        refused(Policy(), a_pod(), a_fleet(*FLEET))
    with pytest.raises(AssertionError, match="nodes are chosen for a pod"):
        scored(Policy(), a_placement(), a_state(nodes=["a"]))


CONFIG = """
apiVersion: placement.config.stowplan.io/v1
kind: PlacementConfiguration
plugins: {filter: {enabled: [{name: "mine.py:Policy"}]}}
"""
MINE = """
from stowplan.plugin import Misconfigured, Reject

class Policy:
    def filter(self, placement, clusters):
        if placement.annotations:
            yield Misconfigured("no annotations", path="metadata.annotations", remedy="drop them")
        yield Reject(clusters.label("region") != "eu", "cluster(s) are elsewhere")
"""


def test_what_is_chosen(tmp_path: Path) -> None:
    clusters = [a_managed_cluster("a", labels={"region": "eu"}), a_managed_cluster("b")]
    (tmp_path / "mine.py").write_text(MINE)
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    assert chosen(a_placement(namespace="shop"), *clusters) == ["a", "b"]
    assert chosen(a_placement(numberOfClusters=1), *clusters, has=["b"]) == ["b"]
    assert chosen(a_placement(), *clusters, config=config) == ["a"]
    with pytest.raises(ConfigError, match=r"mine.py:Policy: metadata.annotations: no annotations; drop them"):
        chosen(a_placement(annotations={"a": "b"}), *clusters, config=config)
