"""How verdicts combine into a decision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.framework.decision import SKIP, Only, Reject, RejectPod
from stowplan.framework.evaluation import schedule_one
from stowplan.objects.changes import Gone, Put
from stowplan.testing.builders import a_node, a_pod, a_profile, a_profile_of, a_state, rejections, scores
from tests.framework.fakes import a_plugin, decide, refusing

U, UU = "Unschedulable", "UnschedulableAndUnresolvable"
DEFAULT = a_profile()


# -- the message


@pytest.mark.parametrize(
    ("nodes", "pod", "message"),
    [
        pytest.param([], {}, "no nodes available to schedule pods", id="a cluster without nodes"),
        pytest.param(["a"], {}, "", id="a pod that gets a node"),
        pytest.param(
            [a_node("s", cpu="1"), a_node("t", cpu="1"), *(a_node(n, taints=["k=v:NoSchedule"]) for n in "xyz")],
            {"cpu": "2"},
            "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s).",
            id="the issue's own example",
        ),
        pytest.param(
            [*(a_node(f"s{n}", unschedulable=True) for n in range(2)), *(a_node(f"t{n}", cpu="1") for n in range(10))],
            {"cpu": "2"},
            "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) were unschedulable.",
            id="reasons are sorted as text, 10 before 2",
        ),
        pytest.param(
            [a_node("s", cpu="1", memory="1Gi", pods=0)],
            {"cpu": "2", "memory": "2Gi"},
            "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 Too many pods.",
            id="a node counts for each of its reasons",
        ),
        pytest.param(
            ["a", "b"],
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
            '0/2 nodes are available: persistentvolumeclaim "data" not found.',
            id="a pod that is refused as a whole",
        ),
    ],
)  # fmt: skip
def test_the_message_is_kube_schedulers(nodes: Any, pod: dict[str, Any], message: str) -> None:
    assert schedule_one(a_pod(**pod), a_state(nodes=nodes), DEFAULT).message == message


def test_the_message_says_nothing_of_earlier_decisions() -> None:
    state = a_state(nodes=[a_node("a", taints=["k=v:NoSchedule"])])
    assert "taint" in schedule_one(a_pod(cpu="8"), state, DEFAULT).message
    state.apply(Put(a_node("a")))
    assert schedule_one(a_pod(cpu="8"), state, DEFAULT).message == "0/1 nodes are available: 1 Insufficient cpu."


def test_post_filters_add_their_words() -> None:
    decision = schedule_one(a_pod(cpu="8"), a_state(nodes=["a"]), DEFAULT)
    assert decision.full_message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


# -- filters


def test_the_first_plugin_that_rejects_a_node_is_recorded_and_later_ones_do_not_see_it() -> None:
    seen: list[list[str]] = []
    first = a_plugin("First", filter=refusing("a", reason="first"))

    def also_refusing(pod: Any, nodes: Any) -> Any:
        seen.append(nodes.names)
        return refusing("a", "b")(pod, nodes)

    second = a_plugin("Second", filter=also_refusing)
    assert rejections(decide(first, second)) == {"a": ("First", U, ("first",)), "b": ("Second", U, ("no",)), "c": None}
    assert seen == [["b", "c"]]


def test_several_reasons_of_one_node_keep_their_order() -> None:
    def both(pod: Any, nodes: Any) -> Any:
        yield Reject(np.array([True, True, False]), "z comes first")
        yield Reject(np.array([True, False, False]), "a comes second", resolvable=False)

    assert rejections(decide(a_plugin(filter=both))) == {
        "a": ("Fake", UU, ("z comes first", "a comes second")),
        "b": ("Fake", U, ("z comes first",)),
        "c": None,
    }


def test_each_row_may_be_resolvable_or_not() -> None:
    plugin = a_plugin(filter=[Reject(np.array([True, True, False]), "no", np.array([True, False, True]))])
    assert rejections(decide(plugin)) == {"a": ("Fake", U, ("no",)), "b": ("Fake", UU, ("no",)), "c": None}


# -- pre-filters


def test_a_pre_filter_that_skips_silences_its_own_filter_only() -> None:
    skipping = a_plugin("Skipping", pre_filter=SKIP, filter=refusing("a", "b", "c"))
    other = a_plugin("Other", filter=refusing("a"))
    assert rejections(decide(skipping, other)) == {"a": ("Other", U, ("no",)), "b": None, "c": None}


@pytest.mark.parametrize(
    ("resolvable", "asked", "by"),
    [
        pytest.param(
            True, ["first", "second"], "Second", id="unschedulable: the others still run and the last one counts"
        ),
        pytest.param(False, ["first"], "First", id="unresolvable: nobody else is asked"),
    ],
)
def test_a_refused_pod(resolvable: bool, asked: list[str], by: str) -> None:
    order: list[str] = []

    def refuse(name: str, answer: RejectPod) -> RejectPod:
        order.append(name)
        return answer

    first = a_plugin("First", pre_filter=lambda *_: refuse("first", RejectPod(("one",), resolvable)))
    second = a_plugin("Second", pre_filter=lambda *_: refuse("second", RejectPod(("two",), True)))
    decision = decide(first, second, a_plugin("Third", filter=lambda *_: pytest.fail("no node is looked at")))
    assert order == asked
    assert decision.refused is not None and decision.refused.plugin == by
    assert decision.message == f"0/3 nodes are available: {decision.refused.reasons[0]}."


@pytest.mark.parametrize(
    ("names", "narrowed", "rejected"),
    [
        pytest.param([{"a"}], {"a"}, {"b", "c"}, id="one plugin narrows"),
        pytest.param([{"a", "b"}, {"b", "c"}], {"b"}, {"a", "c"}, id="two plugins narrow to what both allow"),
        pytest.param([{"a", "unknown"}], {"a", "unknown"}, {"b", "c"}, id="names of nodes that are not there"),
    ],
)
def test_narrowing(names: list[set[str]], narrowed: set[str], rejected: set[str]) -> None:
    plugins = [a_plugin(f"P{at}", pre_filter=Only(frozenset(each))) for at, each in enumerate(names)]
    decision = decide(*plugins)
    reason = f"node(s) didn't satisfy plugin(s) [{' '.join(f'P{at}' for at in range(len(names)))}]"
    assert decision.limited_to == frozenset(narrowed)
    assert rejections(decision) == {name: ("", UU, (reason,)) if name in rejected else None for name in "abc"}


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        pytest.param([set()], "node(s) didn't satisfy plugin P0", id="one plugin leaves nothing"),
        pytest.param(
            [{"a"}, {"b"}],
            "node(s) didn't satisfy plugin(s) [P0 P1] simultaneously",
            id="two plugins contradict each other",
        ),
    ],
)
def test_narrowing_to_nothing_refuses_the_pod(names: list[set[str]], reason: str) -> None:
    plugins = [a_plugin(f"P{at}", pre_filter=Only(frozenset(each))) for at, each in enumerate(names)]
    decision = decide(*plugins)
    assert decision.refused is not None and (decision.refused.code, decision.refused.reasons) == (UU, (reason,))


def test_a_gated_pod_goes_no_further() -> None:
    decision = schedule_one(a_pod(schedulingGates=[{"name": "g"}, {"name": "h"}]), a_state(nodes=["a"]), DEFAULT)
    assert decision.gated is not None and decision.gated.reasons == ("waiting for scheduling gates: [g h]",)
    assert (decision.node, decision.message, decision.trail.scores) == (None, "", {})


# -- nominated pods


@pytest.mark.parametrize(
    ("promised", "priority", "fits"),
    [
        pytest.param(10, 5, False, id="a more important pod keeps its promised room"),
        pytest.param(5, 5, False, id="so does one of equal importance"),
        pytest.param(4, 5, True, id="a lesser one does not"),
    ],
)
def test_room_promised_to_another_pod(promised: int, priority: int, fits: bool) -> None:
    waiting = a_pod("waiting", cpu="3", priority=promised, nominated="a")
    state = a_state(nodes=["a"], pods=[waiting])
    decision = schedule_one(a_pod("mine", cpu="2", priority=priority), state, DEFAULT)
    assert decision.node == ("a" if fits else None)
    assert fits or rejections(decision) == {"a": ("NodeResourcesFit", U, ("Insufficient cpu",))}


def test_scores_ignore_pods_that_are_only_nominated() -> None:
    waiting = a_pod("waiting", cpu="3", priority=9, nominated="a")
    with_it, without = a_state(nodes=["a", "b"], pods=[waiting]), a_state(nodes=["a", "b"])
    pod = a_pod("mine", cpu="500m")
    assert scores(schedule_one(pod, with_it, DEFAULT)) == scores(schedule_one(pod, without, DEFAULT))


def test_a_nominated_pod_finds_the_room_that_was_promised_to_it() -> None:
    pod = a_pod(cpu="3", priority=9, nominated="a")
    assert schedule_one(pod, a_state(nodes=["a"], pods=[pod]), DEFAULT).node == "a"


def test_a_nominated_pod_that_was_assumed_elsewhere_is_counted_once() -> None:
    pod = a_pod("waiting", priority=9, nominated="a")
    state = a_state(nodes=["a", "b"], pods=[pod])
    state.add_pod(pod, "b")
    schedule_one(a_pod("mine"), state, DEFAULT)
    assert pod.uid in state.pods


# -- scores


def test_scores_are_weighted_and_added_up() -> None:
    first = a_plugin("First", score=np.array([10, 20, 30]))
    silent = a_plugin("Silent", score=None)
    decision = schedule_one(a_pod(), a_state(nodes=["a", "b", "c"]), a_profile_of(first, silent, weight=3))
    assert scores(decision) == {"a": 30, "b": 60, "c": 90}
    assert scores(decision, "First") == {"a": 10, "b": 20, "c": 30}
    assert "Silent" not in decision.trail.scores
    assert (decision.node, decision.trail.best()) == ("c", ["c"])


@pytest.mark.parametrize(
    "by_row",
    [
        pytest.param(False, id="asked every time"),
        pytest.param(
            True,
            id="kept by row",
        ),
    ],
)
def test_one_number_is_every_nodes_score(by_row: bool) -> None:
    plugin = a_plugin(score=40)
    type(plugin).scores_by_row = by_row
    profile, state = a_profile_of(plugin, weight=2), a_state(nodes=["a", "b"])
    for _ in range(2):
        decision = schedule_one(a_pod(), state, profile)
        assert (decision.error, scores(decision), scores(decision, "Fake")) == (
            "",
            {"a": 80, "b": 80},
            {"a": 40, "b": 40},
        )


def test_only_feasible_nodes_are_scored() -> None:
    plugin = a_plugin(filter=refusing("b"), score=lambda _, nodes: np.arange(len(nodes)))
    assert scores(decide(plugin)) == {"a": 0, "c": 1}


def test_ties_are_drawn_by_the_generator_among_the_best_only() -> None:
    plugin, state = a_plugin(score=np.array([7, 3, 7])), a_state(nodes=["a", "b", "c"])
    profile = a_profile_of(plugin)
    drawn = [schedule_one(a_pod(), state, profile, np.random.default_rng(seed)).node for seed in range(40)]
    assert set(drawn) == {"a", "c"}
    assert drawn == [schedule_one(a_pod(), state, profile, np.random.default_rng(seed)).node for seed in range(40)]
    assert schedule_one(a_pod(), state, profile).node == "a"


def test_a_trail_still_tells_the_names_after_nodes_have_changed() -> None:
    state = a_state(nodes=["a", "b"])
    decision = schedule_one(a_pod(), state, DEFAULT)
    state.apply(Gone(a_node("a")))
    state.apply(Put(a_node("c")))
    assert list(decision.trail.names) == ["a", "b"]


class RefusesClaim:
    """A filter by row that looks at claims, and does not say that it ignores volumes."""

    filters_by_row = True

    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(np.full(len(nodes), "default/bad" in pod.shape.claims), "a bad claim")


@pytest.mark.parametrize("order", [("good", "bad"), ("bad", "good")])
def test_answers_are_shared_by_pods_with_other_volumes_only_if_nobody_reads_them(order: tuple[str, str]) -> None:
    state, profile = a_state(nodes=["a"]), a_profile_of(RefusesClaim())

    def node(claim: str) -> str | None:
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        return schedule_one(a_pod(claim, volumes=volumes), state, profile).node

    assert {claim: node(claim) for claim in order} == {"good": "a", "bad": None}
    assert DEFAULT.ignores_volumes and not profile.ignores_volumes
