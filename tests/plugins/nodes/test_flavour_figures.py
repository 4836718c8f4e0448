"""FlavourClusterWide's figures for people who watch, and recounts from the API's objects."""

from __future__ import annotations

import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.interfaces import Drift
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes import flavour_cluster_wide
from stowplan.plugins.nodes.flavour_cluster_wide import FlavourClusterWide
from stowplan.testing.builders import a_node, a_pod, a_state
from tests.plugins.nodes.flavours import CONTROL_PLANE, GOLD, golds, made, workers

# -- figures


def figures(plugin: FlavourClusterWide, state: ClusterState) -> dict[tuple[str, ...], float]:
    return {(each.name, *each.labels.values()): each.value for each in plugin.gauges(Cluster(state))}


def test_figures_by_flavour_and_node() -> None:
    silver = a_pod("s", node="infra", labels={"flavour": "silver"})
    others = [a_pod("plain", node="a"), a_pod("empty", node="a", labels={"flavour": ""})]
    state = a_state(nodes=[*workers(*"ab"), a_node("infra")], pods=[*golds(a=3, b=1), silver, *others])
    assert figures(made(), state) == {
        ("flavour_skew", "flavour", "gold"): 2,
        ("flavour_pods", "flavour", "gold", "a"): 3,
        ("flavour_pods", "flavour", "gold", "b"): 1,
        ("flavour_skew", "flavour", "silver"): 0,
        ("flavour_pods", "flavour", "silver", "a"): 0,
        ("flavour_pods", "flavour", "silver", "b"): 0,
        ("flavour_pods", "flavour", "silver", "infra"): 1,
    }
    assert figures(made(labelName="tier"), state) == {}


def test_no_workers_no_skew() -> None:
    state = a_state(nodes=[a_node("c", labels={CONTROL_PLANE: ""})], pods=golds(c=1))
    assert figures(made(), state) == {("flavour_pods", "flavour", "gold", "c"): 1}


def test_too_many_figures_are_not_shown_node_by_node(monkeypatch: pytest.MonkeyPatch) -> None:
    state = a_state(nodes=workers(*"abc"), pods=golds(a=3, b=1))
    monkeypatch.setattr(flavour_cluster_wide, "MOST_FIGURES", 2)
    a, b = ("flavour_pods", "flavour", "gold", "a"), ("flavour_pods", "flavour", "gold", "b")
    assert figures(made(), state) == {("flavour_skew", "flavour", "gold"): 3, a: 3, b: 1}, "first the zeros go"
    monkeypatch.setattr(flavour_cluster_wide, "MOST_FIGURES", 1)
    assert figures(made(), state) == {("flavour_skew", "flavour", "gold"): 3}
    monkeypatch.setattr(flavour_cluster_wide, "MOST_FLAVOURS", 0)
    assert figures(made(), state) == {}


# -- recounts


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param(golds(a=2, b=1), [], id="no difference"),
        pytest.param(golds(a=1, b=1), [Drift("flavour=gold on node a", 2, 1)], id="one too many"),
        pytest.param(golds(a=2, b=2), [Drift("flavour=gold on node b", 1, 2)], id="one too few"),
        pytest.param(
            [*golds(a=2, b=1), a_pod("s", node="b", labels={"flavour": "silver"})],
            [Drift("flavour=silver on node b", 0, 1)],
            id="a flavour that the model does not know",
        ),
        pytest.param(
            [],
            [Drift("flavour=gold on node a", 2, 0), Drift("flavour=gold on node b", 1, 0)],
            id="a flavour that is not there",
        ),
        pytest.param(
            [
                *golds(a=2, b=1),
                a_pod("f", node="a", labels=GOLD, phase="Failed"),
                a_pod("l", node="a", labels=GOLD, terminating=True),
                a_pod("w", labels=GOLD),
                a_pod("e", node="a", labels={"flavour": ""}),
                a_pod("n", node="a"),
            ],
            [],
            id="what does not count",
        ),
    ],
)
def test_a_recount_tells_what_differs(pods: list[Pod], expected: list[Drift]) -> None:
    state = a_state(nodes=workers(*"ab"), pods=golds(a=2, b=1))
    assert list(made().recount(pods, Cluster(state))) == expected


def test_a_recount_agrees_on_nodes_that_are_gone_and_on_pods_on_their_way_out() -> None:
    pods = [*golds(a=2, gone=1), a_pod("l", node="a", labels=GOLD, terminating=True)]
    state = a_state(nodes=workers(*"ab"), pods=pods)
    for plugin in (made(), made(countTerminating=True)):
        assert list(plugin.recount(pods, Cluster(state))) == []
