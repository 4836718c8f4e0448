"""Policies of others: what they may answer, how it counts, and what becomes of answers that are wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from stowplan.framework.placement.choice import PlacementChoice
from stowplan.plugin import Clusters, Misconfigured, OneCluster, Placement, Reject, per_node
from tests.framework.placement.policies import a_policy
from tests.placement.fleets import NOW, a_cluster, a_placement, a_score, chosen

FIVE: Any = 5
OBJECTS = [
    a_cluster("c1", labels={"region": "eu"}, cpu="4"),
    a_cluster("c2", labels={"region": "us"}, cpu="8"),
    a_cluster("c3", cpu="2"),
]


class InEurope:
    def __init__(self, region: str = "eu") -> None:
        self.region = region

    def filter(self, placement: Placement, clusters: Clusters) -> Iterator[Reject]:
        region = clusters.label("region")
        yield Reject(region != self.region, "cluster(s) were elsewhere")
        yield Reject(~region.present, "cluster(s) had no region")


class Explains(InEurope):
    def why(self, placement: Placement, cluster: OneCluster) -> str:
        return f"{placement.name}: it is in {cluster.labels['region']}" if cluster.labels.get("region") else ""


class BadlyExplained(InEurope):
    def why(self, placement: Placement, cluster: OneCluster) -> str:
        raise KeyError(cluster.name)


WHY = BadlyExplained.why.__code__.co_firstlineno + 1  # the line that raises


class Larger:
    def score(self, placement: Placement, clusters: Clusters) -> Any:
        return clusters.allocatable["cpu"] // 100


def decided(*plugins: type, placement: Placement | None = None, **how: Any) -> PlacementChoice:
    return chosen(placement or a_placement(numberOfClusters=1), OBJECTS, ocm=False, policy=a_policy(*plugins, **how))


@pytest.mark.parametrize(
    ("plugin", "reasons"),
    [
        pytest.param(InEurope, ["cluster(s) were elsewhere", "cluster(s) were elsewhere"], id="the first rejection's"),
        pytest.param(Explains, ["test: it is in us", "cluster(s) were elsewhere"], id="what why says, if anything"),
        pytest.param(
            BadlyExplained,
            [
                f"cluster(s) were elsewhere (its why failed: KeyError: '{name}' (test_third_party.py:{WHY}))"
                for name in ("c2", "c3")
            ],
            id="a why that fails",
        ),
    ],
)
def test_a_filter_and_its_reasons(plugin: type, reasons: list[str]) -> None:
    choice = decided(plugin)
    assert choice.names == ["c1"]
    assert list(choice.dropped()) == [
        (name, plugin.__name__, reason) for name, reason in zip(("c2", "c3"), reasons, strict=True)
    ]


def test_arguments_come_from_the_configuration() -> None:
    assert decided(InEurope, args={"InEurope": {"region": "us"}}).names == ["c2"]


def test_scores_count_with_their_weight() -> None:
    choice = decided(Larger, weight=3)
    assert choice.names == ["c2"]
    assert choice.totals_by_name() == {"c1": 100 + 3 * 40, "c2": 100 + 3 * 80, "c3": 100 + 3 * 20}
    assert decided(Larger, weight=-1).names == ["c3"]


def by(name: str, weight: int, mode: str = "Additive") -> Placement:
    configuration = {"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight}
    return a_placement(numberOfClusters=1, prioritizerPolicy={"mode": mode, "configurations": [configuration]})


@pytest.mark.parametrize(
    ("placement", "weights"),
    [
        pytest.param(a_placement(), {"Balance": 1, "Steady": 1, "Larger": 2, "TaintToleration": 3}, id="the defaults"),
        pytest.param(by("Larger", 5), {"Balance": 1, "Steady": 1, "Larger": 5, "TaintToleration": 3}, id="named"),
        pytest.param(by("Larger", 0), {"Balance": 1, "Steady": 1, "TaintToleration": 3}, id="switched off"),
        pytest.param(by("Larger", 5, "Exact"), {"TaintToleration": 3, "Larger": 5}, id="Exact, and named"),
        pytest.param(by("Steady", 1, "Exact"), {"TaintToleration": 3, "Steady": 1}, id="Exact, and not named"),
    ],
)
def test_a_placement_sets_weights(placement: Placement, weights: dict[str, int]) -> None:
    choice = decided(Larger, weight=2, placement=placement)
    assert {each.name: each.weight for each in choice.prioritized} == weights


def test_a_plugin_without_weight_waits_to_be_named() -> None:
    assert "Larger" not in {each.name for each in decided(Larger, weight=0).prioritized}
    assert decided(Larger, weight=0, placement=by("Larger", 1)).names == ["c2"]


def test_compatibility_has_no_additions_but_the_plugins_of_the_file() -> None:
    policy = a_policy(Larger, InEurope, ocm=True)
    choice = chosen(a_placement(), OBJECTS, ocm=True, policy=policy)
    assert [each.name for each in choice.prioritized] == ["Balance", "Steady", "Larger"]
    assert (policy.spread, policy.always) == (None, {})


# -- answers of all kinds


class Answering:
    answer: Any = None

    def score(self, placement: Placement, clusters: Clusters) -> Any:
        return self.answer(clusters) if callable(self.answer) else self.answer


@pytest.mark.parametrize(
    ("answer", "scores"),
    [
        pytest.param(None, [None, None, None], id="no opinion"),
        pytest.param(7, [7, 7, 7], id="one number for all"),
        pytest.param(lambda c: np.arange(len(c)), [0, 1, 2], id="a number for each"),
        pytest.param(lambda _: np.array([-100, 0, 100]), [-100, 0, 100], id="from end to end"),
        pytest.param(
            lambda _: np.ma.masked_array([1, 999, 3], [False, True, False]), [1, None, 3], id="none for a masked one"
        ),
    ],
)
def test_right_scores(monkeypatch: pytest.MonkeyPatch, answer: Any, scores: list[int | None]) -> None:
    monkeypatch.setattr(Answering, "answer", staticmethod(answer) if callable(answer) else answer)
    found = next(each.scored for each in decided(Answering).prioritized if each.name == "Answering")
    present = np.ones(3, np.bool_) if found.present is None else found.present
    assert [value if here else None for value, here in zip(found.values.tolist(), present, strict=True)] == scores
    assert all(value == 0 for value, here in zip(found.values.tolist(), present, strict=True) if not here)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(lambda _: 1 // 0, "ZeroDivisionError: integer division or modulo by zero", id="it raises"),
        pytest.param(101, "found 101", id="one number, too high"),
        pytest.param(True, "found True", id="true"),
        pytest.param(0.5, "found 0.5", id="a fraction"),
        pytest.param("high", "found 'high'", id="a text"),
        pytest.param(lambda c: np.full(len(c), -101), "must be within -100 and 100; found -101", id="too low"),
        pytest.param(lambda c: np.full(len(c), 2**63 - 1), f"found {2**63 - 1}", id="the largest number"),
        pytest.param(lambda c: np.zeros(len(c)), "found float64 of shape (3,)", id="fractions"),
        pytest.param(lambda c: np.full(len(c), np.nan), "found float64 of shape (3,)", id="no numbers"),
        pytest.param(lambda _: np.zeros(2, np.int64), "must be 3 int64, one per cluster; found int64", id="two"),
    ],
)
def test_wrong_scores_end_the_decision(monkeypatch: pytest.MonkeyPatch, answer: Any, said: str) -> None:
    monkeypatch.setattr(Answering, "answer", staticmethod(answer) if callable(answer) else answer)
    choice = decided(Answering)
    assert (choice.status.code, choice.status.plugin, choice.names) == ("Error", "Answering", [])
    assert choice.status.message.startswith('plugin "Answering" failed at score: ') and said in choice.status.message
    assert choice.error is not None and choice.error.point == "score"


class Filtering:
    answer: Any = None

    def filter(self, placement: Placement, clusters: Clusters) -> Any:
        return self.answer(clusters)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(lambda _: (each for each in [1 // 0]), "ZeroDivisionError", id="it raises"),
        pytest.param(lambda _: [5], "found 5; a filter yields Reject, or returns a list of them", id="a number"),
        pytest.param(lambda _: [Reject(np.zeros(2, np.bool_), "x")], "found bool of shape (2,)", id="two rows"),
        pytest.param(lambda _: [Reject(np.zeros(3, np.int64), "x")], "found int64 of shape (3,)", id="numbers"),
        pytest.param(lambda c: [Reject(c.current, FIVE)], "a reason must be a text; found 5", id="a reason of 5"),
        pytest.param(lambda _: [Misconfigured(FIVE)], "must be texts; found 5", id="a message of 5"),
    ],
)
def test_wrong_rejections_end_the_decision(monkeypatch: pytest.MonkeyPatch, answer: Any, said: str) -> None:
    monkeypatch.setattr(Filtering, "answer", staticmethod(answer))
    choice = decided(Filtering)
    assert (choice.status.code, choice.status.plugin, choice.names) == ("Error", "Filtering", [])
    assert said in choice.status.message


@pytest.mark.parametrize("answer", [lambda _: None, lambda _: [], lambda c: [Reject(c.current, "x")]])
def test_a_filter_that_rejects_nothing(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    monkeypatch.setattr(Filtering, "answer", staticmethod(answer))
    assert len(decided(Filtering, placement=a_placement()).names) == 3


@pytest.mark.parametrize("point", ["filter", "score"])
def test_a_placement_that_is_wrong(monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    plugin = {"filter": Filtering, "score": Answering}[point]
    wrong = Misconfigured("its tier is bronze", path="metadata.labels.tier", remedy="use gold")
    answer = (lambda _: [wrong]) if point == "filter" else (lambda _: wrong)
    monkeypatch.setattr(plugin, "answer", staticmethod(answer))
    choice = decided(plugin)
    assert (choice.status.code, choice.status.plugin, choice.names) == ("Misconfigured", plugin.__name__, [])
    assert choice.status.text == "metadata.labels.tier: its tier is bronze; use gold"
    assert list(choice.dropped()) == []


def test_no_plugin_is_asked_about_no_clusters() -> None:
    class Picky:
        def filter(self, placement: Placement, clusters: Clusters) -> Iterable[Reject]:
            assert len(clusters)
            return [Reject(np.ones(len(clusters), np.bool_), "no")]

        def score(self, placement: Placement, clusters: Clusters) -> int:
            return int(clusters.allocatable["cpu"].min())

    choice = chosen(a_placement(), [], ocm=False, policy=a_policy(Picky))
    assert (choice.status.code, [stage.name for stage in choice.stages][-1]) == ("Success", "Picky")
    assert decided(Picky).status.code == "Success"


# -- one cluster at a time, and time


@per_node
class OneByOne:
    def fits(self, placement: Placement, cluster: OneCluster) -> str | None:
        return None if cluster.labels.get("region") else "cluster(s) had no region"

    def rate(self, placement: Placement, cluster: OneCluster) -> int:
        return cluster.allocatable("cpu") // 100


def test_one_cluster_at_a_time() -> None:
    choice = decided(OneByOne)
    assert choice.names == ["c2"]
    assert list(choice.dropped()) == [("c3", "OneByOne", "cluster(s) had no region")]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        pytest.param(None, float("inf"), id="never"),
        pytest.param(NOW + 5, NOW + 5, id="soon"),
        pytest.param(NOW - 5, float("inf"), id="a moment that has passed"),
    ],
)
def test_when_time_changes_an_answer(moment: float | None, expected: float) -> None:
    class Timed(Larger):
        def changes_at(self, placement: Placement, clusters: Clusters) -> float | None:
            return moment

    assert decided(Timed).changes_at == expected


def test_a_moment_must_be_a_number() -> None:
    class Vague(Larger):
        def changes_at(self, placement: Placement, clusters: Clusters) -> Any:
            return "soon"

    choice = decided(Vague)
    assert (choice.status.code, choice.names) == ("Error", [])
    assert "plugin \"Vague\" failed at changes_at: answered 'soon'" in choice.status.message


def test_reads_are_noted_for_plugins_that_do_not_declare_them() -> None:
    class Prices:
        def score(self, placement: Placement, clusters: Clusters) -> Any:
            return clusters.score("cost", "hourly").values

    objects = [*OBJECTS, a_score("c1", "cost", hourly=5)]
    choice = chosen(a_placement(), objects, ocm=False, policy=a_policy(Prices))
    assert choice.reads == {("score", "cost", "hourly")}
    assert chosen(a_placement(), objects, ocm=False).reads == frozenset()


# -- names that mean something in the plugins that come with Stowplan only


class OwnHelpers(InEurope, Larger):
    """Its author uses these names for something else."""

    counts_always = True
    additions = ("filter", "score")

    def exclude(self, names: list[str]) -> list[str]:
        raise AssertionError("not ours to call")

    def warning(self) -> str:
        raise AssertionError("not ours to call")

    def lapses(self) -> None:
        raise AssertionError("not ours to call")

    def depends_on(self) -> None:
        raise AssertionError("not ours to call")

    def select(self, name: str) -> str:
        raise AssertionError("not ours to call")


@pytest.mark.parametrize("ocm", [False, True])
def test_helpers_of_a_plugin_are_its_own(ocm: bool) -> None:
    policy = a_policy(OwnHelpers, ocm=ocm)
    spreading = {"spreadConstraints": [{"topologyKey": "region", "topologyKeyType": "Label"}]}
    for placement in (a_placement(), a_placement(spreadPolicy=spreading)):
        policy.reads(placement)
        choice = chosen(placement, OBJECTS, ocm=ocm, policy=policy)
        assert (choice.status.code, choice.names) == ("Success", ["c1"])
    assert "OwnHelpers" in policy.defaults and "OwnHelpers" not in policy.always
    assert policy.tracked, "what it reads is noted"


def test_a_moment_that_cannot_be_told_ends_the_decision() -> None:
    class Lost(Larger):
        def changes_at(self, placement: Placement, clusters: Clusters) -> float | None:
            raise KeyError("calendar")

    choice = decided(Lost)
    assert (choice.status.code, choice.status.plugin, choice.names) == ("Error", "Lost", [])
    told = "plugin \"Lost\" failed at changes_at: KeyError: 'calendar' (test_third_party.py:"
    assert choice.status.message.startswith(told)
