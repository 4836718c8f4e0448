"""CEL expressions about clusters: what they see, what they may cost, and when they are evaluated again."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.fleet.one_cluster import OneCluster
from stowplan.columns.fleet.views import WholeFleet
from stowplan.framework.placement.choice import PlacementChoice, PlacementQuestion
from stowplan.framework.placement.interfaces import UnfinishedError
from stowplan.placement.write_plan import WritePlan
from stowplan.plugins.clusters import cel_selector
from stowplan.plugins.clusters.cel_selector import CelExpressions, CelWork, CompiledExpressions, compiled
from tests.placement.fleets import NOW, a_cluster, a_placement, a_question, a_score
from tests.placement.hub import Hub


def a_predicate(*expressions: str) -> dict[str, Any]:
    return {"requiredClusterSelector": {"celSelector": {"celExpressions": list(expressions)}}}


SEEN = a_cluster(
    "c1",
    labels={"version": "1.14.3", "zone": "b"},
    claims={"version": "1.14.3", "sku": '{"H100":[{"Standard_NC48":10},{"Standard_NC96":2}]}'},
    cpu="1500m",
    version={"kubernetes": "v1.31.2"},
)
SCORES = a_score("c1", "test-score", cpu=3, memory=4)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(r"managedCluster.metadata.labels['version'].matches('^1\\.(14|15)')", True, id="a label"),
        pytest.param(
            r"managedCluster.status.clusterClaims.exists(c, c.name == 'version' && c.value.matches('^1\\.14'))",
            True,
            id="a claim",
        ),
        pytest.param(
            "managedCluster.status.clusterClaims.exists(c, c.name == 'sku' &&"
            " c.value.parseJSON().H100.exists(e, e.Standard_NC96 == 2))",
            True,
            id="JSON in a claim",
        ),
        pytest.param(
            "managedCluster.scores('test-score').filter(s, s.name == 'cpu').all(e, e.value == 3)", True, id="a score"
        ),
        pytest.param(
            "managedCluster.scores('test-score').filter(s, s.name == 'cpu').all(e, e.value > 3)", False, id="too low"
        ),
        pytest.param(
            "managedCluster.scores('test-score').filter(s, s.name == 'x').all(e, e.value > 3)", True, id="no score"
        ),
        pytest.param("has(managedCluster.spec.taints)", False, id="no taints"),
        pytest.param("has(managedCluster.status.conditions)", True, id="a field that Go always writes"),
        pytest.param("managedCluster.status.allocatable.cpu == '1500m'", True, id="a quantity as a string"),
        pytest.param("managedCluster.status.?version.?kubernetes.hasValue()", True, id="the version"),
        pytest.param("managedCluster.metadata.nope == 1", False, id="an error: a field that is missing"),
        pytest.param("'[1'.parseJSON() == 1", False, id="an error: not JSON"),
        pytest.param("{'metadata': {'name': 'unknown'}}.scores('test-score').size() > 0", False, id="no such cluster"),
        pytest.param("'no cluster'.scores('test-score').size() > 0", False, id="scores of a string"),
    ],
)
def test_expressions_about_a_cluster(expression: str, expected: bool) -> None:
    question = a_question(a_placement(), [SEEN, SCORES])
    assert CelExpressions((expression,)).match(question.view(), 0)[0] is expected


SECRET = '{"metadata": {"name": "c2"}}.scores("test-score").exists(e, e.value == 77)'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(SECRET, False, id="another cluster's"),
        pytest.param(SECRET.replace("c2", "c1").replace("77", "3"), True, id="its own, by its name"),
        pytest.param("['x', 'y'].all(n, managedCluster.scores(n).size() > 0)", False, id="names that are made up"),
    ],
)
def test_an_expression_reads_the_scores_of_its_own_cluster_alone(expression: str, expected: bool) -> None:
    others = [a_cluster("c2"), a_score("c2", "test-score", cpu=77)]
    fleet = a_question(a_placement(), [SEEN, SCORES, *others]).view()
    assert CelExpressions((expression,)).match(fleet, fleet.table.row_of["c1"])[0] is expected
    assert fleet.table.known_scores("x") is None, "a name that no object has is not kept"


# -- what an expression costs

VERSIONED = a_cluster("c1", labels={"version": "1.14.3"})
LABEL = 'managedCluster.metadata.labels["version"] == "1.14.3"'
SEMVER = 'semver(managedCluster.metadata.labels["version"]).isLessThan(semver("1.30.0"))'


def cost(*expressions: str, no_cluster: bool = False) -> tuple[bool, int]:
    question = a_question(a_placement(), [VERSIONED])
    if no_cluster:
        question.fleet.clusters[0] = None
    matches, spent, _ = CelExpressions(expressions).match(question.view(), 0)
    return matches, spent


@pytest.mark.parametrize(
    ("expressions", "no_cluster", "expected"),
    [
        pytest.param([LABEL], False, (True, 5), id="a label's value"),
        pytest.param([LABEL, SEMVER], False, (True, 12), id="a label's value and a version"),
        pytest.param([LABEL], True, (False, 3), id="no cluster at all"),
        pytest.param([], False, (True, 0), id="no expression"),
        pytest.param(["[1, 2].all(x, x > 0)"], False, (True, 10 + 2 * (2 + 1 + 2) + 1), id="a list and a loop"),
    ],
)
def test_cost(expressions: list[str], no_cluster: bool, expected: tuple[bool, int]) -> None:
    assert cost(*expressions, no_cluster=no_cluster) == expected


def test_a_cluster_does_not_match_beyond_its_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel_selector, "MOST_PER_CLUSTER", 15)
    assert cost(LABEL, SEMVER) == (True, 12)
    matches, spent = cost(LABEL, SEMVER, SEMVER)
    assert not matches and spent > 15


SIXTY = str(list(range(60)))
ENDLESS = f"{SIXTY}.all(a, {SIXTY}.all(b, {SIXTY}.all(c, {SIXTY}.all(d, a + b + c + d >= 0))))"


def test_an_expression_ends_at_its_cost() -> None:
    selector = CelExpressions((ENDLESS,))
    question = a_question(a_placement(), [a_cluster(f"c{number}") for number in range(50)])
    matches, spent, _ = selector.match(question.view(), 0)
    assert not matches and cel_selector.MOST_PER_EXPRESSION < spent < cel_selector.MOST_PER_EXPRESSION + 100
    assert selector.match(question.view(), 1) == (
        False,
        0,
        float("inf"),
    )  # it is about no cluster, so it need not run again


BOMB = f'["{"a" * 4000}".replace("a", "{"a" * 1000}")].map(s, s.replace("a", s)).size() > 0'


def test_an_expression_that_costs_too_much_is_set_aside_with_a_condition() -> None:
    hub = Hub(a_cluster("c1"), a_cluster("c2"), a_placement(predicates=[a_predicate(BOMB)]), a_placement("plain"))
    hub.settle()
    found = hub.placement().condition("PlacementMisconfigured")
    assert found is not None and found.status == "True"
    assert "values would take more than" in found.message and "spec.predicates[0]" in found.message
    assert (hub.chosen(), hub.chosen("test/plain")) == ([], ["c1", "c2"])
    hub.put(a_placement(predicates=[a_predicate("managedCluster.metadata.name == 'c2'")]))
    hub.settle()
    assert hub.chosen() == ["c2"]
    assert hub.condition("PlacementMisconfigured") == ("False", "Succeedconfigured")


def test_an_expression_that_costs_too_much_for_one_cluster_does_not_match_that_cluster() -> None:
    large = a_cluster("c2", labels={"size": "large"})
    expression = f"managedCluster.metadata.?labels[?'size'].orValue('') != 'large' || {BOMB}"
    hub = Hub(a_cluster("c1"), large, a_placement(predicates=[a_predicate(expression)]))
    hub.settle()
    assert hub.chosen() == ["c1"]
    hub.put(a_cluster("c3", labels={"size": "large"}))
    hub.settle()
    assert hub.condition("PlacementMisconfigured") == ("True", "Misconfigured")
    assert hub.chosen() == ["c1"], "the last good decisions stay"
    hub.put(a_cluster("c2"))
    hub.put(a_cluster("c3"))
    hub.now += cel_selector.SET_ASIDE_FOR + 1
    hub.settle()
    assert hub.chosen() == ["c1", "c2", "c3"], "it is tried again after a while"


def test_open_cluster_management_says_nothing_about_an_expression_that_costs_too_much() -> None:
    hub = Hub(a_cluster("c1"), a_placement(predicates=[a_predicate(BOMB)]), ocm=True)
    hub.settle()
    assert hub.condition("PlacementMisconfigured") == ("False", "Succeedconfigured")
    assert hub.chosen() == []


def test_a_placement_has_a_limit_for_the_text_of_its_expressions() -> None:
    predicates = [a_predicate(f"'{'a' * 16_000}' == '{number}'") for number in range(5)]
    hub = Hub(a_cluster("c1"), a_placement(predicates=predicates))
    hub.settle()
    found = hub.placement().condition("PlacementMisconfigured")
    assert found is not None and "characters; 65536 are the most" in found.message


def test_the_compiled_expressions_that_were_not_used_for_long_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel_selector, "MOST_CACHED_TEXT", 1000)
    compiled = CompiledExpressions()
    for number in range(100):
        compiled((f"managedCluster.metadata.name == 'c{number}'",))
        assert compiled(("true",)) is compiled(("true",))
    assert 1 < len(compiled) < 30


def test_why_clusters_do_not_match_is_not_asked_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel_selector, "MOST_EXPLAINED", 20)
    question = a_question(a_placement(), [a_cluster(f"c{number}", labels={"version": "2"}) for number in range(9)])
    selector, fleet = CelExpressions((LABEL,)), question.view()
    found = [selector.why(OneCluster(fleet, row)).removeprefix(f"{LABEL} ") for row in range(9)]
    assert found == ["is false"] * 4 + ["is not true"] * 5


def test_a_decision_does_not_evaluate_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel_selector, "MOST_AT_ONCE", 20)
    objects = [a_cluster(f"c{number}", labels={"version": "1.14.3"}) for number in range(9)]
    question = a_question(a_placement(), objects, ocm=False)
    rows, selector = question.fleet.rows([f"c{number}" for number in range(9)]), CelExpressions((LABEL,))
    with pytest.raises(UnfinishedError):
        selector.matches(question.view(), rows, CelWork())
    assert selector.matches(question.view(), rows, CelWork()).all(), "it goes on where it was"


LABORIOUS = f"managedCluster.metadata.name != '' && {SIXTY}.all(a, {SIXTY}.all(b, {SIXTY}.exists(c, a + b + c > 40)))"


def test_others_are_decided_before_a_placement_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel_selector, "MOST_PER_EXPRESSION", 2_000_000)
    slow = [a_placement(f"slow-{number}", predicates=[a_predicate(LABORIOUS)]) for number in range(3)]
    hub = Hub(a_cluster("c1"), a_cluster("c2"), *slow, a_placement("plain"))
    decided = list[str]()

    def plan(choice: PlacementChoice, *_: object) -> WritePlan:
        decided.append(choice.question.placement.name)
        return WritePlan([])

    monkeypatch.setattr(hub.engine._planner, "plan", plan)
    for _ in range(20):
        hub.engine.step(hub.now)
    assert decided[0] == "plain" and sorted(decided[1:]) == ["slow-0", "slow-1", "slow-2"]


GOOD_SCORE = 'managedCluster.scores("demo").filter(s, s.name == "cpu").all(e, e.value > 80)'


def test_results_are_cached_until_what_they_read_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [
        *(a_cluster(f"c{number}") for number in (1, 2, 3)),
        *(a_score("c1", "demo", cpu=90), a_score("c2", "demo", cpu=70), a_score("c3", "demo", valid=-1, cpu=95)),
    ]
    question = a_question(a_placement(), objects, ocm=False)
    fleet, selector = question.fleet, compiled((GOOD_SCORE,))
    rows, runs = fleet.rows(["c1", "c2", "c3"]), list[int]()
    match = selector.match

    def counted(fleet: WholeFleet, row: int, limit: int, work: CelWork) -> tuple[bool, int, float]:
        runs.append(row)
        return match(fleet, row, limit, work)

    monkeypatch.setattr(selector, "match", counted)

    def ask(now: float = NOW) -> tuple[list[bool], int]:
        runs.clear()
        found = selector.matches(
            PlacementQuestion(question.placement, fleet, now, question.own).view(), rows, CelWork()
        ).tolist()
        return found, len(runs)

    assert ask() == ([True, False, False], 3)
    assert ask() == ([True, False, False], 0)
    fleet.put_score(a_score("c2", "demo", valid=10, cpu=85))
    assert ask() == ([True, True, False], 1)
    fleet.put_score(a_score("c2", "other", cpu=1))
    fleet.put(a_cluster("c2"))
    assert ask() == ([True, True, False], 0)
    assert ask(NOW + 11) == ([True, False, False], 1)
    fleet.put(a_cluster("c1", labels={"cloud": "none"}))
    assert ask(NOW + 11) == ([True, False, False], 1)
