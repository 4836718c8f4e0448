"""What requeues a pod that was rejected because of other pods: affinity and spreading."""

from __future__ import annotations

import pytest

from stowplan.objects.changes import Gone
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from tests.engine.situations.requeueing import NOT_READY, away, in_group, near, queued_again, rejected, spread

A, V = {"anti1": "anti1"}, {"key1": "val"}

POD_AFFINITY = [
    pytest.param(
        "InterPodAffinity",
        [a_node("n", labels={"node": "n"}), a_pod("pod1", labels={"anti": "x"}, node="n", **away("anti", "node"))],
        [a_pod("pod2", labels={"anti": "x"}, **away("anti", "node"))],
        [a_node("m", labels={"node": "m"}, taints=[NOT_READY]), a_node("m", labels={"node": "m"})],
        {"pod2"},
        id="pod affinity: a node comes, and becomes ready",
    ),
    pytest.param(
        "InterPodAffinity",
        [a_node("n", labels={"node": "n"}), a_pod("pod1", labels={**A, "anti2": "x"}, node="n")],
        [
            a_pod("pod2", labels=A, **away("anti1", "node")),
            a_pod("pod3", labels={"anti2": "x"}, **away("anti2", "node")),
        ],
        [a_pod("pod1", labels={"anti2": "x"}, node="n")],
        {"pod2"},
        id="pod affinity: a pod loses the label for which one avoids it",
    ),
    pytest.param(
        "InterPodAffinity",
        [
            a_node("n", labels={"node": "n"}),
            a_pod("pod1", labels=A, node="n"),
            a_pod("pod2", labels={"b": ""}, node="n"),
        ],
        [a_pod("pod3", labels=A, **away("anti1", "node")), a_pod("pod4", labels={"b": ""}, **away("b", "node"))],
        [Gone(a_pod("pod1"))],
        {"pod3"},
        id="pod affinity: a pod is deleted that one avoids",
    ),
    pytest.param(
        "InterPodAffinity",
        [
            a_node("n", labels={"node": "n"}),
            a_pod("pod1", node="n", **away("anti1", "node")),
            a_pod("pod2", node="n", **away("anti2", "node")),
        ],
        [a_pod("pod3", labels=A), a_pod("pod4", labels={"anti2": "x"})],
        [Gone(a_pod("pod1"))],
        {"pod3"},
        id="pod affinity: a pod is deleted that avoids one",
    ),
    pytest.param(
        "InterPodAffinity",
        [a_node("n", labels={"node": "n"}), a_pod("pod1", node="n")],
        [a_pod("pod2", **near("aaa", "node")), a_pod("pod3", **near("bbb", "node"))],
        [a_pod("pod1", labels={"aaa": "x"}, node="n")],
        {"pod2"},
        id="pod affinity: a pod gets the label that one wants to be near",
    ),
    pytest.param(
        "InterPodAffinity",
        [a_node("n", labels={"aaa": "n"})],
        [a_pod("pod1", **near("bbb", "zone")), a_pod("pod2", **near("ccc", "region"))],
        [a_node("m", labels={"zone": "z"})],
        {"pod1"},
        id="pod affinity: a node comes with the key of what one wants to be near",
    ),
    pytest.param(
        "InterPodAffinity NodeAffinity",
        [
            a_node("n", labels={"region": "1"}),
            a_node("m", labels={"region": "2", "group": "b"}),
            a_pod("pod1", labels={"aff": "x"}, node="n"),
        ],
        [
            a_pod("pod2", labels={"aff": "x"}, **near("aff", "node")),
            a_pod("pod3", labels={"aff": "x"}, **near("aff", "other")),
            a_pod("pod4", **near("aff", "region", **in_group("b"))),
        ],
        [a_node("n", labels={"region": "2", "node": "n"})],
        {"pod2", "pod4"},
        id="pod affinity: a node gets one such key, and another value for a second",
    ),
    pytest.param(
        "InterPodAffinity",
        [a_node("n", labels={"node": "n", "service": "a", "other": "n"}), a_pod("pod1", labels=A, node="n")],
        [a_pod(f"pod{at}", labels=A, **away("anti1", key)) for at, key in ((2, "node"), (3, "service"), (4, "other"))],
        [a_node("n", labels={"service": "b", "region": "n", "other": "n"})],
        {"pod2", "pod3"},
        id="pod affinity: a node loses one key of what pods avoid, and has another value for a second",
    ),
    pytest.param(
        "InterPodAffinity",
        [a_node("n", labels={"zone": "n", "node": "n"}), a_pod("pod1", labels=A, node="n")],
        [a_pod("pod2", **away("anti1", "zone")), a_pod("pod3", **away("anti1", "node"))],
        [a_node("m", labels={"zone": "n"})],
        {"pod2", "pod3"},
        id="pod affinity: a node comes, with the key of what a pod avoids or without it",
    ),
]

TWO_KINDS = [
    a_node("n", labels={"node": "n"}),
    a_pod("pod1", labels=V, node="n"),
    a_pod("pod2", labels={"k": ""}, node="n"),
]
TWO_PODS = [
    a_pod("pod3", labels=V, **spread("key1", "node", 3)),
    a_pod("pod4", labels={"k": ""}, **spread("k", "node", 3)),
]
BY_NODE_AND_ZONE = [
    a_node("n", labels={"node": "n"}),
    a_node("m", labels={"zone": "m"}),
    a_pod("pod1", labels=V, node="n"),
    a_pod("pod2", labels=V, node="m"),
]
SERVED = {"node": "n", "region": "n", "service": "a"}
SPREAD = [
    pytest.param(
        "PodTopologySpread",
        TWO_KINDS,
        TWO_PODS,
        [a_pod("pod5", labels=V, node="n")],
        {"pod3"},
        id="spread: a pod comes that counts",
    ),
    pytest.param(
        "PodTopologySpread",
        TWO_KINDS,
        TWO_PODS,
        [a_pod("pod1", labels={"key3": "val"}, node="n")],
        {"pod3"},
        id="spread: a pod's labels change so that it no longer counts",
    ),
    pytest.param(
        "PodTopologySpread",
        TWO_KINDS,
        [a_pod("pod3", labels=V, **spread("key1", "node", 2)), TWO_PODS[1]],
        [Gone(a_pod("pod1"))],
        {"pod3"},
        id="spread: a pod is deleted that counts",
    ),
    pytest.param(
        "PodTopologySpread",
        BY_NODE_AND_ZONE,
        [a_pod("pod3", labels=V, **spread("key1", "node", 2)), a_pod("pod4", labels=V, **spread("key1", "zone", 2))],
        [a_node("o", labels={"node": "n"})],
        {"pod3"},
        id="spread: a node comes with the key",
    ),
    pytest.param(
        "PodTopologySpread",
        [
            a_node("n", labels=SERVED),
            a_node("m", labels=SERVED),
            *(a_pod(f"pod{at}", labels=V, node="n" if at == 1 else "m") for at in (1, 2, 3, 4)),
        ],
        [
            a_pod(f"pod{at}", labels=V, **spread("key1", key, 3))
            for at, key in ((5, "node"), (6, "zone"), (7, "region"), (8, "other"), (9, "service"))
        ],
        [a_node("m", labels={"zone": "n", "region": "n", "service": "b"})],
        {"pod5", "pod6", "pod9"},
        id="spread: a node loses a key, gets one, and has another value for a third",
    ),
    pytest.param(
        "PodTopologySpread",
        BY_NODE_AND_ZONE,
        [a_pod("pod3", labels=V, **spread("key1", "node", 3)), a_pod("pod4", labels=V, **spread("key1", "zone", 3))],
        [Gone(a_node("m"))],
        {"pod4"},
        id="spread: a node is deleted that has the key",
    ),
    pytest.param(
        "PodTopologySpread",
        [*BY_NODE_AND_ZONE, a_node("o", labels={"zone": "m"}, taints=[NOT_READY])],
        [
            a_pod("pod3", labels=V, **spread("key1", "node", 3)),
            a_pod("pod4", labels=V, tolerations=["aaa"], **spread("key1", "zone", 3)),
        ],
        [a_node("o", labels={"zone": "m"}, taints=["aaa=bbb:NoSchedule"])],
        {"pod4"},
        id="spread: the taints change of a node that has the key",
    ),
]

ROWS = [*POD_AFFINITY, *SPREAD]


@pytest.mark.parametrize(("plugins", "there", "pods", "happens", "requeued"), ROWS)
def test_what_requeues_a_pod(
    plugins: str, there: list[Object], pods: list[Pod], happens: list[Object | Gone], requeued: set[str]
) -> None:
    world = rejected(plugins, there, pods)
    assert queued_again(world, pods, happens) == requeued
