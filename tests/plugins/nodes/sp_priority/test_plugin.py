"""SPPriority at one moment: its scores, whom it is for, its arguments, and what it can be outvoted by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.views import Cluster
from stowplan.framework.decision import SKIP, RejectPod
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.extension_points import points_of
from stowplan.framework.plugin_checks import check_plugin
from stowplan.framework.search import NodeSearch
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.sp_priority.plugin import DISABLE, LAST, STATE, SPPriority
from stowplan.testing.builders import PREFERRED, a_node, a_pod, a_profile, a_state, rejections
from stowplan.testing.plugin_questions import scored
from tests.plugins.nodes.sp_priority.replicas import a_replica, an_owner, with_priority

SEED = Path(__file__).parents[3] / "seeds" / "sp_priority"
DESIRED = "deployment.kubernetes.io/desired-replicas"


def scores(state: Any, *nodes: str, pod: Pod | None = None) -> dict[str, int] | None:
    return scored(SPPriority(), pod or a_replica(), a_state(nodes=nodes or "ABC", others=[an_owner(state)]))


# -- the formula


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(
            {"latest": "A", "node_count": {"A": 11, "B": 3, "C": 6}},
            {"A": 0, "B": 66, "C": 33},
            id="the seed's example",
        ),
        pytest.param(
            {"latest": "B", "node_count": {"A": 5, "B": 1, "C": 3}},
            {"C": 62, "A": 37, "B": 0},
            id="the seed's first section: C before A before B",
        ),
        pytest.param(None, {"A": 100, "B": 100, "C": 100}, id="no history"),
        pytest.param("", {"A": 100, "B": 100, "C": 100}, id="an empty one"),
        pytest.param({}, {"A": 100, "B": 100, "C": 100}, id="one that says nothing"),
        pytest.param({"latest": None, "node_count": None}, {"A": 100, "B": 100, "C": 100}, id="one of nulls"),
        pytest.param({"latest": "A", "node_count": {"A": 1}}, {"A": 0, "B": 100, "C": 100}, id="one node so far"),
        pytest.param(
            {"latest": "A", "node_count": {"A": 1, "B": 2}}, {"A": 0, "B": 1, "C": 100}, id="a node never used gets 100"
        ),
        pytest.param(
            {"latest": "A", "node_count": {"A": 9, "B": 4, "C": 1}},
            {"A": 0, "B": 20, "C": 80},
            id="exact where floats are not: 1 - 4/5",
        ),
        pytest.param(
            {"latest": "A", "node_count": {"B": 9, "C": 1}},
            {"A": 0, "B": 10, "C": 90},
            id="exact where floats are not: 1 - 9/10",
        ),
        pytest.param(
            {"latest": "A", "node_count": {"A": 3, "B": 1000, "C": 1}},
            {"A": 0, "B": 1, "C": 99},
            id="at least 1, so that the last node never ties",
        ),
        pytest.param(
            {"node_count": {"A": 1, "B": 3}}, {"A": 75, "B": 25, "C": 100}, id="counts without a last node: all count"
        ),
        pytest.param({"latest": "A", "node_count": {"B": 0}}, {"A": 0, "B": 100, "C": 100}, id="counts of nothing"),
        pytest.param(
            {"last": "A", "node_count": {"A": 1}}, {"A": 0, "B": 100, "C": 100}, id="last, as its code has it"
        ),
        pytest.param(
            {"last": "B", "latest": "A", "node_count": {"A": 1}}, {"A": 0, "B": 100, "C": 100}, id="latest before last"
        ),
        pytest.param(
            {"latest": "gone", "node_count": {"gone": 7, "lost": 50, "B": 1, "C": 3}},
            {"A": 100, "B": 75, "C": 25},
            id="nodes that are gone count for nothing",
        ),
        pytest.param(
            {"latest": "A", "node_count": {"A": 1}, "pending": {"uid-of-another": "B"}},
            {"A": 1, "B": 0, "C": 100},
            id="a pod that is pending, and gone, is the last",
        ),
        pytest.param(
            {"latest": "A", "node_count": {"A": 1}, "pending": {"uid-of-default-web-1": "B"}},
            {"A": 0, "B": 100, "C": 100},
            id="the pod's own note is of no attempt that got through",
        ),
        pytest.param("no JSON", {"A": 100, "B": 100, "C": 100}, id="what cannot be read is no history"),
    ],
)
def test_scores(state: Any, expected: dict[str, int]) -> None:
    assert scores(state) == expected


@pytest.mark.parametrize(("others", "least"), [(1, 1), (2, 50), (3, 66), (9, 88)])
def test_the_best_of_the_other_nodes_has_at_least(others: int, least: int) -> None:
    """As the page about it says; where the counts differ one has fewer, and more points."""
    names = [f"n{number}" for number in range(others)]
    found = scores({"latest": "last", "node_count": dict.fromkeys(names, 7)}, "last", *names)
    assert found is not None and max(found.values()) == least
    uneven = scores({"latest": "last", "node_count": {name: 3 + at for at, name in enumerate(names)}}, "last", *names)
    assert uneven is not None and max(uneven.values()) >= least


def test_the_seeds_worked_example_is_a_history() -> None:
    assert scores((SEED / "state.yaml").read_text(encoding="utf-8")) == {"A": 0, "B": 66, "C": 33}


def test_only_feasible_nodes_are_scored_but_all_that_exist_count() -> None:
    nodes: list[Node | str] = ["A", "B", a_node("C", unschedulable=True)]
    state = a_state(nodes=nodes, others=[an_owner({"latest": "A", "node_count": {"B": 1, "C": 3}})])
    decision = schedule_one(a_replica(), state, with_priority())
    assert {name: each["SPPriority"] for name, each, _ in decision.trail.scored()} == {"A": 0, "B": 75}


def texts() -> st.SearchStrategy[Any]:
    """Histories that are ours, nearly ours, and nothing of the kind."""
    names = st.sampled_from(("A", "B", "C", "gone", ""))
    counts = st.dictionaries(names, st.one_of(st.integers(-1, 5), st.integers(0, 2**80)))
    fields = {"latest": names, "last": names, "node_count": counts, "pending": st.dictionaries(st.text(), names)}
    return st.one_of(st.text(), st.none(), st.fixed_dictionaries({}, optional=fields))


@given(texts())
def test_scores_are_within_0_and_100_whatever_the_annotation_says(state: Any) -> None:
    found = scores(state)
    assert found is not None and all(0 <= score <= 100 for score in found.values())
    assert list(found.values()).count(0) <= 1, "nobody ties with the last node"


class Twin:
    """The formula for one node at a time."""

    def __init__(self, last: str, counts: dict[str, int]) -> None:
        self._last, self._counts = last, counts

    def rate(self, pod: Pod, node: OneNode) -> int:
        if pod.controller() is None or not self._counts:
            return 100
        total = sum(count for name, count in self._counts.items() if name != self._last)
        mine = self._counts.get(node.name, 0)
        return 0 if node.name == self._last else max(100 * (total - mine) // total, 1) if total else 100


@pytest.mark.parametrize("strict", [False, True])
def test_the_contract_of_plugins(strict: bool) -> None:
    one = an_owner({"latest": "n0", "node_count": {"n0": 2, "n1": 1, "n2": 5}})
    idle = {} if strict else {"avoid": "only the strict form avoids nodes"}
    assert check_plugin(SPPriority(strict=strict), pods=[a_replica()], objects=[one], idle=idle) == []
    # The nodes n0, n1, n2 are not in every cluster that is drawn, and nodes that are gone do not count.
    only = an_owner({"latest": "n0", "node_count": {"n0": 2}})
    twin = Twin("n0", {"n0": 2})
    assert check_plugin(SPPriority(strict=strict), twin=twin, pods=[a_replica()], objects=[only], idle=idle) == []


def test_it_may_be_listed_where_its_seed_has_it() -> None:
    assert points_of(SPPriority) == {"preFilter", "preScore", "score", "reserve", "preBind", "postBind"}


# -- whom it is for

OF_DEPLOYMENT = ("Deployment", "shop")


@pytest.mark.parametrize(
    ("args", "pod", "owner"),
    [
        pytest.param({}, {}, {}, id="the pod of a ReplicaSet of one"),
        pytest.param({}, {"namespace": "kube-system"}, {"namespace": "kube-system"}, id="in any namespace"),
        pytest.param({"skip_multi_replica": False}, {}, {"replicas": 3}, id="of several, if it is told so"),
        pytest.param({"disable_ann_key": "off"}, {"annotations": {DISABLE: ""}}, {}, id="another annotation disables"),
        pytest.param({}, {}, {"annotations": {DESIRED: "1"}}, id="a ReplicaSet of a Deployment of one"),
        pytest.param({}, {}, {"annotations": {DESIRED: "many"}}, id="an annotation that says nothing"),
        pytest.param({}, {}, {"replicas": 0}, id="a ReplicaSet that is about to have none"),
        pytest.param(
            {"stateful_sets": True}, {"of": ("StatefulSet", "web")}, {"kind": "StatefulSet"}, id="a StatefulSet"
        ),
    ],
)
def test_pods_that_it_is_for(args: dict[str, Any], pod: dict[str, Any], owner: dict[str, Any]) -> None:
    plugin, one = SPPriority(**args), a_replica(**pod)
    cluster = Cluster(a_state(nodes="AB", others=[an_owner({"latest": "A"}, **owner)]))
    assert plugin.pre_filter(one, cluster) is None
    found = plugin.score(one, cluster.nodes)
    assert isinstance(found, np.ndarray) and found.tolist() == [0, 100]
    assert recorded(plugin, one, cluster) == 1


@pytest.mark.parametrize(
    ("args", "pod", "owner"),
    [
        pytest.param({"namespace_white_list": ["default"]}, {}, {}, id="of a namespace on the white list"),
        pytest.param({"excluded_namespaces": ["default"]}, {}, {}, id="of a namespace that is excluded"),
        pytest.param({}, {"annotations": {DISABLE: "true"}}, {}, id="with the annotation"),
        pytest.param({}, {"annotations": {DISABLE: "false"}}, {}, id="with the annotation, whatever it says"),
        pytest.param({"disable_ann_key": "off"}, {"annotations": {"off": ""}}, {}, id="with another annotation"),
        pytest.param({}, {}, {"replicas": 2}, id="one of several"),
        pytest.param({}, {}, {"annotations": {DESIRED: "4"}}, id="the first of a new ReplicaSet, of several in all"),
        pytest.param({}, {"of": None}, {}, id="without a controller"),
        pytest.param(
            {}, {"of": ("ReplicaSet", "web", "apps.example/v1")}, {}, id="of a ReplicaSet that is not apps/v1"
        ),
        pytest.param({}, {"of": ("Job", "web", "batch/v1")}, {}, id="of a Job"),
        pytest.param({}, {"of": ("StatefulSet", "web")}, {"kind": "StatefulSet"}, id="of a StatefulSet, unasked"),
    ],
)
def test_pods_that_it_is_not_for(args: dict[str, Any], pod: dict[str, Any], owner: dict[str, Any]) -> None:
    """Neither scored nor counted."""
    plugin, one = SPPriority(**args), a_replica(**pod)
    cluster = Cluster(a_state(nodes="AB", others=[an_owner({"latest": "A"}, **owner)]))
    assert plugin.pre_filter(one, cluster) is SKIP
    assert plugin.score(one, cluster.nodes) is None
    assert recorded(plugin, one, cluster) == 0


def recorded(plugin: SPPriority, pod: Pod, cluster: Cluster) -> int:
    """How often a pod on its way to node B is noted."""
    plugin.reserve(pod, "B", cluster)
    noted = len(list(plugin.pre_bind(pod, "B", cluster)))
    assert plugin.pre_bound(pod, "B", cluster) is True
    assert list(plugin.post_bind(pod, "B", cluster)) == []
    return noted


def test_the_deployment_keeps_the_history_if_it_is_told_to() -> None:
    one = an_owner({"latest": "A"}, kind="Deployment", name="shop")
    its, bare = an_owner({"latest": "B"}, of=OF_DEPLOYMENT), an_owner({"latest": "B"}, name="bare")
    state = a_state(nodes="AB", others=[one, its, bare])
    pods = {"a pod of the Deployment": a_replica(), "of no Deployment": a_replica(of=("ReplicaSet", "bare"))}
    found = {what: scored(SPPriority(state_owner="Deployment"), pod, state) for what, pod in pods.items()}
    assert found == {"a pod of the Deployment": {"A": 0, "B": 100}, "of no Deployment": {"A": 100, "B": 0}}
    assert scored(SPPriority(), a_replica(), state) == {"A": 100, "B": 0}, "by default the ReplicaSet does"


@pytest.mark.parametrize(
    ("args", "there", "missing"),
    [
        pytest.param({}, [], "ReplicaSet default/web", id="its ReplicaSet"),
        pytest.param(
            {},
            [an_owner(of=None, namespace="other")],
            "ReplicaSet default/web",
            id="one of that name elsewhere is not it",
        ),
        pytest.param(
            {"state_owner": "Deployment"}, [an_owner(of=OF_DEPLOYMENT)], "Deployment default/shop", id="its Deployment"
        ),
    ],
)
def test_a_pod_heard_of_before_its_owner_waits(args: dict[str, Any], there: list[Any], missing: str) -> None:
    plugin, cluster = SPPriority(**args), Cluster(a_state(nodes="AB", others=there))
    expected = RejectPod((f"waiting for {missing} to be seen",), resolvable=False, waits=True)
    assert plugin.pre_filter(a_replica(), cluster) == expected
    assert plugin.score(a_replica(), cluster.nodes) is None


@pytest.mark.parametrize(
    ("found", "helps"),
    [
        pytest.param(an_owner(), True, id="its owner"),
        pytest.param(an_owner(name="other"), False, id="another owner"),
        pytest.param(an_owner(namespace="other"), False, id="one elsewhere"),
        pytest.param(an_owner(kind="Deployment", name="shop"), True, id="a Deployment may be its owner's"),
    ],
)
def test_what_wakes_it(found: Any, helps: bool) -> None:
    plugin = SPPriority(state_owner="Deployment")
    assert {wake.resource for wake in plugin.wakes_on()} == {"ReplicaSet", "Deployment"}
    assert plugin.may_be_owner(a_replica(), None, found) is helps


# -- what it can be outvoted by, and `strict`


def preferring(node: str, **keywords: Any) -> Pod:
    """A pod that would rather be there: 100 points of NodeAffinity, of weight 2."""
    there = {"matchExpressions": [{"key": "name", "operator": "In", "values": [node]}]}
    affinity = {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": there}]}}
    return a_replica(affinity=affinity, **keywords)


def named(*names: str, **keywords: Any) -> list[Any]:
    return [a_node(name, labels={"name": name}, **keywords) for name in names]


ONE_OTHER = {"latest": "A", "node_count": {"A": 1, "B": 1}}
TWO_OTHERS = {"latest": "A", "node_count": {"A": 1, "B": 1, "C": 1}}
TAINT = "k=v:PreferNoSchedule"


@pytest.mark.parametrize(
    ("nodes", "state", "weight", "chosen"),
    [
        pytest.param(named("A", "B"), ONE_OTHER, 5, "A", id="of two nodes the other may have 1 point, times 5"),
        pytest.param(named("A", "B"), ONE_OTHER, 201, "B", id="and needs a weight above what speaks for the last"),
        pytest.param(named("A", "B", "C"), TWO_OTHERS, 5, "BC", id="of three nodes one has 50 points: 250 against 200"),
        pytest.param(named("A", "B", "C"), TWO_OTHERS, 3, "A", id="150 against 200"),
        pytest.param(
            [*named("A"), *named("B", "C", taints=[TAINT])], TWO_OTHERS, 5, "A", id="250 against 500, with soft taints"
        ),
        pytest.param(
            [*named("A"), *named("B", "C", taints=[TAINT])], TWO_OTHERS, 25, "BC", id="25 is enough for three nodes"
        ),
    ],
)
def test_default_scores_can_outvote_it(nodes: list[Any], state: Any, weight: int, chosen: str) -> None:
    cluster = a_state(nodes=nodes, others=[an_owner(state)])
    assert schedule_one(preferring("A"), cluster, with_priority(weight)).node in [*chosen]


@pytest.mark.parametrize(
    ("nodes", "pod", "node", "refused"),
    [
        pytest.param(named("A", "B"), {}, "B", "A", id="the last node is refused though all else speaks for it"),
        pytest.param([*named("A"), *named("B", unschedulable=True)], {}, "A", "", id="it is taken if no other will do"),
        pytest.param([*named("A"), *named("B", cpu=1)], {"cpu": 2}, "A", "", id="if the other has no room"),
        pytest.param(named("A"), {}, "A", "", id="if there is no other"),
        pytest.param(named("B", "C"), {}, "C", "", id="if it is gone there is nothing to refuse"),
        pytest.param(named("A", "B"), {"nominated": "A"}, "A", "", id="if it was promised to the pod"),
        pytest.param(named("A", "B"), {"of": None}, "A", "", id="pods that it is not for are free to go there"),
    ],
)
def test_strict(nodes: list[Any], pod: dict[str, Any], node: str, refused: str) -> None:
    cluster = a_state(nodes=nodes, others=[an_owner(ONE_OTHER)])
    decision = schedule_one(preferring("A", **pod), cluster, with_priority(1, strict=True), search=NodeSearch())
    assert decision.node == node
    by_us = {name: said[2] for name, said in rejections(decision).items() if said and said[0] == "SPPriority"}
    assert by_us == ({refused: (LAST,)} if refused else {})


def test_strict_makes_no_pod_unschedulable() -> None:
    cluster = a_state(nodes=[a_node("A", cpu=1), a_node("B", cpu=1)], others=[an_owner(ONE_OTHER)])
    decision = schedule_one(a_replica(cpu=2), cluster, with_priority(strict=True))
    assert decision.node is None and decision.message == "0/2 nodes are available: 2 Insufficient cpu."


def test_without_strict_nothing_is_refused() -> None:
    cluster = a_state(nodes=named("A", "B"), others=[an_owner(ONE_OTHER)])
    assert all(said is None for said in rejections(schedule_one(a_replica(), cluster, with_priority())).values())


def test_other_pods_are_decided_as_without_it() -> None:
    cluster = a_state(nodes=named("A", "B"), others=[an_owner(ONE_OTHER)])
    plain, ours = (schedule_one(a_pod(), cluster, profile) for profile in (a_profile(), with_priority(strict=True)))
    assert list(plain.trail.scored()) == [
        (name, {key: value for key, value in each.items() if key != "SPPriority"}, total)
        for name, each, total in ours.trail.scored()
    ]


def test_the_annotation_has_the_seeds_name() -> None:
    assert STATE == "annotation.sp.io/schedule-state" and DISABLE == "annotation.sp.io/disable-priority-scheduler"
