"""The checks of cluster plugins: sound ones pass, and each kind of mistake is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.framework.placement.plugin_checks import check_cluster_plugin
from stowplan.plugin import Clusters, OneCluster, Placement, Reject, per_node
from stowplan.plugins.clusters import BUILT_IN
from tests.placement.fleets import a_placement

UNTRIED = {"Predicate": ("filter",), "Spread": ("filter", "score")}


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_plugins_of_stowplan_pass(name: str) -> None:
    tolerant = a_placement(tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSelect"}])
    assert check_cluster_plugin(BUILT_IN[name], placements=[tolerant], idle=UNTRIED.get(name, ())) == []


class Sound:
    def filter(self, placement: Placement, clusters: Clusters) -> Any:
        yield Reject(clusters.label("region") == "a", "cluster(s) were in a")

    def score(self, placement: Placement, clusters: Clusters) -> Any:
        return np.minimum(clusters.allocatable["cpu"] // 1000, 100)


@per_node
class Twin:
    def fits(self, placement: Placement, cluster: OneCluster) -> str | None:
        return "cluster(s) were in a" if cluster.labels.get("region") == "a" else None

    def rate(self, placement: Placement, cluster: OneCluster) -> int:
        return min(cluster.allocatable("cpu") // 1000, 100)


def test_a_sound_plugin_and_its_twin() -> None:
    assert check_cluster_plugin(Sound, twin=Twin()) == []
    assert check_cluster_plugin(Twin) == []


class Nothing: ...


class Raises(Sound):
    def score(self, placement: Placement, clusters: Clusters) -> Any:
        return clusters.allocatable["cpu"] // 0 if len(clusters) < 1 else 1 // 0


class TooHigh(Sound):
    def score(self, placement: Placement, clusters: Clusters) -> Any:
        return clusters.allocatable["cpu"]


class Remembers:
    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def score(self, placement: Placement, clusters: Clusters) -> Any:
        now = {
            name: int(cpu) // 1000 % 100 for name, cpu in zip(clusters.names, clusters.allocatable["cpu"], strict=True)
        }
        self.seen = now | self.seen
        return np.array([self.seen[name] for name in clusters.names])


class ByPosition:
    def score(self, placement: Placement, clusters: Clusters) -> Any:
        return clusters.rows % 100


class Relative:
    def filter(self, placement: Placement, clusters: Clusters) -> Any:
        cpu = clusters.allocatable["cpu"]
        yield Reject(cpu < cpu.max(), "cluster(s) were not the largest")


class Writes:
    def score(self, placement: Placement, clusters: Clusters) -> Any:
        clusters.fleet.table.decided[0] += 1
        return 5


class Vacuous:
    def filter(self, placement: Placement, clusters: Clusters) -> Any:
        if placement.labels.get("heavy") == "true":
            raise ZeroDivisionError
        return ()


class OtherTwin:
    def fits(self, placement: Placement, cluster: OneCluster) -> str | None:
        return None


@pytest.mark.parametrize(
    ("plugin", "twin", "said"),
    [
        pytest.param(Nothing, None, "it has no method of any extension point", id="no method"),
        pytest.param(Raises, None, "score fails: ZeroDivisionError", id="it raises"),
        pytest.param(TooHigh, None, "score fails: scores must be within -100 and 100", id="too high"),
        pytest.param(Remembers, None, "score remembers what it was asked before", id="it keeps what it saw"),
        pytest.param(ByPosition, None, "score depends on the order of rows", id="by row"),
        pytest.param(Relative, None, "filter depends on which other clusters it is asked about", id="relative"),
        pytest.param(Writes, None, "it changed what it was shown: decisions", id="it writes"),
        pytest.param(Vacuous, None, "filter never rejected a cluster: none of the drawn placements", id="never acts"),
        pytest.param(Sound, OtherTwin(), "filter and its twin's fits disagree", id="another twin"),
    ],
)
def test_mistakes_are_named(plugin: type, twin: Any, said: str) -> None:
    found = check_cluster_plugin(plugin, twin=twin)
    assert any(said in each for each in found), found
    assert all(each.startswith(f"{plugin.__name__}: ") for each in found)


def test_words_make_a_plugin_act() -> None:
    found = check_cluster_plugin(Vacuous, texts=("heavy", "true"))
    assert len(found) == 1 and "filter fails: ZeroDivisionError" in found[0]
    assert check_cluster_plugin(Vacuous, idle=("filter",)) == []
