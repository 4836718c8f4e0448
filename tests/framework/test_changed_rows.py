"""Rows that changed, asked about one node at a time: who is asked, and that both forms of a plugin agree."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from stowplan.framework.changed_rows import FEW
from stowplan.framework.decision import SKIP, Reject, RejectPod
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.per_node import filter_each
from stowplan.objects.changes import Put
from stowplan.objects.nodes import NodeCondition
from stowplan.plugins.nodes.default.node_affinity import NodeAffinityPlugin
from stowplan.plugins.nodes.default.node_declared_features import NodeDeclaredFeatures
from stowplan.plugins.nodes.default.node_name import NodeName
from stowplan.plugins.nodes.default.node_ports import NodePorts
from stowplan.plugins.nodes.default.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from stowplan.plugins.nodes.default.node_resources_fit import NodeResourcesFit
from stowplan.plugins.nodes.default.node_unschedulable import NodeUnschedulable
from stowplan.plugins.nodes.default.taint_toleration import TaintToleration
from stowplan.testing.builders import a_node, a_pod, a_profile_of, a_state, rejections, scores
from stowplan.testing.plugin_questions import filtered, scored
from tests import strategies
from tests.hypothesis_settings import max_examples


class Fake:
    """Judges by row. It notes each question, and by which method."""

    filters_by_row = scores_by_row = True
    local = ""

    def __init__(self, label: str = "bad") -> None:
        self.label = label
        self.asked: list[str] = []

    def filter(self, pod: Any, nodes: Any) -> Any:
        self.asked += [f"filter {name}" for name in nodes.names]
        yield Reject(nodes.label(self.label).present, f"{self.label} node")

    def fits(self, pod: Any, node: Any) -> Any:
        self.asked.append(f"fits {node.name}")
        return f"{self.label} node" if self.label in node.labels else None

    def score(self, pod: Any, nodes: Any) -> Any:
        return np.minimum(nodes.free["cpu"] // 100, 100)

    def rate(self, pod: Any, node: Any) -> Any:
        return min(node.free("cpu") // 100, 100)

    def told(self) -> list[str]:
        asked, self.asked = self.asked, []
        return asked


class OfTheNode(Fake):
    local = "node"


def test_a_row_that_changed_is_asked_about_by_itself() -> None:
    plugin = Fake()
    profile, state = a_profile_of(plugin), a_state(nodes=["a", "b", "c"])
    schedule_one(a_pod(), state, profile)
    assert plugin.told() == ["filter a", "filter b", "filter c"]
    state.apply(Put(a_pod("there", node="b", cpu=1)))
    assert scores(schedule_one(a_pod("next"), state, profile)) == {"a": 40, "b": 30, "c": 40}
    state.apply(Put(a_node("c", labels={"bad": "yes"})))
    decision = schedule_one(a_pod("third"), state, profile)
    assert rejections(decision)["c"] == ("Fake", "Unschedulable", ("bad node",))
    assert scores(decision) == {"a": 40, "b": 30}
    assert plugin.told() == ["fits b", "fits c"]


def test_many_rows_are_asked_about_together() -> None:
    plugin, names = Fake(), [f"n{number}" for number in range(2 * FEW)]
    profile, state = a_profile_of(plugin), a_state(nodes=names)
    schedule_one(a_pod(), state, profile)
    plugin.told()
    for number in range(FEW + 1):
        state.apply(Put(a_pod(f"p{number}", node=f"n{number}")))
    schedule_one(a_pod(), state, profile)
    assert plugin.told() == [f"filter n{number}" for number in range(FEW + 1)]


def test_a_filter_of_the_node_alone_is_not_asked_again_when_a_pod_comes() -> None:
    of_node, other = OfTheNode("closed"), Fake()
    profile, state = a_profile_of(of_node, other), a_state(nodes=["a", a_node("b", labels={"bad": "yes"})])
    schedule_one(a_pod(), state, profile)
    of_node.told(), other.told()
    state.apply(Put(a_pod("p", node="a")))
    state.apply(Put(a_pod("q", node="b")))
    schedule_one(a_pod(), state, profile)
    assert of_node.told() == ["fits b"], "b was rejected: what comes after may be another reason"
    assert other.told() == ["fits a", "fits b"]
    state.apply(Put(a_node("a", labels={"closed": "yes"})))
    assert rejections(schedule_one(a_pod(), state, profile))["a"] is not None
    assert of_node.told() == ["fits a"] and other.told() == []


@pytest.mark.parametrize("rating", [101, -1, 3.0, None, "much"])
def test_a_wrong_rating_is_the_plugins_error(rating: Any) -> None:
    plugin = Fake()
    profile, state = a_profile_of(plugin), a_state(nodes=["a"])
    schedule_one(a_pod(), state, profile)
    state.apply(Put(a_pod("p", node="a")))
    plugin.rate = lambda *_: rating  # type: ignore[method-assign]
    error = schedule_one(a_pod(), state, profile).error
    assert error.startswith('plugin "Fake" failed at rate: answered ') and "a whole number within 0 and 100" in error
    plugin.rate = lambda *_: 7  # type: ignore[method-assign]
    assert scores(schedule_one(a_pod(), state, profile)) == {"a": 7}, "the row is asked about again"


# -- both forms of the plugins that come with Stowplan

SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 40, "score": 10}, {"utilization": 90, "score": 3}]
RATIO = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": SHAPE}}
GPU: list[Any] = [{"name": "example.com/gpu", "weight": 3}, {"name": "cpu", "weight": 2}, {"name": "ephemeral-storage"}]
ADDED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
]}}  # fmt: skip
BY_ROW = [
    pytest.param(NodeUnschedulable(), id="unschedulable"),
    pytest.param(NodeName(), id="name"),
    pytest.param(TaintToleration(), id="taints"),
    pytest.param(NodeAffinityPlugin(), id="node affinity"),
    pytest.param(NodeAffinityPlugin(ADDED), id="added node affinity"),
    pytest.param(NodeDeclaredFeatures(), id="features"),
    pytest.param(NodePorts(), id="ports"),
    pytest.param(NodeResourcesFit(), id="fit"),
    pytest.param(NodeResourcesFit(scoring_strategy={"type": "MostAllocated", "resources": GPU}), id="most allocated"),
    pytest.param(NodeResourcesFit(scoring_strategy=RATIO | {"resources": GPU}), id="ratio"),
    pytest.param(NodeResourcesBalancedAllocation(), id="balance of two"),
    pytest.param(NodeResourcesBalancedAllocation([*GPU, {"name": "memory"}]), id="balance of more"),
]
POOLS = (strategies.PODS, strategies.PODS_WITH_NODE_AFFINITY, strategies.PODS_WITH_INIT_CONTAINERS)


class OneByOne:
    """The form for one node, as a plugin."""

    def __init__(self, plugin: Any) -> None:
        self.plugin = plugin

    def filter(self, pod: Any, nodes: Any) -> Any:
        return filter_each(self.plugin, pod, nodes)

    def score(self, pod: Any, nodes: Any) -> Any:
        return np.array([self.plugin.rate(pod, node) for node in nodes], np.int64)


@pytest.mark.parametrize("plugin", BY_ROW)
@settings(max_examples=2 * max_examples())
@given(cluster=strategies.clusters(), data=st.data())
def test_both_forms_agree(plugin: Any, cluster: dict[str, Any], data: st.DataObject) -> None:
    pod = data.draw(strategies.pods("incoming", among=data.draw(st.sampled_from(POOLS))))
    state = a_state(**cluster)
    if hasattr(plugin, "fits"):
        said = filtered(plugin, pod, state)
        event("some are refused" if any(said.values()) else "none is refused")
        assert filtered(OneByOne(plugin), pod, state) == said
    if hasattr(plugin, "rate"):
        expected = scored(plugin, pod, state)
        if expected is not None and None not in expected.values():
            assert scored(OneByOne(plugin), pod, state) == expected


@pytest.mark.parametrize("amount", ["1", "9223372036854775807", "4611686018427387904"])
@pytest.mark.parametrize("kind", ["LeastAllocated", "MostAllocated"])
def test_amounts_that_do_not_fit_into_64_bits_wrap_around_in_both_forms(kind: str, amount: str) -> None:
    plugin = NodeResourcesFit(scoring_strategy={"type": kind})
    big: dict[str, Any] = {"memory": "9223372036854775807", "cpu": "9223372036854775"}
    state = a_state(nodes=[a_node("a", **big)], pods=[a_pod("p", node="a", memory=amount), a_pod("q", node="a")])
    for pod in (a_pod("x", memory=amount), a_pod("y", memory="1")):
        assert filtered(OneByOne(plugin), pod, state) == filtered(plugin, pod, state)
        assert scored(OneByOne(plugin), pod, state) == scored(plugin, pod, state)


# -- pre-filters whose answer follows from the shape


class Skips:
    pre_filters_by_shape: Any = True
    ignores_volumes = False

    def __init__(self, answer: Any = SKIP) -> None:
        self.answer, self.asked = answer, 0

    def pre_filter(self, pod: Any, cluster: Any) -> Any:
        self.asked += 1
        return self.answer

    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(np.ones(len(nodes), np.bool_), "asked in vain")


def test_a_pre_filter_that_answers_by_shape_is_asked_once_for_all_pods_of_a_shape() -> None:
    plugin = Skips()
    profile, state = a_profile_of(plugin), a_state(nodes=["a"])
    for name in ("p", "q", "r"):
        decision = schedule_one(a_pod(name), state, profile)
        assert decision.node == "a" and decision.skipped == {"Skips"}
    assert plugin.asked == 1
    schedule_one(a_pod("s", cpu=1), state, profile)
    assert plugin.asked == 2


def test_a_pre_filter_may_answer_by_shape_for_some_pods() -> None:
    plugin = Skips()
    plugin.pre_filters_by_shape = lambda pod: pod.name == "p"
    profile, state = a_profile_of(plugin), a_state(nodes=["a"])
    for _ in range(3):
        schedule_one(a_pod("q"), state, profile)
    assert plugin.asked == 3


@pytest.mark.parametrize(
    ("ignores_volumes", "asked"),
    [
        pytest.param(False, 3, id="a plugin that may look at volumes is asked about each pod"),
        pytest.param(True, 1, id="a plugin that ignores volumes is asked once"),
    ],
)
def test_pods_that_differ_in_their_claims_only(ignores_volumes: bool, asked: int) -> None:
    plugin = Skips()
    plugin.ignores_volumes = ignores_volumes
    profile, state = a_profile_of(plugin), a_state(nodes=["a"])
    for name in ("p", "q", "r"):
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        assert schedule_one(a_pod(name, volumes=volumes), state, profile).skipped == {"Skips"}
    assert plugin.asked == asked


@pytest.mark.parametrize(
    ("ignores_requests", "asked"),
    [
        pytest.param(False, 3, id="a plugin that may look at requests is asked about each size"),
        pytest.param(True, 1, id="a plugin that ignores requests is asked once"),
    ],
)
def test_pods_that_differ_in_their_requests_only(ignores_requests: bool, asked: int) -> None:
    plugin: Any = Skips()
    plugin.ignores_requests = ignores_requests
    profile, state = a_profile_of(plugin), a_state(nodes=["a"])
    for cpu in ("100m", "200m", "300m"):
        assert schedule_one(a_pod(cpu=cpu), state, profile).skipped == {"Skips"}
    assert plugin.asked == asked
    schedule_one(a_pod(cpu="100m", node_selector={"zone": "a"}), state, profile)
    assert plugin.asked == asked + 1, "another template"


def test_one_pre_filter_that_looks_at_requests_is_enough_to_ask_all_about_each_size() -> None:
    class Other(Skips):
        ignores_requests = True

    ignores, looks = Other(), Skips()
    profile, state = a_profile_of(ignores, looks), a_state(nodes=["a"])
    for cpu in ("100m", "200m"):
        schedule_one(a_pod(cpu=cpu), state, profile)
    assert (ignores.asked, looks.asked) == (2, 2)


def test_a_refusal_is_never_kept() -> None:
    plugin = Skips(RejectPod("not now"))
    profile, state = a_profile_of(plugin), a_state(nodes=["a"])
    assert schedule_one(a_pod("p"), state, profile).node is None
    plugin.answer = SKIP
    assert schedule_one(a_pod("q"), state, profile).node == "a"


class RaisesOnce(Fake):
    """Scores by size. It raises while `raises` is set."""

    raises = False

    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(nodes.free["cpu"] < 1000, "too full")

    def fits(self, pod: Any, node: Any) -> Any:
        return "too full" if node.free("cpu") < 1000 else None

    def score(self, pod: Any, nodes: Any) -> Any:
        self._raise()
        return np.minimum(nodes.allocatable["cpu"] // 100, 100)

    def rate(self, pod: Any, node: Any) -> Any:
        self._raise()
        return min(node.allocatable("cpu") // 100, 100)

    def _raise(self) -> None:
        if self.raises:
            raise ValueError("once")


@pytest.mark.parametrize("others", [pytest.param(0, id="one row changed"), pytest.param(12, id="many rows changed")])
def test_what_is_kept_is_right_after_a_plugin_raised_in_between(others: int) -> None:
    plugin = RaisesOnce()
    state = a_state(nodes=[a_node("big", cpu=8), *(a_node(f"n{number}", cpu=4) for number in range(30))])
    profile = a_profile_of(plugin)
    for _ in range(2):
        assert schedule_one(a_pod("p", cpu=1), state, profile).node == "big"
    state.apply(Put(a_pod("filling", cpu=8, node="big")))
    for number in range(others):
        state.apply(Put(a_pod(f"x{number}", cpu="100m", node=f"n{number}")))
    plugin.raises = True
    assert "ValueError: once" in schedule_one(a_pod("p", cpu=1), state, profile).error
    plugin.raises = False
    assert schedule_one(a_pod("p", cpu=1), state, profile).node != "big"
    for number in range(12):  # many rows change, so that totals are added up again
        state.apply(Put(a_pod(f"y{number}", cpu="100m", node=f"n{number}")))
    assert schedule_one(a_pod("p", cpu=1), state, profile).node != "big"


class ByAnnotation(Fake):
    local = "node"

    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(np.array([each.node.annotations.get("closed") == "yes" for each in nodes], np.bool_), "closed")

    def fits(self, pod: Any, node: Any) -> Any:
        return "closed" if node.node.annotations.get("closed") == "yes" else None


class ByCondition(Fake):
    local = "node"

    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(np.array([self.fits(pod, each) is not None for each in nodes], np.bool_), "not ready")

    def fits(self, pod: Any, node: Any) -> Any:
        return "not ready" if any(each.status == "False" for each in node.node.status.conditions) else None


def test_a_filter_of_node_objects_is_asked_again_after_a_condition_changed() -> None:
    def ready(status: str) -> Any:
        node = a_node("a")
        conditions = (NodeCondition("Ready", status),)
        return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, conditions=conditions))

    state, profile = a_state(nodes=[ready("True"), "b"]), a_profile_of(ByCondition())
    for _ in range(2):
        assert schedule_one(a_pod("p"), state, profile).node == "a"
    clock = state.table.clock
    state.apply(Put(ready("True")))
    assert state.table.clock == clock, "a heartbeat asks nobody again"
    state.apply(Put(ready("False")))
    assert schedule_one(a_pod("p"), state, profile).node == "b"


def test_a_filter_of_node_objects_is_asked_again_after_an_annotation_changed() -> None:
    state, profile = a_state(nodes=["a", "b"]), a_profile_of(ByAnnotation())
    for _ in range(2):
        assert schedule_one(a_pod("p"), state, profile).node == "a"
    state.apply(Put(a_node("a", annotations={"closed": "yes"})))
    assert schedule_one(a_pod("p"), state, profile).node == "b"
