"""The checks of cluster plugins: sound ones pass, and each kind of mistake is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.framework.plugin_checks import check_plugin, examine
from stowplan.plugin import Clusters, OneCluster, Placement, Reject, per_node
from stowplan.plugins.clusters import BUILT_IN
from stowplan.testing.builders import a_pod, from_yaml
from tests.placement.fleets import a_cluster, a_placement, a_score

UNTRIED = {"Predicate": {"filter": "no drawn placement has predicates"}}


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_plugins_of_stowplan_pass(name: str) -> None:
    tolerant = a_placement(tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSelect"}])
    assert check_plugin(BUILT_IN[name], placements=[tolerant], idle=UNTRIED.get(name), kind="cluster") == []


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
    assert check_plugin(Sound, twin=Twin()) == []
    assert check_plugin(Twin) == []


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


class Idle:
    def filter(self, placement: Placement, clusters: Clusters) -> Any:
        if placement.name == "mine":
            yield Reject(clusters.name != "c0", "cluster(s) were not c0")


class SaysNothing(Sound):
    def why(self, placement: Placement, cluster: OneCluster) -> Any:
        return 5


class NoReason(Sound):
    def why(self, placement: Placement, cluster: OneCluster) -> Any:
        return cluster.labels["none"]


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
        pytest.param(Vacuous, None, "filter fails: ZeroDivisionError", id="it fails for a label that its code names"),
        pytest.param(Idle, None, "filter never rejected a cluster: none of the 80 drawn placements", id="never acts"),
        pytest.param(Sound, OtherTwin(), "filter and its twin's fits disagree", id="another twin"),
        pytest.param(SaysNothing, None, "why gives a wrong answer: 5 for cluster c", id="a why that gives no text"),
        pytest.param(NoReason, None, "why fails: KeyError: 'none'", id="a why that raises"),
    ],
)
def test_mistakes_are_named(plugin: type, twin: Any, said: str) -> None:
    found = check_plugin(plugin, twin=twin)
    assert any(said in each for each in found), found
    assert all(each.startswith(f"{plugin.__name__}: ") for each in found)


GIVE = (
    "give placements that it acts on with --placements FILE (or placements= in check_plugin), and clusters and scores "
    "with --objects FILE (or objects= in check_plugin)"
)


def test_the_words_of_a_policy_make_it_act() -> None:
    fails, idle = check_plugin(Vacuous)
    assert fails.startswith("Vacuous: filter fails: ZeroDivisionError (test_plugin_checks.py:")
    assert "placement default/drawn, fleet" in fails
    assert idle.startswith("Vacuous: filter never rejected a cluster: none of the 80 drawn placements made it, and it ")
    assert idle.endswith(f"; mend that first, then {GIVE}")


class Hidden:
    """Nothing in its code tells which label it acts on."""

    def filter(self, placement: Placement, clusters: Clusters) -> Any:
        if placement.labels.get("".join(("hea", "vy"))) == "!true!"[1:5]:
            yield Reject(clusters.label("region") != "a", "cluster(s) were outside of a")

    def score(self, placement: Placement, clusters: Clusters) -> Any:
        return clusters.score("".join(("pri", "ces")), "hour").values


class Same:
    def score(self, placement: Placement, clusters: Clusters) -> Any:
        return 7


class Silent:
    def score(self, placement: Placement, clusters: Clusters) -> Any:
        return None


def test_a_policy_that_acts_on_nothing_that_was_drawn() -> None:
    filters, scores = check_plugin(Hidden())
    assert "filter never rejected a cluster: none of the 80 drawn placements made it; line " in filters
    assert "score never preferred one cluster to another: none of the 80 drawn placements made it; " in scores
    assert filters.endswith(GIVE) and scores.endswith(GIVE)
    for each in (Same, Silent):
        (problem,) = check_plugin(each())
        assert problem.startswith(f"{each.__name__}: score never preferred one cluster to another: none of the ")
        assert check_plugin(each(), idle={"score": "another test has its scores"}) == []


def test_placements_and_objects_that_it_acts_on() -> None:
    heavy = from_yaml(Placement, "{metadata: {name: heavy, namespace: default, labels: {heavy: 'true'}}}")
    dear = [a_cluster("dear"), a_score("dear", "prices", hour=90), a_cluster("cheap"), a_score("cheap", "prices")]
    (scores,) = check_plugin(Hidden(), placements=[heavy])
    assert "score never preferred" in scores
    assert check_plugin(Hidden(), placements=[heavy], objects=dear) == []


def test_a_placement_that_a_plugin_acts_on() -> None:
    assert check_plugin(Idle, placements=[a_placement("mine")]) == []
    assert check_plugin(Idle, idle={"filter": "it acts on one placement"}) == []


class Filters:
    def filter(self, placement: Placement, clusters: Clusters) -> Any:
        yield Reject(np.ones(len(clusters), np.bool_), "cluster(s) were none")

    def score(self, placement: Placement, clusters: Clusters) -> Any:
        return clusters.allocatable["cpu"] // 1000


def test_a_score_that_was_never_asked() -> None:
    (problem,) = check_plugin(Filters())
    assert "score was never called: filter left it nothing to do for all 80 drawn placements; give pl" in problem


# -- nodes or clusters


class Unclear:
    def score(self, about: Any, these: Any) -> Any:
        return np.arange(len(these)) % 2 * 0 + [int(name[1:]) for name in these.names]


def test_a_plugin_that_does_not_tell_what_it_chooses() -> None:
    assert check_plugin(Unclear()) == [
        "Unclear: neither parameters nor methods tell what it chooses; name the parameters of filter and score "
        "(pod, nodes) or (placement, clusters), or give kind="
    ]
    assert check_plugin(Unclear(), kind="cluster") == []
    assert check_plugin(Unclear(), kind="node") == []


def test_what_the_other_kind_is_asked_about() -> None:
    assert check_plugin(Sound(), pods=[a_pod()]) == ["Sound: it is for clusters, and is not asked about Pods"]
    (problem,) = check_plugin(ForNodes(), placements=[a_placement()], clusters=5)
    assert problem == "ForNodes: it is for nodes, and is not asked about Placements"


class ForNodes:
    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(nodes.label("disk") == "a", "node(s) had a")


def test_what_was_tried() -> None:
    found = examine(Sound(), clusters=10)
    assert (found.kind.about, found.asked, found.problems) == ("clusters", 20, [])
    assert {method: calls > say > 0 for method, (calls, say) in found.acted.items()} == {"filter": True, "score": True}
