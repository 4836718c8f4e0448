"""The dry run of preemption: many nodes at once by arrays, against one node after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stowplan.columns.state import ClusterState
from stowplan.framework.decision import Reject
from stowplan.framework.evaluation import Evaluation, schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects.changes import Put
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.default.candidates import best
from stowplan.plugins.nodes.default.default_preemption import DefaultPreemption
from stowplan.testing.builders import a_budget, a_node, a_pod, a_profile, a_profile_of, a_state
from tests.hypothesis_settings import at_most

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
COLORS = ("blue", "green")
PROFILE = a_profile()


class RandomPreemption:
    """A small cluster that is nearly full, and a pod of a higher priority than most."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)
        nodes = [self._node(f"n{number}") for number in range(int(self._draw.integers(1, 7)))]
        self.names = [node.name for node in nodes]
        pods = [self._placed(f"p{number}") for number in range(int(self._draw.integers(0, 5 * len(nodes))))]
        budgets = [a_budget(f"b{n}", allowed=int(self._draw.integers(0, 3)), color=self._color()) for n in range(2)]
        self.state = a_state(nodes=nodes, pods=pods, others=budgets if self._maybe(0.5) else [])
        for number in range(int(self._draw.integers(0, 3))):
            nominated = self._pod(f"nominated{number}", priority=int(self._draw.integers(3, 9)))
            self.state.nominated_pods.add(nominated, self._one(self.names))
        self.pod = self._pod("incoming", priority=5)

    def _maybe(self, probability: float) -> bool:
        return bool(self._draw.random() < probability)

    def _one(self, choices: Any) -> Any:
        return choices[int(self._draw.integers(len(choices)))]

    def _color(self) -> str:
        return str(self._one(COLORS))

    def _node(self, name: str) -> Any:
        labels = {HOST: name} if self._maybe(0.9) else {}
        if self._maybe(0.8):
            labels[ZONE] = self._one(("a", "b", "c"))
        taints = ["dedicated=x:NoSchedule"] if self._maybe(0.1) else []
        scarce = {"example.com/gpu": 1} if self._maybe(0.3) else {}
        return a_node(name, cpu=4, pods=int(self._draw.integers(2, 7)), labels=labels, taints=taints, resources=scarce)

    def _placed(self, name: str) -> Pod:
        started = {"startTime": f"2026-01-01T00:00:0{self._draw.integers(3)}Z"} if self._maybe(0.7) else {}
        return self._pod(
            name,
            node=self._one(self.names),
            priority=int(self._one((0, 0, 1, 3, 5, 7))),
            terminating=self._maybe(0.1),
            status=started,
        )

    def _pod(self, name: str, **given: Any) -> Pod:
        labels = {"color": self._color()} if self._maybe(0.8) else {}
        cpu = f"{self._one((100, 500, 1000, 2500))}m"
        requests = {"example.com/gpu": 1} if self._maybe(0.1) else {}
        affinity = {}
        if self._maybe(0.3):
            affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [self._term()]}
        if self._maybe(0.15):
            affinity["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [self._term()]}
        drawn = [self._constraint() for _ in range(int(self._draw.integers(1, 3)))] if self._maybe(0.4) else []
        spread = list({each["topologyKey"]: each for each in drawn}.values())
        return a_pod(
            name,
            labels=labels,
            cpu=cpu,
            requests=requests,
            affinity=affinity or None,
            topologySpreadConstraints=spread,
            **given,
        )

    def _term(self) -> dict[str, Any]:
        return {"topologyKey": self._one((ZONE, HOST)), "labelSelector": {"matchLabels": {"color": self._color()}}}

    def _constraint(self) -> dict[str, Any]:
        return {
            **self._term(),
            "maxSkew": int(self._draw.integers(1, 3)),
            "whenUnsatisfiable": "DoNotSchedule",
            **({"minDomains": int(self._draw.integers(1, 4))} if self._maybe(0.3) else {}),
            **({"nodeTaintsPolicy": "Honor"} if self._maybe(0.3) else {}),
        }


def dry_run(pod: Pod, state: ClusterState, profile: Profile, *, by_arrays: bool, enough: int | None) -> Any:
    decision = schedule_one(pod, state, profile, preempt=False)
    assert not decision.error
    evaluation = Evaluation(pod, state, profile)
    evaluation.pre_filter()
    found, refusals = DefaultPreemption().dry_run(pod, decision, evaluation, enough=enough, by_arrays=by_arrays)
    picked = [found[place] for place in best(found).tolist()]
    return list(found), picked, refusals.reasons if enough is None else None


@at_most(300)
@given(seed=st.integers(0, 2**32 - 1), enough=st.sampled_from((None, 1, 2)))
@example(seed=516, enough=None)  # no filter asked for the count of a constraint before terminating pods were removed
def test_many_nodes_at_once_give_what_one_after_the_other_does(seed: int, enough: int | None) -> None:
    drawn = RandomPreemption(seed)
    requested = {name: column.copy() for name, column in drawn.state.table.requested.items()}

    one_by_one = dry_run(drawn.pod, drawn.state, PROFILE, by_arrays=False, enough=enough)
    at_once = dry_run(drawn.pod, drawn.state, PROFILE, by_arrays=True, enough=enough)

    assert at_once == one_by_one
    after = drawn.state.table.requested  # it may have a new column, for a resource that a nominated pod requests
    assert all((after[name] == column).all() for name, column in requested.items())


class Presumes:
    """A filter by what pods take where those without requests count, too."""

    local = "resources"

    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(nodes.presumed["memory"] > (500 << 20), "too much memory is presumed")


@pytest.mark.parametrize("nominated", [0, 2])
def test_what_is_presumed_of_pods_without_requests_goes_with_them(nominated: int) -> None:
    pods = [a_pod(f"p{number}", node="a", priority=0) for number in range(4)]  # each is presumed to take 200 MB
    state, profile = a_state(nodes=["a"], pods=pods), a_profile_of(Presumes())
    for number in range(nominated):
        state.nominated_pods.add(a_pod(f"n{number}", priority=9), "a")
    before = {name: column.copy() for name, column in state.table.presumed.items()}
    one_by_one = dry_run(a_pod(priority=5), state, profile, by_arrays=False, enough=None)
    at_once = dry_run(a_pod(priority=5), state, profile, by_arrays=True, enough=None)
    assert at_once == one_by_one
    assert [len(each.victims) for each in at_once[0]] == [2 + nominated]
    assert all((state.table.presumed[name] == column).all() for name, column in before.items())


def test_random_clusters_have_candidates_of_all_sorts() -> None:
    """Otherwise the comparison above would compare nothing."""
    sizes, violations = set[int](), set[int]()
    for seed in range(40):
        drawn = RandomPreemption(seed)
        found, _, _ = dry_run(drawn.pod, drawn.state, PROFILE, by_arrays=True, enough=None)
        sizes.add(len(found))
        violations.update(each.violations for each in found)

    assert {0, 1, 2} <= sizes
    assert {0, 1} <= violations


def test_a_pod_that_starts_later_is_a_victim_before_others() -> None:
    """The order of pods of equal priority goes by what their status says now."""
    nodes = [a_node("a", cpu=2), a_node("b", cpu=2)]
    old, new = {"startTime": "2026-01-01T00:00:00Z"}, {"startTime": "2026-01-02T00:00:00Z"}
    pods = [a_pod(f"on-{node}", node=node, cpu=2, priority=0, status=old) for node in "ab"]
    state, incoming = a_state(nodes=nodes, pods=pods), a_pod(cpu=1, priority=9)
    before = dry_run(incoming, state, PROFILE, by_arrays=True, enough=None)[1]

    state.apply(Put(a_pod("on-b", node="b", cpu=2, priority=0, status=new)))
    after = dry_run(incoming, state, PROFILE, by_arrays=True, enough=None)[1]

    assert [each.node for each in before] == ["a", "b"]
    assert [each.node for each in after] == ["b"]
