"""Pods without a node, counted by labels before and after the first query."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.columns.pods.pending import PendingPods
from stowplan.objects.affinity import PodQuery
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import from_labels
from stowplan.testing.builders import a_pod

X = PodQuery(frozenset({"default"}), from_labels({"app": "x"}))


@pytest.mark.parametrize(
    ("pod", "number"),
    [
        pytest.param({}, 1, id="one that waits"),
        pytest.param({"node": "a"}, 0, id="it has a node"),
        pytest.param({"phase": "Failed"}, 0, id="it is done"),
        pytest.param({"terminating": True}, 0, id="it is about to go"),
        pytest.param({"namespace": "other"}, 0, id="of another namespace"),
        pytest.param({"labels": {"app": "y"}}, 0, id="with other labels"),
        pytest.param({"schedulingGates": [{"name": "g"}]}, 1, id="one that is held back waits, too"),
    ],
)
def test_which_pods_are_pending(pod: dict[str, Any], number: int) -> None:
    waiting = PendingPods()
    waiting.update(a_pod(**{"labels": {"app": "x"}, **pod}), False)
    assert waiting.count(X) == number


PODS = st.builds(
    lambda name, app, node, gone: (a_pod(name, labels={"app": app}, node=node), gone),
    st.sampled_from("pqr"),
    st.sampled_from("xy"),
    st.sampled_from(("", "", "a")),
    st.booleans(),
)


@given(st.lists(st.tuples(PODS, st.booleans()), max_size=20))
def test_counts_of_pending_pods_are_kept_up_to_date(story: list[tuple[tuple[Pod, bool], bool]]) -> None:
    waiting, known = PendingPods(), dict[str, Pod]()
    for (pod, gone), asks in story:
        waiting.update(pod, gone)
        known.pop(pod.uid, None)
        if not gone and not pod.node_name:
            known[pod.uid] = pod
        if asks:
            assert waiting.count(X) == sum(each.labels["app"] == "x" for each in known.values())
