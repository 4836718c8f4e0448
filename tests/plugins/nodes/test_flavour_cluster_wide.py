"""FlavourClusterWide's scores: the rule, who is a worker, and the strategies."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects.changes import Gone
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod, a_state
from stowplan.testing.plugin_questions import scored
from tests.plugins.nodes.flavours import (
    CONTROL_PLANE,
    GOLD,
    MASTER,
    WORKER,
    golds,
    made,
    scored_among,
    worker,
    workers,
)

# -- the rule


@pytest.mark.parametrize(
    ("pod", "nodes", "pods", "expected"),
    [
        pytest.param({"labels": GOLD}, workers(*"abc"), [], {"a": 100, "b": 100, "c": 100}, id="a flavour nobody has"),
        pytest.param(
            {"labels": GOLD}, workers(*"abc"), golds(a=1, b=2), {"a": 0, "b": 0, "c": 100}, id="the one without any"
        ),
        pytest.param(
            {"labels": GOLD}, workers(*"abc"), golds(a=1, b=2, c=1), {"a": 100, "b": 0, "c": 100}, id="all with fewest"
        ),
        pytest.param(
            {"labels": GOLD}, workers(*"abc"), golds(a=3, b=3, c=3), {"a": 100, "b": 100, "c": 100}, id="in balance"
        ),
        pytest.param({"labels": GOLD}, workers(*"abc"), golds(b=1, c=50), {"a": 100, "b": 0, "c": 0}, id="no gradient"),
        pytest.param({}, workers(*"ab"), golds(a=1), {"a": 0, "b": 0}, id="a pod without the label"),
        pytest.param(
            {"labels": {"flavour": ""}}, workers(*"ab"), golds(a=1), {"a": 0, "b": 0}, id="a pod with no value there"
        ),
        pytest.param(
            {"labels": {"Flavour": "gold"}}, workers(*"ab"), golds(a=1), {"a": 0, "b": 0}, id="keys are exact"
        ),
        pytest.param(
            {"labels": {"flavour": "silver"}},
            workers(*"ab"),
            [*golds(a=2), a_pod("s", node="b", labels={"flavour": "silver"})],
            {"a": 100, "b": 0},
            id="each flavour by itself",
        ),
        pytest.param(
            {"labels": GOLD, "namespace": "far-away"},
            workers(*"ab"),
            golds(a=2, b=1),
            {"a": 0, "b": 100},
            id="pods of all namespaces, whichever the pod is of",
        ),
        pytest.param(
            {"labels": GOLD},
            workers(*"ab"),
            [a_pod("p", node="a", labels={**GOLD, "app": "x"}), a_pod("q", node="a", labels={"app": "gold"})],
            {"a": 0, "b": 100},
            id="other labels do not matter",
        ),
        pytest.param(
            {"labels": GOLD},
            workers(*"ab"),
            [a_pod("p", node="a", labels=GOLD, phase="Succeeded"), a_pod("q", node="a", labels=GOLD, phase="Failed")],
            {"a": 100, "b": 100},
            id="finished pods do not count",
        ),
        pytest.param(
            {"labels": GOLD},
            workers(*"ab"),
            [a_pod("p", node="a", labels=GOLD, terminating=True), *golds(b=1)],
            {"a": 100, "b": 0},
            id="nor those on their way out",
        ),
        pytest.param(
            {"labels": GOLD},
            workers(*"ab"),
            [a_pod("p", labels=GOLD, nominated="a"), a_pod("q", labels=GOLD)],
            {"a": 100, "b": 100},
            id="nor those without a node, promised or not",
        ),
        pytest.param(
            {"labels": GOLD}, workers(*"ab"), golds(gone=3), {"a": 100, "b": 100}, id="a node that is not there is none"
        ),
    ],
)
def test_workers_with_the_fewest_pods_of_the_flavour_score_100(
    pod: dict[str, Any], nodes: list[Node], pods: list[Pod], expected: dict[str, int]
) -> None:
    assert scored(made(), a_pod("incoming", **pod), a_state(nodes=nodes, pods=pods)) == expected


# -- who is a worker


@pytest.mark.parametrize(
    ("nodes", "pods", "expected"),
    [
        pytest.param(
            [*workers(*"ab"), a_node("infra")],
            golds(a=2, b=1),
            {"a": 0, "b": 100, "infra": 0},
            id="an empty node that is no worker makes no minimum and scores 0",
        ),
        pytest.param(
            [*workers(*"ab"), a_node("infra")],
            golds(a=2, b=2, infra=1),
            {"a": 100, "b": 100, "infra": 0},
            id="nor does one that has pods of the flavour",
        ),
        pytest.param(
            [worker("a"), worker("both", labels={MASTER: ""})],
            golds(a=1),
            {"a": 0, "both": 100},
            id="a worker that is control plane too is a worker",
        ),
        pytest.param(
            [a_node("a", labels={WORKER: "true"}), a_node("b", labels={WORKER: "false"}), a_node("c")],
            golds(a=1),
            {"a": 0, "b": 100, "c": 0},
            id="the label's value does not matter",
        ),
        pytest.param(
            [a_node("a"), a_node("b"), a_node("c", labels={CONTROL_PLANE: ""}), a_node("m", labels={MASTER: ""})],
            golds(a=1),
            {"a": 0, "b": 100, "c": 0, "m": 0},
            id="no worker in the cluster: all but the control plane are",
        ),
        pytest.param(
            [a_node("c", labels={CONTROL_PLANE: ""}), a_node("m", labels={MASTER: ""})],
            golds(c=1),
            {"c": 0, "m": 0},
            id="nothing but control plane: no say",
        ),
    ],
)
def test_who_is_a_worker(nodes: list[Node], pods: list[Pod], expected: dict[str, int]) -> None:
    assert scored(made(), a_pod(labels=GOLD), a_state(nodes=nodes, pods=pods)) == expected


def test_the_first_worker_that_comes_and_the_last_that_goes_change_who_is_one() -> None:
    state, pod = a_state(nodes=["a", "b"], pods=golds(a=1)), a_pod(labels=GOLD)
    assert scored(made(), pod, state) == {"a": 0, "b": 100}
    state = a_state(nodes=["a", "b", worker("w")], pods=golds(a=1))
    assert scored(made(), pod, state) == {"a": 0, "b": 0, "w": 100}
    state.apply(Gone(worker("w")))
    assert scored(made(), pod, state) == {"a": 0, "b": 100}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param({"matchLabels": {"pool": "blue"}}, {"a": 100, "b": 0, "c": 0, "w": 0}, id="by a label"),
        pytest.param(
            {"matchExpressions": [{"key": "pool", "operator": "Exists"}]},
            {"a": 0, "b": 100, "c": 0, "w": 0},
            id="by a condition",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["blue"]}]},
            {"a": 0, "b": 100, "c": 100, "w": 100},
            id="instead of the worker's role",
        ),
        pytest.param({}, {"a": 0, "b": 100, "c": 100, "w": 100}, id="an empty one is everybody"),
        pytest.param({"matchLabels": {"pool": "red"}}, {"a": 0, "b": 0, "c": 0, "w": 0}, id="nobody: no say"),
    ],
)
def test_workers_may_be_chosen_otherwise(selector: dict[str, Any], expected: dict[str, int]) -> None:
    nodes = [a_node("a", labels={"pool": "blue"}), a_node("b", labels={"pool": "green"}), a_node("c"), worker("w")]
    assert scored(made(nodeSelector=selector), a_pod(labels=GOLD), a_state(nodes=nodes, pods=golds(a=1))) == expected


# -- strategies, and what is feasible


@pytest.mark.parametrize(
    ("strategy", "counts", "feasible", "expected"),
    [
        pytest.param("min", {"a": 1, "b": 2}, "abc", {"a": 0, "b": 0, "c": 100}, id="min: the fewest"),
        pytest.param(
            "min", {"a": 1, "b": 2}, "ab", {"a": 0, "b": 0}, id="min: the fewest are on a node that is not feasible"
        ),
        pytest.param("feasibleMin", {"a": 1, "b": 2}, "abc", {"a": 0, "b": 0, "c": 100}, id="feasibleMin: the fewest"),
        pytest.param(
            "feasibleMin", {"a": 1, "b": 2}, "ab", {"a": 100, "b": 0}, id="feasibleMin: the fewest of the feasible"
        ),
        pytest.param("feasibleMin", {"a": 1}, "i", {"i": 0}, id="feasibleMin: no worker is feasible"),
        pytest.param(
            "feasibleMin", {"b": 1}, "bi", {"b": 100, "i": 0}, id="feasibleMin: others do not count, feasible or not"
        ),
        pytest.param("proportional", {}, "abci", {"a": 100, "b": 100, "c": 100, "i": 0}, id="proportional: no pods"),
        pytest.param(
            "proportional", {"a": 3, "b": 3, "c": 3}, "abc", {"a": 100, "b": 100, "c": 100}, id="proportional: balance"
        ),
        pytest.param(
            "proportional",
            {"a": 1, "b": 3},
            "abc",
            {"a": 66, "b": 1, "c": 100},
            id="proportional: truncated, 1 at least",
        ),
        pytest.param(
            "proportional", {"a": 49, "b": 50}, "abc", {"a": 2, "b": 1, "c": 100}, id="proportional: a gradient"
        ),
        pytest.param(
            "proportional", {"a": 1, "b": 3}, "ab", {"a": 66, "b": 1}, id="proportional: of all, feasible or not"
        ),
        pytest.param(
            "proportional",
            {"a": 2, "b": 4, "c": 2, "i": 9},
            "abci",
            {"a": 100, "b": 1, "c": 100, "i": 0},
            id="proportional: a node that is no worker cannot push scores out of range",
        ),
    ],
)
def test_strategies(strategy: str, counts: dict[str, int], feasible: str, expected: dict[str, int]) -> None:
    state = a_state(nodes=[*workers(*"abc"), a_node("i")], pods=golds(**counts))
    assert scored_among(made(strategy=strategy), state, feasible) == expected
