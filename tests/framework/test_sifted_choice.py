"""The choice by kept totals where some filters must be asked about each pod, too: the same as without anything kept.

A decision that is limited to rows (`within`) keeps nothing and writes its trail at once. Limited to all rows it is the
same question, so it is the judge here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.engine.decision_log import DecisionLog
from stowplan.framework.decision import Reject
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.node_order import NodeOrder
from stowplan.framework.unread_trail import MOST_IN_A_BYTE, UnreadTrail
from stowplan.objects.changes import Put
from stowplan.testing.builders import a_node, a_pod, a_profile, a_profile_of, a_state, rejections, scores
from stowplan.testing.comparison import decision_contents
from tests.framework.test_best_node import ByPod, Liked, Roomiest
from tests.plugins.nodes.default.volumes import ON_A, claim, cluster_of, volume, wait


class Shunned:
    """Rejects the nodes that the pod names. Its answer is kept for nobody."""

    def filter(self, pod: Any, nodes: Any) -> Any:
        named = pod.labels.get("shuns", "").split(".")
        if "all" in named:
            yield Reject(np.ones(len(nodes), np.bool_), "shunned by all")
        else:
            yield Reject(np.array([name in named for name in nodes.names], np.bool_), "shunned")


def both(pod: Any, state: Any, profile: Any, generator: Any = None) -> tuple[Any, Any]:
    """The decision, and the same one with nothing kept."""
    drawn = np.random.default_rng(7) if generator is None else generator
    found = schedule_one(pod, state, profile, drawn)
    again = np.random.default_rng(7) if generator is None else generator
    return found, schedule_one(pod, state, profile, again, within=state.table.live_rows())


def same(found: Any, judge: Any) -> None:
    assert not found.error
    assert decision_contents(found) == decision_contents(judge)
    assert (scores(found), rejections(found)) == (scores(judge), rejections(judge))
    assert found.trail.totals.tolist() == judge.trail.totals.tolist()
    assert found.trail.reasons() == judge.trail.reasons()


@pytest.mark.parametrize("shuns", ["", "a", "a.b", "c", "a.b.c", "all"])
@pytest.mark.parametrize("says", ["", "7", "last"])
@pytest.mark.parametrize("plugins", [(Shunned,), (Roomiest, Shunned), (Roomiest, Shunned, Liked)])
def test_the_same_as_with_nothing_kept(shuns: str, says: str, plugins: tuple[type, ...]) -> None:
    nodes = [
        a_node(name, cpu=cpu, labels={"liked": str(cpu)}) for name, cpu in (("a", 4), ("b", 4), ("c", 2), ("d", 0))
    ]
    state, profile = a_state(nodes=nodes), a_profile_of(*(plugin() for plugin in plugins), ByPod())
    for number in range(4):
        pod = a_pod(f"p{number}", cpu=1, labels={"shuns": shuns, "says": says})
        found, judge = both(pod, state, profile)
        same(found, judge)
        if found.node is not None:
            state.add_pod(pod, found.node)


def test_a_trail_is_read_as_it_was_though_more_was_bound_since() -> None:
    state, profile = a_state(nodes=[a_node("a", cpu=3), a_node("b", cpu=3), "c"]), a_profile_of(Roomiest(), Shunned())
    unread, judges = [], []
    for number in range(6):
        pod = a_pod(f"p{number}", cpu=1, labels={"shuns": "c"})
        found, judge = both(pod, state, profile)
        unread.append(found)
        judges.append(decision_contents(judge))
        assert isinstance(found.trail, UnreadTrail)
        state.add_pod(pod, found.node or "")
    state.apply(Put(a_node("d", cpu=9)))
    assert [decision_contents(found) for found in unread] == judges
    assert rejections(unread[-1])["c"] == ("Shunned", "Unschedulable", ("shunned",))
    assert ("Roomiest", "Unschedulable", ("too full",)) in rejections(unread[-1]).values()


def test_a_tie_is_drawn_from_the_nodes_that_are_left() -> None:
    names = [f"n{number}" for number in range(100)]
    state, profile = a_state(nodes=names), a_profile_of(Roomiest(), Shunned())
    pod = a_pod(cpu=1, labels={"shuns": "n3.n50"})
    left = [name for name in names if name not in ("n3", "n50")]
    for seed in range(5):
        expected = left[int(np.random.default_rng(seed).integers(len(left)))]
        assert schedule_one(pod, state, profile, np.random.default_rng(seed)).node == expected
    assert schedule_one(pod, state, profile).node == "n0"
    same(*both(pod, state, profile, NodeOrder(["n7", "n50"])))


def test_scores_are_asked_once_for_a_decision_that_has_to_add_them_up() -> None:
    liked = Liked()
    nodes = [a_node("a", labels={"liked": "2"}), a_node("b", labels={"liked": "1"})]
    state, profile = a_state(nodes=nodes), a_profile_of(Roomiest(), Shunned(), liked)
    assert schedule_one(a_pod(cpu=1), state, profile).node == "a" and liked.asked == 1


class Counts:
    """Gives each node a reason of its own."""

    def filter(self, pod: Any, nodes: Any) -> Any:
        for at in range(1, len(nodes)):
            mask = np.zeros(len(nodes), np.bool_)
            mask[at] = True
            yield Reject(mask, f"reason {at}")


def test_more_verdicts_than_a_byte_holds() -> None:
    state, profile = a_state(nodes=[f"n{number}" for number in range(MOST_IN_A_BYTE + 40)]), a_profile_of(Counts())
    found, judge = both(a_pod(cpu=1), state, profile)
    same(found, judge)
    assert found.node == "n0" and len(found.trail.verdicts) == MOST_IN_A_BYTE + 39


def test_what_a_trail_shares_with_no_other_counts_in_the_log() -> None:
    nodes = [f"n{number}" for number in range(64)]
    sizes = []
    for shuns in ("", "n1"):
        state, profile, log = a_state(nodes=nodes), a_profile_of(Roomiest(), Shunned()), DecisionLog()
        log.keep(schedule_one(a_pod(cpu=1, labels={"shuns": shuns}), state, profile))
        sizes.append(log.nbytes)
    assert sizes[1] == sizes[0] + len(nodes)


SPREAD = [
    {
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
]  # fmt: skip


def test_hard_spreading_with_the_default_profile() -> None:
    nodes = [a_node(f"n{number}", cpu=4, labels={"zone": f"z{number % 3}"}) for number in range(12)]
    state, profile = a_state(nodes=nodes), a_profile()
    for number in range(30):
        pod = a_pod(f"p{number}", cpu=1, labels={"app": "web"}, topologySpreadConstraints=SPREAD)
        found, judge = both(pod, state, profile)
        same(found, judge)
        assert isinstance(found.trail, UnreadTrail)
        state.add_pod(pod, found.node or "")


def test_volumes_of_some_nodes_with_the_default_profile() -> None:
    nodes = [a_node(name, cpu=4, labels={"host": name}) for name in "ab"]
    state, profile = cluster_of(*nodes, wait(), volume("p", nodeAffinity=ON_A)), a_profile()
    for number, expected in enumerate(("a", None)):
        name = f"c{number}"
        state.apply(Put(claim(name, storageClassName="wait")))
        pod = a_pod(f"p{number}", cpu=1, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])
        found, judge = both(pod, state, profile)
        same(found, judge)
        assert found.node == expected
        if found.node is not None:
            state.add_pod(pod, found.node)
            for enabled in profile.reservers:
                assert enabled.plugin.reserve(pod, found.node, Cluster(state)) is None
