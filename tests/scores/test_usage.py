"""What a cluster has left: which nodes and pods count, and that keeping count comes to the same as counting."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.objects.changes import Change, Gone, Put
from stowplan.objects.meta import Object
from stowplan.scores import Bounds
from stowplan.scores.usage import Measure, Usage, default_measures
from stowplan.testing.builders import a_node, a_pod


def measured(*objects: Object, measures: Sequence[Measure] = default_measures()) -> dict[str, int]:
    """The scores that come of these objects."""
    usage = Usage()
    usage.apply([Put(each) for each in objects])
    found = usage.measured(measures)
    return {each.name: each.bounds.score(found[each.name]) for each in measures}


NODE = a_node("a", cpu="100", memory="100G")


@pytest.mark.parametrize(
    ("objects", "scores"),
    [
        pytest.param([NODE], {"cpuratio": 100, "memratio": 100, "cpu": 100, "mem": 100}, id="an empty cluster"),
        pytest.param(
            [NODE, a_pod(node="a", cpu="60", memory="75G")],
            {"cpuratio": -20, "memratio": -50, "cpu": -20, "mem": -51},
            id="40 of 100 cores are left",
        ),
        pytest.param(
            [NODE, a_pod(node="a", cpu="200", memory="200G")],
            {"cpuratio": -100, "memratio": -100, "cpu": -100, "mem": -100},
            id="more requested than there is",
        ),
        pytest.param([], {"cpuratio": -100, "memratio": -100, "cpu": -100, "mem": -100}, id="no nodes"),
    ],
)
def test_the_four_scores(objects: list[Object], scores: dict[str, int]) -> None:
    assert measured(*objects) == scores


@pytest.mark.parametrize(
    ("objects", "cores"),
    [
        pytest.param([a_node("a", cpu=4), a_node("b", cpu=8)], 12, id="nodes are added up"),
        pytest.param([a_node("a", cpu=4, unschedulable=True)], 0, id="a cordoned node takes no pods"),
        pytest.param([a_node("a", taints=["node.kubernetes.io/not-ready:NoExecute"])], 0, id="nor one not ready"),
        pytest.param(
            [a_node("a", taints=["node-role.kubernetes.io/control-plane:NoSchedule"])], 0, id="nor the masters"
        ),
        pytest.param([a_node("a", taints=["node.kubernetes.io/x:PreferNoSchedule"])], 4, id="a preference is ignored"),
        pytest.param([a_node("a", taints=["nvidia.com/gpu:NoSchedule"])], 4, id="a custom taint is tolerated"),
        pytest.param(
            [a_node("a"), a_node("b", unschedulable=True), a_pod(node="b", cpu=3)], 4, id="pods elsewhere take nothing"
        ),
        pytest.param([a_node("a"), a_pod(cpu=3)], 4, id="a pending pod has nothing yet"),
        pytest.param([a_node("a"), a_pod(node="a", cpu=3, phase="Succeeded")], 4, id="a finished one nothing any more"),
        pytest.param([a_node("a"), a_pod(node="a", cpu=3, terminating=True)], 1, id="a terminating pod counts"),
        pytest.param([a_pod(node="a", cpu=3), a_node("a")], 1, id="the pod is seen before its node"),
        pytest.param(
            [a_node("a"), a_node("b"), a_pod(node="a", cpu=9)], 4, id="what one node lacks the others do not pay"
        ),
        pytest.param([a_node("a"), a_pod(node="a", cpu="1500m")], 2.5, id="parts of a core"),
    ],
)
def test_what_counts(objects: list[Object], cores: float) -> None:
    usage = Usage()
    usage.apply([Put(each) for each in objects])
    assert usage.free_and_total("cpu")[0] == cores


def test_any_resource_may_have_a_score() -> None:
    gpus = Measure("gpu", "nvidia.com/gpu", Bounds(0, 20))
    node = a_node("a", resources={"nvidia.com/gpu": "8"})
    pod = a_pod(node="a", requests={"nvidia.com/gpu": "6"})
    assert measured(node, pod, measures=[gpus]) == {"gpu": -80}


NODES = st.builds(
    a_node,
    st.sampled_from("ab"),
    cpu=st.sampled_from(["2", "500m"]),
    memory=st.just("4Gi"),
    unschedulable=st.booleans(),
)
PODS = st.builds(
    a_pod, st.sampled_from("xyz"), node=st.sampled_from(["", "a", "b"]), cpu=st.sampled_from(["1", "100m"]),
    phase=st.sampled_from(["Running", "Failed"]),
)  # fmt: skip


@given(st.lists(st.tuples(st.booleans(), NODES | PODS)))
def test_keeping_count_comes_to_the_same_as_counting(history: list[tuple[bool, Object]]) -> None:
    kept, there = Usage(), dict[str, Object]()
    for stays, found in history:
        change: Change = Put(found) if stays else Gone(found)
        kept.apply([change])
        there.pop(found.uid, None)
        if stays:
            there[found.uid] = found
    counted = Usage()
    counted.apply([Put(each) for each in there.values()])
    assert kept.measured(default_measures()) == counted.measured(default_measures())
