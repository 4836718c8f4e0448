"""Pods without a node, counted by labels before and after the first query."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.pods.pending import PendingPods
from stowplan.objects.affinity import PodQuery
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import from_labels
from stowplan.testing.builders import a_pod, a_state

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


def test_an_assumed_pod_counts_on_its_node_alone() -> None:
    """Before and after the first query, and whatever the API server says of it meanwhile."""
    for asked_first in (True, False):
        waiting, pod = PendingPods(), a_pod("p", labels={"app": "x"})
        waiting.update(pod, False)
        if asked_first:
            assert waiting.count(X) == 1
        waiting.placed(pod.uid)
        assert (waiting.count(X), waiting.waits(pod.uid)) == (0, False)
        waiting.update(a_pod("p", labels={"app": "x", "other": "label"}), False)
        assert waiting.count(X) == 0
        waiting.displaced(pod.uid)
        assert (waiting.count(X), waiting.waits(pod.uid)) == (1, True)
        waiting.placed(pod.uid)
        waiting.update(a_pod("p", labels={"app": "x"}, node="a"), False)
        waiting.displaced(pod.uid)  # its version without a node leaves, the one with a node follows
        assert waiting.count(X) == 0


def test_pods_exist_once() -> None:
    """With a node, without one, assumed, in a trial, and not known at all."""
    incoming, bound = a_pod("incoming", labels={"app": "x"}), a_pod("bound", labels={"app": "x"}, node="a")
    state = a_state(nodes=["a"], pods=[bound, incoming])
    cluster = Cluster(state)
    assert cluster.existing_count(X) == cluster.existing_count(X, with_pod=incoming) == 2
    assert cluster.existing_count(X, with_pod=a_pod("stranger", labels={"app": "x"})) == 3
    with state.trial() as trial:
        trial.add_pod(incoming, "a")
        assert cluster.existing_count(X) == cluster.existing_count(X, with_pod=incoming) == 2
        trial.remove_pod(bound.uid)
        assert (cluster.existing_count(X), cluster.existing_count(X, with_pod=bound)) == (1, 2)
    assert cluster.existing_count(X) == 2 and cluster.pending_count(X) == 1
