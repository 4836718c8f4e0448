"""FlavourClusterWide's arguments, the contract of plugins, and random clusters counted node by node."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.extension_points import points_of
from stowplan.framework.interfaces import GaugesPlugin, RecountPlugin
from stowplan.framework.plugin_checks import check_plugin
from stowplan.objects.changes import Gone
from stowplan.objects.errors import ConfigError
from stowplan.plugins.nodes.flavour_cluster_wide import STRATEGIES, FlavourClusterWide
from stowplan.testing.builders import a_node, a_pod, a_state
from stowplan.testing.plugin_questions import scored
from tests.plugins.nodes.flavours import CONTROL_PLANE, GOLD, MASTER, WORKER, golds, made, scored_among, workers


@pytest.mark.parametrize(
    ("args", "labels", "expected"),
    [
        pytest.param({}, {"flavour": "x"}, {"a": 0, "b": 100}, id="flavour by default"),
        pytest.param({"labelName": ""}, {"flavour": "x"}, {"a": 0, "b": 100}, id="an empty name is the default"),
        pytest.param({"labelName": None}, {"flavour": "x"}, {"a": 0, "b": 100}, id="null is the default"),
        pytest.param({"labelName": "tier"}, {"tier": "x"}, {"a": 0, "b": 100}, id="another label"),
        pytest.param({"labelName": "tier"}, {"flavour": "x"}, {"a": 0, "b": 0}, id="and then not the default one"),
        pytest.param(
            {"labelName": "example.com/tier"}, {"example.com/tier": "x"}, {"a": 0, "b": 100}, id="one with a prefix"
        ),
    ],
)
def test_the_label_can_be_named(args: dict[str, Any], labels: dict[str, str], expected: dict[str, int]) -> None:
    there = a_pod("there", node="a", labels={"flavour": "x", "tier": "x", "example.com/tier": "x"})
    state = a_state(nodes=workers(*"ab"), pods=[there])
    assert scored(made(**args), a_pod("incoming", labels=labels), state) == expected


def test_pods_on_their_way_out_may_be_counted() -> None:
    state = a_state(nodes=workers(*"ab"), pods=[a_pod("p", node="a", labels=GOLD, terminating=True)])
    assert scored(made(countTerminating=True), a_pod(labels=GOLD), state) == {"a": 0, "b": 100}


@pytest.mark.parametrize(
    ("args", "seconds"),
    [
        pytest.param({}, 0, id="off"),
        pytest.param({"cacheTTL": 0}, 0, id="off in so many words"),
        pytest.param({"cacheTTL": 60}, 60, id="cacheTTL"),
        pytest.param({"cacheTTLSeconds": 60}, 60, id="cacheTTLSeconds"),
        pytest.param({"cacheTTL": 0.5}, 0.5, id="less than a second"),
        pytest.param({"cacheTTL": 5, "cacheTTLSeconds": 5}, 5, id="both, alike"),
    ],
)
def test_the_period_of_recounts(args: dict[str, Any], seconds: float) -> None:
    assert made(**args).recount_every == seconds


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param({"labelName": "a b"}, 'labelName: found "a b", expected the key of a label', id="no label's key"),
        pytest.param({"labelName": 5}, "labelName: found 5", id="a number for a label"),
        pytest.param(
            {"strategy": "max"}, 'strategy: found "max", expected one of min, proportional, feasibleMin', id="strategy"
        ),
        pytest.param({"strategy": ["min"]}, "strategy: found a list", id="strategies"),
        pytest.param({"cacheTTL": -1}, "cacheTTL: found -1.0, expected seconds, 0 (never) or more", id="a time before"),
        pytest.param({"cacheTTLSeconds": "1m"}, 'cacheTTLSeconds: found "1m", expected a number', id="a duration"),
        pytest.param({"cacheTTL": True}, "cacheTTL: found true", id="yes"),
        pytest.param({"cacheTTL": float("nan")}, "cacheTTL: found NaN", id="not a number"),
        pytest.param({"cacheTTL": 5, "cacheTTLSeconds": 6}, "cacheTTL and cacheTTLSeconds differ", id="two periods"),
        pytest.param({"countTerminating": "no"}, 'countTerminating: found "no", expected true or false', id="a text"),
        pytest.param(
            {"nodeSelector": {"pool": "blue"}}, "expected a label selector; give matchLabels", id="bare labels"
        ),
        pytest.param({"nodeSelector": "pool"}, 'nodeSelector: found "pool"', id="a text for a selector"),
        pytest.param({"nodeSelector": {"matchLabels": {"pool": 1}}}, "nodeSelector: Expected `str`", id="a number"),
        pytest.param(
            {"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
            "nodeSelector: one of its conditions cannot be read",
            id="an unknown operator",
        ),
        pytest.param({"labelname": "tier"}, "unknown argument 'labelname'; did you mean 'labelName'?", id="a slip"),
    ],
)
def test_arguments_that_will_not_do(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(**args)
    assert problem in str(caught.value)
    assert "pluginConfig[name=FlavourClusterWide].args" in str(caught.value)


# -- the contract


def test_it_can_stand_where_the_seed_has_it() -> None:
    assert points_of(FlavourClusterWide) == {"score", "postBind"}
    assert made().post_bind(a_pod(labels=GOLD), "a", Cluster(a_state(nodes=["a"]))) == ()
    assert isinstance(made(), GaugesPlugin) and isinstance(made(), RecountPlugin)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(None, id="by role"),
        pytest.param({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, id="by another label"),
    ],
)
def test_it_keeps_the_contract_of_plugins(strategy: str, selector: Any) -> None:
    plugin = made(labelName="app", strategy=strategy, nodeSelector=selector)
    assert check_plugin(plugin, pods=[a_pod(labels={"app": "x"})]) == []


ROLES = st.sampled_from([{}, {}, {WORKER: ""}, {WORKER: ""}, {CONTROL_PLANE: ""}, {WORKER: "", MASTER: ""}])
HOW_MANY = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 7))


@given(
    roles=st.dictionaries(st.sampled_from("abcdef"), ROLES, min_size=1),
    counts=HOW_MANY,
    feasible=st.sets(st.sampled_from("abcdef")),
    strategy=st.sampled_from(STRATEGIES),
)
def test_scores_are_as_counted_node_by_node(
    roles: dict[str, dict[str, str]], counts: dict[str, int], feasible: set[str], strategy: str
) -> None:
    state = a_state(nodes=[a_node(name, labels=labels) for name, labels in roles.items()], pods=golds(**counts))
    found = scored_among(made(strategy=strategy), state, "".join(feasible))
    assert found == by_hand(roles, counts, feasible & roles.keys(), strategy)
    assert all(0 <= score <= 100 for score in found.values())


def by_hand(
    roles: dict[str, dict[str, str]], counts: dict[str, int], feasible: set[str], strategy: str
) -> dict[str, int]:
    there = {name for name, labels in roles.items() if WORKER in labels}
    there = there or {name for name, labels in roles.items() if not labels.keys() & {CONTROL_PLANE, MASTER}}
    compared = [counts.get(name, 0) for name in (there & feasible if strategy == "feasibleMin" else there)]
    scores = {}
    for name in feasible:
        count = counts.get(name, 0)
        if name not in there:
            scores[name] = 0
        elif strategy == "proportional" and max(compared) > min(compared):
            scores[name] = max(100 * (max(compared) - count) // (max(compared) - min(compared)), 1)
        else:
            scores[name] = 100 if count == min(compared) else 0
    return scores


@given(counts=HOW_MANY, others=HOW_MANY, strategy=st.sampled_from(STRATEGIES))
def test_a_count_kept_in_step_is_one_made_anew(counts: dict[str, int], others: dict[str, int], strategy: str) -> None:
    plugin, pod, nodes = made(strategy=strategy), a_pod("incoming", labels=GOLD), workers(*"abcdef")
    state = a_state(nodes=nodes, pods=golds(**counts))
    scored(plugin, pod, state)
    for each in golds(**counts):
        state.apply(Gone(each))
    for each in golds(**others):
        state.add_pod(each, each.node_name)
    assert scored(plugin, pod, state) == scored(plugin, pod, a_state(nodes=nodes, pods=golds(**others)))
