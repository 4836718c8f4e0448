"""Taints and tolerations of clusters, as in Open Cluster Management's own tests."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.fleet.views import Clusters
from stowplan.framework.placement.interfaces import Misconfigured
from stowplan.framework.placement.plugin_calls import call_cluster_filter
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.placements import Placement
from stowplan.plugins.clusters.taint_toleration import ClusterTaintToleration
from tests.placement.fleets import NOW, a_cluster, a_decision, a_placement, a_taint, a_view

PLUGIN = ClusterTaintToleration()


def tolerates(operator: str = "", key: str = "", value: str = "", effect: str = "", **more: Any) -> dict[str, Any]:
    return {"operator": operator, "key": key, "value": value, "effect": effect, **more}


EQUAL, EXISTS = tolerates("Equal", "key1", "value1"), tolerates("Exists", "key1")
IN, OUT = True, False


def kept(placement: Placement, clusters: Clusters) -> list[bool] | Misconfigured:
    found = call_cluster_filter(EnabledPlugin("TaintToleration", PLUGIN), placement, clusters)
    if isinstance(found, Misconfigured):
        return found
    return [True] * len(clusters) if found.kept is None else found.kept.tolist()


def verdict(taints: list[str], tolerations: list[Any], decided: bool = False) -> bool | Misconfigured:
    objects = [a_cluster("c1", taints=taints), *([a_decision(["c1"], of="test")] if decided else [])]
    placement = a_placement(tolerations=tolerations)
    found = kept(placement, a_view(placement, objects, ["c1"]))
    return found if isinstance(found, Misconfigured) else found[0]


@pytest.mark.parametrize(
    ("taints", "tolerations", "decided", "expected"),
    [
        pytest.param(["key1=value1:NoSelect"], [], False, OUT, id="not tolerated"),
        pytest.param(
            ["key1=value1:NoSelect"], [], True, OUT, id="not tolerated, although the placement has the cluster"
        ),
        pytest.param(["key1=value1:NoSelect"], [EQUAL], False, IN, id="key and value equal"),
        pytest.param(["key1=value1:NoSelect"], [tolerates("", "key1", "value1")], False, IN, id="no operator is Equal"),
        pytest.param(["key1=value1:NoSelect"], [tolerates("Equal", "key1")], False, OUT, id="no value against one"),
        pytest.param(["key1=value1:NoSelect"], [tolerates("Equal", "key1", "value2")], False, OUT, id="another value"),
        pytest.param(["key1=value1:NoSelect"], [tolerates("Equal", "key2", "value1")], False, OUT, id="another key"),
        pytest.param(["key1=value1:NoSelect"], [EXISTS], False, IN, id="the key exists"),
        pytest.param(["key1=value1:NoSelect"], [tolerates("Exists", "key2")], False, OUT, id="another key exists"),
        pytest.param(["key1=value1:NoSelect"], [tolerates("Exists")], False, IN, id="everything is tolerated"),
        pytest.param(["key1=value1:NoSelectIfNew"], [], False, OUT, id="if new: the cluster is new"),
        pytest.param(["key1=value1:NoSelectIfNew"], [], True, IN, id="if new: the cluster is not new"),
        pytest.param(["key1=value1:NoSelectIfNew"], [EQUAL], False, IN, id="if new: tolerated"),
        pytest.param(["key1=value1:NoSelectIfNew"], [EQUAL], True, IN, id="if new: tolerated, and not new"),
        pytest.param(
            ["key1=value1:NoSelectIfNew"], [tolerates("Equal", "key1", "x")], False, OUT, id="if new: another value"
        ),
        pytest.param(
            ["key1=value1:NoSelectIfNew"], [tolerates("Equal", "key1", "x")], True, IN, id="if new: another, not new"
        ),
        pytest.param(["key1=value1:PreferNoSelect"], [], False, IN, id="a preference excludes no cluster"),
        pytest.param(["key1=value1:PreferNoSelect"], [EQUAL], False, IN, id="a preference that is tolerated"),
        pytest.param(
            ["key1=value1:PreferNoSelect"], [tolerates("Exists", "key2")], False, IN, id="a preference that is not"
        ),
        pytest.param(
            ["key1=value1:NoSelect", "key2=value2:NoSelect"],
            [EQUAL, tolerates("Equal", "key2", "value2")],
            False,
            IN,
            id="two taints, both tolerated",
        ),
        pytest.param(
            ["key1=value1:NoSelect", "key2=value2:NoSelect"], [EQUAL], False, OUT, id="two taints, one tolerated"
        ),
        pytest.param(["key1=value1:NoSelect"], [EXISTS | {"effect": "NoSelect"}], False, IN, id="the same effect"),
        pytest.param(
            ["key1=value1:NoSelect"], [EXISTS | {"effect": "NoSelectIfNew"}], False, OUT, id="a different effect"
        ),
        pytest.param(
            ["key1=value1:NoSelectIfNew"], [EXISTS | {"effect": "NoSelect"}], True, IN, id="a different effect, not new"
        ),
    ],
)
def test_tolerations(taints: list[str], tolerations: list[Any], decided: bool, expected: bool) -> None:
    assert verdict(taints, tolerations, decided) is expected


@pytest.mark.parametrize(
    ("toleration", "message"),
    [
        pytest.param(tolerates("Equal"), "If the key is empty, operator must be Exists.", id="no key"),
        pytest.param(
            tolerates("Exists", "key1", "v"), "If the operator is Exists, the value should be empty.", id="a value"
        ),
    ],
)
def test_misconfigured_tolerations(toleration: Any, message: str) -> None:
    found = verdict(["key1:NoSelect"], [EQUAL, toleration])
    assert isinstance(found, Misconfigured)
    assert (found.message, found.path) == (message, "spec.tolerations[1]")


# -- tolerations that end

AGES = {"c1": -8.0, "c2": -9.0, "c3": -10.0}


def timed(decided: list[str], now: float = NOW) -> tuple[list[bool], float | None]:
    objects = [
        *(a_cluster(name, taints=[a_taint("key1=value1:NoSelect", age)]) for name, age in AGES.items()),
        a_decision(decided, of="test"),
    ]
    placement = a_placement(tolerations=[EQUAL | {"tolerationSeconds": 10}])
    clusters = a_view(placement, objects, AGES, now=now)
    found, has = kept(placement, clusters), clusters.fleet.table.rows(decided)
    assert not isinstance(found, Misconfigured)
    return found, PLUGIN.lapses(placement, Clusters(clusters.fleet, has))


@pytest.mark.parametrize(
    ("decided", "later", "expected", "lapse"),
    [
        pytest.param([], 0.0, [IN, IN, OUT], None, id="added 8, 9 and 10 seconds ago"),
        pytest.param(["c1", "c2"], 0.0, [IN, IN, OUT], 1.0, id="the first toleration ends in a second"),
        pytest.param(["c1", "c2"], 1.0, [IN, OUT, OUT], 2.0, id="a second later"),
        pytest.param(["c1", "c2"], 2.0, [OUT, OUT, OUT], None, id="all tolerations have ended"),
        pytest.param(["gone"], 0.0, [IN, IN, OUT], None, id="the placement's cluster is gone"),
    ],
)
def test_tolerated_for_ten_seconds(decided: list[str], later: float, expected: list[bool], lapse: float | None) -> None:
    found, at = timed(decided, NOW + later)
    assert found == expected
    assert at == (None if lapse is None else NOW + lapse)


def test_a_toleration_in_seconds_needs_the_time_a_taint_was_added() -> None:
    taint = {"key": "key1", "effect": "NoSelect"}
    objects = [a_cluster("c1", taints=[taint])]
    placement = a_placement(tolerations=[EXISTS | {"tolerationSeconds": 10}])
    assert kept(placement, a_view(placement, objects, ["c1"])) == [OUT]


def test_why_names_the_taint() -> None:
    placement, cluster = (
        a_placement(tolerations=[EQUAL]),
        a_cluster("c1", taints=["key1=value1:NoSelect", "k:NoSelect"]),
    )
    found = a_view(placement, [cluster], ["c1"])[0]
    assert PLUGIN.why(placement, found) == "it has the taint k:NoSelect, which is not tolerated"
