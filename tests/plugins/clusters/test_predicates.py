"""Predicates: labels, claims and CEL, alone and together; what an expression may cost."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.cel import evaluation
from stowplan.cel.syntax import CelSyntaxError
from stowplan.framework.placement.decision import PlacementQuestion, PluginStatus
from stowplan.plugins.clusters import cel_selector
from stowplan.plugins.clusters.cel_selector import CelExpressions, compiled
from stowplan.plugins.clusters.predicate import PredicatePlugin
from tests.placement.fleets import NOW, a_cluster, a_placement, a_score, asked

PLUGIN = PredicatePlugin()
CLOUDS = [
    a_cluster("c1", labels={"cloud": "Amazon"}, claims={"cloud": "Amazon", "region": "us-east-1"}),
    a_cluster("c2", labels={"cloud": "Google"}, claims={"cloud": "Google", "region": "us-east-1"}),
    a_cluster("c3", labels={"cloud": "Azure"}, claims={"cloud": "Azure", "region": "eu-west-1"}),
    a_score("c1", "demo", cpu=90),
    a_score("c2", "demo", cpu=70),
    a_score("c3", "demo", valid=-1, cpu=95),
]


def required(
    labels: dict[str, str] | None = None, claims: dict[str, list[str]] | None = None, cel: list[str] | None = None
) -> dict[str, Any]:
    expressions = [{"key": key, "operator": "In", "values": values} for key, values in (claims or {}).items()]
    selector = {
        "labelSelector": {"matchLabels": labels or {}},
        "claimSelector": {"matchExpressions": expressions},
        "celSelector": {"celExpressions": cel or []},
    }
    return {"requiredClusterSelector": selector}


def matching(*predicates: dict[str, Any], ocm: bool = True) -> list[str] | PluginStatus:
    question = asked(a_placement(predicates=list(predicates)), CLOUDS, ocm=ocm)
    rows = question.fleet.rows(["c1", "c2", "c3"])
    found = PLUGIN.filter(question, rows)
    return found if isinstance(found, PluginStatus) else question.fleet.named(rows[found])


IN_AMAZON = 'managedCluster.metadata.labels["cloud"] == "Amazon"'
GOOD_SCORE = 'managedCluster.scores("demo").filter(s, s.name == "cpu").all(e, e.value > 80)'


@pytest.mark.parametrize(
    ("predicates", "expected"),
    [
        pytest.param([], ["c1", "c2", "c3"], id="none at all"),
        pytest.param([required()], ["c1", "c2", "c3"], id="one that says nothing"),
        pytest.param([required({"cloud": "Amazon"})], ["c1"], id="a label"),
        pytest.param([required(claims={"cloud": ["Amazon"]})], ["c1"], id="a claim"),
        pytest.param([required({"cloud": "Google"}, {"region": ["us-east-1"]})], ["c2"], id="a label and a claim"),
        pytest.param([required({"cloud": "Google"}, {"region": ["eu-west-1"]})], [], id="a label, and another's claim"),
        pytest.param([required({"cloud": "Amazon"}), required({"cloud": "Google"})], ["c1", "c2"], id="either of two"),
        pytest.param([required(cel=[IN_AMAZON])], ["c1"], id="an expression about labels"),
        pytest.param(
            [
                required(
                    cel=['managedCluster.status.clusterClaims.exists(c, c.name == "region" && c.value == "eu-west-1")']
                )
            ],
            ["c3"],
            id="an expression about claims",
        ),
        pytest.param([required(cel=[IN_AMAZON, "1 == 1"])], ["c1"], id="two expressions, both true"),
        pytest.param([required(cel=[IN_AMAZON, "1 == 2"])], [], id="two expressions, one false"),
        pytest.param([required({"cloud": "Google"}, cel=[IN_AMAZON])], [], id="an expression and another label"),
        pytest.param([required(cel=[])], ["c1", "c2", "c3"], id="no expressions"),
        pytest.param([required(cel=['managedCluster.scores("none").size() >= 0'])], [], id="scores that are not there"),
        pytest.param([required(cel=["managedCluster.metadata.name"])], [], id="neither true nor false"),
        pytest.param(
            [required(cel=['managedCluster.metadata.labels.nope == "x"'])], [], id="a label that is not there"
        ),
    ],
)
def test_which_clusters_match(predicates: list[Any], expected: list[str]) -> None:
    assert matching(*predicates) == expected


def test_an_expression_sees_only_valid_scores_but_in_compatibility() -> None:
    assert matching(required(cel=[GOOD_SCORE]), ocm=True) == ["c1", "c3"]
    assert matching(required(cel=[GOOD_SCORE]), ocm=False) == ["c1"]


@pytest.mark.parametrize(
    ("predicate", "path"),
    [
        pytest.param(required(cel=[IN_AMAZON, "nonsense("]), "celSelector.celExpressions", id="what does not parse"),
        pytest.param(
            required(cel=["cluster.metadata.name == 'x'"]), "celSelector.celExpressions", id="an unknown name"
        ),
        pytest.param(
            required(cel=['"a" + 1 == "a1"']), "celSelector.celExpressions", id="types that do not go together"
        ),
        pytest.param(required(cel=["1" * 20_000]), "celSelector.celExpressions", id="too long"),
        pytest.param(required({"bad key!": "x"}), "labelSelector", id="a key that is none"),
        pytest.param(required(claims={"cloud": []}), "claimSelector", id="no values"),
    ],
)
def test_what_cannot_be_used(predicate: dict[str, Any], path: str) -> None:
    found = matching(required({"cloud": "Amazon"}), predicate)
    assert isinstance(found, PluginStatus)
    assert (found.code, found.plugin) == ("Misconfigured", "Predicate")
    assert found.path == f"spec.predicates[1].requiredClusterSelector.{path}"


@pytest.mark.parametrize(
    ("predicates", "reason"),
    [
        pytest.param([required({"cloud": "x"})], "its labels do not match the labelSelector", id="labels"),
        pytest.param([required(claims={"cloud": ["x"]})], "its claims do not match the claimSelector", id="claims"),
        pytest.param([required(cel=["1 == 1", "1 == 2"])], "1 == 2 is false", id="an expression"),
        pytest.param(
            [required(cel=["managedCluster.nope"])], "managedCluster.nope fails: no such key: nope", id="one that fails"
        ),
        pytest.param([required(cel=["1"])], "1 is neither true nor false", id="one that is no statement"),
        pytest.param([required({"a": "b"}), required({"a": "c"})], "none of the 2 predicates holds", id="several"),
    ],
)
def test_why_a_cluster_does_not_match(predicates: list[Any], reason: str) -> None:
    question = asked(a_placement(predicates=predicates), CLOUDS)
    assert PLUGIN.why(question, 0) == reason


# -- what an expression costs

VERSIONED = a_cluster("c1", labels={"version": "1.14.3"})
LABEL = 'managedCluster.metadata.labels["version"] == "1.14.3"'
SEMVER = 'semver(managedCluster.metadata.labels["version"]).isLessThan(semver("1.30.0"))'


def cost(*expressions: str, nobody: bool = False) -> tuple[bool, int]:
    question = asked(a_placement(), [VERSIONED])
    if nobody:
        question.fleet.clusters[0] = None
    fine, spent, _ = CelExpressions(expressions).match(question, 0)
    return fine, spent


@pytest.mark.parametrize(
    ("expressions", "nobody", "expected"),
    [
        pytest.param([LABEL], False, (True, 5), id="a label's value"),
        pytest.param([LABEL, SEMVER], False, (True, 12), id="a label's value and a version"),
        pytest.param([LABEL], True, (False, 3), id="no cluster at all"),
        pytest.param([], False, (True, 0), id="no expression"),
        pytest.param(["[1, 2].all(x, x > 0)"], False, (True, 10 + 2 * (2 + 1 + 2) + 1), id="a list and a loop"),
    ],
)
def test_cost(expressions: list[str], nobody: bool, expected: tuple[bool, int]) -> None:
    assert cost(*expressions, nobody=nobody) == expected


def test_beyond_the_budget_a_cluster_does_not_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel_selector, "MOST_PER_CLUSTER", 15)
    assert cost(LABEL, SEMVER) == (True, 12)
    fine, spent = cost(LABEL, SEMVER, SEMVER)
    assert not fine and spent > 15


SIXTY = str(list(range(60)))
ENDLESS = f"{SIXTY}.all(a, {SIXTY}.all(b, {SIXTY}.all(c, {SIXTY}.all(d, a + b + c + d >= 0))))"


def test_no_expression_runs_for_long() -> None:
    selector = CelExpressions((ENDLESS,))
    question = asked(a_placement(), [a_cluster(f"c{number}") for number in range(50)])
    fine, spent, _ = selector.match(question, 0)
    assert not fine and cel_selector.MOST_PER_EXPRESSION < spent < cel_selector.MOST_PER_EXPRESSION + 100
    assert selector.match(question, 1) == (False, 0, float("inf"))  # it is about no cluster, so it need not run again


def test_a_pass_over_the_fleet_costs_so_much_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel_selector, "MOST_PER_PASS", 20)
    objects = [a_cluster(f"c{number}", labels={"version": "1.14.3"}) for number in range(9)]
    question = asked(a_placement(), objects, ocm=False)
    rows = question.fleet.rows([f"c{number}" for number in range(9)])
    assert CelExpressions((LABEL,)).holds(question, rows).tolist() == [True] * 4 + [False] * 5
    later = PlacementQuestion(question.placement, question.fleet, NOW + 1, question.own)
    assert CelExpressions((LABEL,)).holds(later, rows).sum() == 8


def test_what_was_answered_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    question = asked(a_placement(), CLOUDS, ocm=False)
    fleet, selector = question.fleet, compiled((GOOD_SCORE,))
    rows, runs = fleet.rows(["c1", "c2", "c3"]), list[int]()

    class CountedMeter(evaluation.Meter):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            runs.append(1)

    monkeypatch.setattr(evaluation, "Meter", CountedMeter)

    def ask(now: float = NOW) -> tuple[list[bool], int]:
        runs.clear()
        found = selector.holds(PlacementQuestion(question.placement, fleet, now, question.own), rows).tolist()
        return found, len(runs)

    assert ask() == ([True, False, False], 3)
    assert ask() == ([True, False, False], 0)
    fleet.put_score(a_score("c2", "demo", valid=10, cpu=85))
    assert ask() == ([True, True, False], 1)
    fleet.put_score(a_score("c2", "other", cpu=1))
    fleet.put(a_cluster("c2", labels={"cloud": "Google"}, claims={"cloud": "Google", "region": "us-east-1"}))
    assert ask() == ([True, True, False], 0)
    assert ask(NOW + 11) == ([True, False, False], 1)
    fleet.put(a_cluster("c1", labels={"cloud": "none"}))
    assert ask(NOW + 11) == ([True, False, False], 1)


# -- the language

SEEN = a_cluster(
    "c1",
    labels={"version": "1.14.3", "zone": "b"},
    claims={"version": "1.14.3", "sku": '{"H100":[{"Standard_NC48":10},{"Standard_NC96":2}]}', "net": "10.1.0.0/16"},
    cpu="1500m",
    version={"kubernetes": "v1.31.2"},
)
SCORES = a_score("c1", "test-score", cpu=3, memory=4)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(
            r"managedCluster.metadata.labels['version'].matches('^1\\.(14|15)\\.\\d+$')", True, id="a pattern"
        ),
        pytest.param(r"managedCluster.metadata.labels['version'].matches('^1\\.(15|16)\\.\\d+$')", False, id="another"),
        pytest.param(
            r"managedCluster.status.clusterClaims.exists(c, c.name == 'version' && c.value.matches('^1\\.14'))",
            True,
            id="a pattern in a claim",
        ),
        pytest.param(
            "managedCluster.scores('test-score').filter(s, s.name == 'cpu').all(e, e.value == 3)", True, id="3"
        ),
        pytest.param(
            "managedCluster.scores('test-score').filter(s, s.name == 'cpu').all(e, e.value > 3)", False, id=">3"
        ),
        pytest.param(
            "managedCluster.scores('test-score').filter(s, s.name == 'x').all(e, e.value > 3)", True, id="none"
        ),
        pytest.param(
            "managedCluster.status.clusterClaims.exists(c, c.name == 'sku' &&"
            " c.value.parseJSON().H100.exists(e, e.Standard_NC96 == 2))",
            True,
            id="JSON in a claim",
        ),
        pytest.param("managedCluster.metadata.labels[?'gpu'].orValue('no') == 'no'", True, id="a label that may be"),
        pytest.param("managedCluster.status.?version.?kubernetes.hasValue()", True, id="fields that may be"),
        pytest.param("has(managedCluster.spec.taints)", False, id="has not"),
        pytest.param("has(managedCluster.status.conditions)", True, id="a field that Go always writes"),
        pytest.param("managedCluster.status.allocatable.cpu == '1500m'", True, id="a quantity as a text"),
        pytest.param(
            "quantity(managedCluster.status.allocatable.cpu).isGreaterThan(quantity('1'))", True, id="quantity"
        ),
        pytest.param(
            "quantity('1').add(quantity('500m')).compareTo(quantity('1.5')) == 0", True, id="a sum of quantities"
        ),
        pytest.param("semver('1.30.0-rc.1').isLessThan(semver('1.30.0'))", True, id="a pre-release"),
        pytest.param("isSemver('v1.30.0')", False, id="no version"),
        pytest.param("cidr('10.1.0.0/16').containsIP(ip('10.1.2.3'))", True, id="an address in a network"),
        pytest.param("ip('::1').isLoopback() && ip('10.0.0.1').family() == 4", True, id="addresses"),
        pytest.param("string(ip('10.0.0.1')) == '10.0.0.1' && string(1) == '1'", True, id="texts of this and that"),
        pytest.param("url('https://a.b:80/c?d=e').getHostname() == 'a.b'", True, id="a URL"),
        pytest.param("url('https://a.b:80/c?d=e').getQuery()['d'] == ['e']", True, id="what a URL asks for"),
        pytest.param("!format.dns1123Label().validate('ok').hasValue()", True, id="a format"),
        pytest.param(
            "format.dns1123Label().validate('Not ok').value().size() == 1", True, id="a format that is not kept"
        ),
        pytest.param("'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'abc'.find('z') == ''", True, id="finding"),
        pytest.param("[1, 2, 3].sum() == 6 && [3, 1].min() == 1 && ['b', 'a'].isSorted() == false", True, id="lists"),
        pytest.param("[1, 2].indexOf(2) == 1 && 'abc'.indexOf('c') == 2", True, id="places"),
        pytest.param("'a-b'.split('-').size() == 2 && 'AB'.lowerAscii() == 'ab'", True, id="texts"),
        pytest.param("'%d%%'.format([5]) == '5%'", True, id="a text made of values"),
        pytest.param("int('12') == 12 && double('1.5') > 1.0 && 7 / 2 == 3 && -7 % 3 == -1", True, id="numbers"),
        pytest.param("timestamp('2026-01-01T00:00:00Z') < timestamp('2026-01-02T00:00:00Z')", True, id="moments"),
        pytest.param(
            "timestamp('2026-01-02T00:00:00Z') - duration('24h') == timestamp('2026-01-01T00:00:00Z')",
            True,
            id="a day before",
        ),
        pytest.param("timestamp('2026-03-01T10:00:00Z').getHours() == 10", True, id="an hour of a day"),
        pytest.param("false && managedCluster.nope == 1", False, id="false, whatever the other is"),
        pytest.param("managedCluster.nope == 1 || true", True, id="true, whatever the other is"),
        pytest.param("[1, 0].exists(x, 1 / x == 1)", True, id="one is enough, although another fails"),
        pytest.param("[1, 2, 3].map(x, x * 2).filter(x, x > 2) == [4, 6]", True, id="map and filter"),
        pytest.param("[1, 2, 3].exists_one(x, x > 2) && {'a': 1}.all(k, k == 'a')", True, id="just one"),
        pytest.param("dyn(1) == 1.0 && dyn(1) != '1' && 2u > 1u", True, id="numbers of different types"),
        pytest.param("type(1) == int && type('a') != int", True, id="types"),
        pytest.param("optional.of(2).optMap(x, x + 1).orValue(0) == 3", True, id="what may be, made into something"),
        pytest.param(
            "'a' in managedCluster.metadata.labels || 'zone' in managedCluster.metadata.labels", True, id="in"
        ),
        pytest.param("'x'.matches('a') ? false : size(managedCluster.metadata.labels) == 3", True, id="if and else"),
    ],
)
def test_the_language(expression: str, expected: bool) -> None:
    question = asked(a_placement(), [SEEN, SCORES])
    assert CelExpressions((expression,)).match(question, 0)[0] is expected


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("managedCluster.metadata.nope == 1", id="a key that is not there"),
        pytest.param("[1][5] == 1", id="beyond a list"),
        pytest.param("1 / 0 == 1", id="division by zero"),
        pytest.param("9223372036854775807 + 1 > 0", id="too large a number"),
        pytest.param("managedCluster.metadata.name.matches('(')", id="a pattern that is none"),
        pytest.param("quantity('much').isInteger()", id="a quantity that is none"),
        pytest.param("managedCluster.metadata.name > 1", id="what cannot be compared"),
        pytest.param("'[1'.parseJSON() == 1", id="what is not JSON"),
        pytest.param("managedCluster.metadata.labels.all(l, l.nope == 1)", id="a text that has no fields"),
        pytest.param("{'metadata': {'name': 'nobody'}}.scores('test-score').size() > 0", id="scores of nobody"),
    ],
)
def test_what_fails_does_not_match(expression: str) -> None:
    question = asked(a_placement(), [SEEN, SCORES])
    assert CelExpressions((expression,)).match(question, 0)[0] is False


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(CelSyntaxError, match="undeclared reference to 'matchessssss'"):
        CelExpressions(("managedCluster.metadata.name.matchessssss('x')",))


def test_kubernetes_types_are_called_by_their_names() -> None:
    with pytest.raises(CelSyntaxError, match=r"'isLessThan' applied to '\(Quantity, string\)'"):
        CelExpressions(("quantity('1').isLessThan('2')",))
