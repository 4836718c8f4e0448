"""How verdicts combine into a decision, and what becomes of plugins that misbehave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from stowplan.columns.state import ClusterState
from stowplan.columns.views import Cluster, Nodes
from stowplan.framework.evaluate import passing, schedule_one
from stowplan.framework.search import Search
from stowplan.framework.verdict import SKIP, Avoid, Decision, Only, PostFilterResult, Refuse, Reject
from stowplan.objects.changes import Gone, Put
from stowplan.objects.pods import Pod
from tests.builders import a_node, a_pod, a_profile, a_profile_of, a_state, rejections, scores
from tests.columns.model import contents, told

U, UU = "Unschedulable", "UnschedulableAndUnresolvable"
DEFAULT = a_profile()


def a_plugin(name: str = "Fake", **methods: Any) -> Any:
    """A plugin that always answers the same; a callable is called."""

    def method(answer: Any) -> Callable[..., Any]:
        return lambda _self, *given: answer(*given) if callable(answer) else answer

    return type(name, (), {key: method(answer) for key, answer in methods.items()})()


def refusing(*names: str, reason: str = "no", resolvable: bool = True) -> Any:
    return lambda _, nodes: [Reject(np.isin(nodes.names, names), reason, resolvable)]


def decide(*plugins: Any, nodes: Any = ("a", "b", "c"), **pod: Any) -> Decision:
    return schedule_one(a_pod(**pod), a_state(nodes=nodes), a_profile_of(*plugins))


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
    second = a_plugin("Second", filter=lambda pod, nodes: seen.append(nodes.names) or refusing("a", "b")(pod, nodes))
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


# -- nodes to be had only if there is no other


@pytest.mark.parametrize(
    ("avoided", "others", "refused", "node"),
    [
        pytest.param("a", "", "a", "b", id="one is left out"),
        pytest.param("ab", "", "ab", "c", id="two are"),
        pytest.param("abc", "", "", "a", id="not the last one"),
        pytest.param("a", "bc", "", "a", id="nor the only one that filters leave"),
        pytest.param("ab", "c", "", "a", id="nor all that filters leave"),
        pytest.param("b", "b", "", "a", id="one that is refused anyway"),
        pytest.param("x", "", "", "a", id="one that is not there"),
    ],
)
def test_nodes_that_are_avoided(avoided: str, others: str, refused: str, node: str) -> None:
    plugin = a_plugin(avoid=Avoid(frozenset(avoided), "rather not"), score=0)
    decision = decide(a_plugin("Other", filter=refusing(*others)), plugin)
    by_us = [name for name, said in rejections(decision).items() if said == ("Fake", U, ("rather not",))]
    assert (decision.node, "".join(by_us)) == (node, refused)


@pytest.mark.parametrize(
    ("wanted", "others", "refused", "node"),
    [
        pytest.param("b", "", "ac", "b", id="one is wanted"),
        pytest.param("bc", "", "a", "b", id="two are"),
        pytest.param("b", "b", "", "a", id="one that filters refuse"),
        pytest.param("x", "", "", "a", id="one that is not there"),
        pytest.param("abc", "", "", "a", id="all of them"),
    ],
)
def test_all_nodes_but_these_are_avoided(wanted: str, others: str, refused: str, node: str) -> None:
    plugin = a_plugin(avoid=Avoid(frozenset(wanted), "rather not", others=True), score=0)
    decision = decide(a_plugin("Other", filter=refusing(*others)), plugin)
    by_us = [name for name, said in rejections(decision).items() if said == ("Fake", U, ("rather not",))]
    assert (decision.node, "".join(by_us)) == (node, refused)


def test_what_one_plugin_leaves_is_what_the_next_may_avoid() -> None:
    first, second = (
        a_plugin(name, avoid=Avoid(frozenset(names), name), score=0) for name, names in (("F", "a"), ("S", "bc"))
    )
    assert rejections(decide(first, second)) == {"a": ("F", U, ("F",)), "b": None, "c": None}


def test_a_plugin_may_ask_where_another_pod_would_pass() -> None:
    """By the filters of the same profile; without a decision, nobody says no."""
    found: list[list[bool]] = []

    class Asking:
        def filter(self, pod: Pod, nodes: Nodes) -> tuple[()]:
            if pod.name != "other":
                found.append(passing(a_pod("other"), nodes.cluster).tolist())
            return ()

    decide(a_plugin("Other", filter=refusing("b")), Asking())
    assert found == [[True, False, True]]
    assert passing(a_pod("other"), Cluster(a_state(nodes=["a", "b"]))).tolist() == [True, True]


def test_a_node_that_was_promised_is_taken_though_it_is_avoided() -> None:
    profile, state = a_profile_of(a_plugin(avoid=Avoid(frozenset("a"), "no"), score=0)), a_state(nodes=["a", "b"])
    assert schedule_one(a_pod(nominated="a"), state, profile, search=Search()).node == "a"


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
    first = a_plugin("First", pre_filter=lambda *_: order.append("first") or Refuse(("one",), resolvable))
    second = a_plugin("Second", pre_filter=lambda *_: order.append("second") or Refuse(("two",), True))
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
    assert decision.narrowed == narrowed
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


# -- plugins that misbehave

REJECTED = np.array([True, True, True])


def refusing_all(reason: Any = "no", resolvable: Any = True) -> Any:
    return lambda _, nodes: [Reject(np.ones(len(nodes), np.bool_), reason, resolvable)]


def raises(*_: Any) -> Any:
    raise KeyError("zone")


def starts_and_raises(pod: Any, nodes: Any) -> Any:
    yield Reject(np.zeros(len(nodes), np.bool_), "fine so far")
    raise KeyError("zone")


MISDEEDS = [
    pytest.param({"pre_enqueue": raises}, "KeyError: 'zone'", id="pre_enqueue raises"),
    pytest.param({"pre_filter": raises}, "KeyError: 'zone'", id="pre_filter raises"),
    pytest.param({"filter": raises}, "KeyError: 'zone'", id="filter raises"),
    pytest.param({"filter": starts_and_raises}, "KeyError: 'zone'", id="filter raises half-way"),
    pytest.param({"score": raises}, "KeyError: 'zone'", id="score raises"),
    pytest.param({"score": 0, "avoid": raises}, "KeyError: 'zone'", id="avoid raises"),
    pytest.param({"score": 0, "avoid": "a"}, "answered 'a'; Avoid or None was due", id="avoid answers nonsense"),
    pytest.param({"filter": refusing_all(), "post_filter": raises}, "KeyError: 'zone'", id="post_filter raises"),
    pytest.param({"pre_filter": "maybe"}, "answered 'maybe'", id="pre_filter answers nonsense"),
    pytest.param({"filter": None}, "not iterable", id="filter answers None"),
    pytest.param({"filter": [True]}, "must be 3 booleans", id="filter yields what is no Reject"),
    pytest.param(
        {"filter": [Reject(REJECTED[:2], "no")]}, "found bool of shape (2,)", id="filter speaks of fewer nodes"
    ),
    pytest.param(
        {"filter": [Reject(np.array([1, 0, 0]), "no")]}, "found int64 of shape (3,)", id="filter gives numbers"
    ),
    pytest.param(
        {"filter": [Reject(REJECTED, f"reason {n}") for n in range(61)]},
        "gave 61 rejections",
        id="filter has 61 reasons",
    ),
    pytest.param({"score": np.array([1, 2])}, "found int64 of shape (2,)", id="score speaks of fewer nodes"),
    pytest.param({"score": np.array([1.0, 2.0, 3.0])}, "found float64 of shape (3,)", id="score gives floats"),
    pytest.param({"score": np.array([[1], [2], [3]])}, "found int64 of shape (3, 1)", id="score gives a table"),
    pytest.param({"score": [1, 2, 3]}, "found [1, 2, 3]", id="score gives a list"),
    pytest.param({"score": np.array([0, 101, 100])}, "within 0 and 100; found 101", id="a score of 101"),
    pytest.param({"score": np.array([0, -1, 100])}, "within 0 and 100; found -1", id="a score of -1"),
]

MISDEEDS += [
    pytest.param({"pre_enqueue": "no"}, "Refuse or None was due", id="pre_enqueue answers nonsense"),
    pytest.param(
        {"filter": refusing_all(), "post_filter": None}, "PostFilterResult was due", id="post_filter answers None"
    ),
    pytest.param(
        {"filter": refusing_all(resolvable=REJECTED[:2])}, "resolvable must be", id="resolvable speaks of fewer nodes"
    ),
    pytest.param({"filter": refusing_all(resolvable=None)}, "resolvable must be", id="resolvable is None"),
    pytest.param({"filter": refusing_all(["no"])}, "a reason must be a text", id="a reason that is a list"),
    pytest.param({"filters_by_row": raises, "filter": ()}, "KeyError: 'zone'", id="filters_by_row raises"),
    pytest.param({"filter": refusing_all(5)}, "a reason must be a text", id="a reason that is a number"),
    pytest.param({"pre_filter": lambda *_: Refuse("no")}, "tuple of texts", id="reasons that are one text"),
    pytest.param({"pre_filter": lambda *_: Only("a")}, "frozenset of node names", id="names that are one text"),
]  # fmt: skip


@pytest.mark.parametrize(("methods", "problem"), MISDEEDS)
def test_a_plugin_that_misbehaves_ends_this_decision_and_nothing_else(methods: dict[str, Any], problem: str) -> None:
    state = a_state(nodes=["a", "b", "c"], pods=[a_pod("there", node="a", cpu=1), a_pod("promised", nominated="b")])
    before, expected = _contents(state), told(schedule_one(a_pod("next"), state, DEFAULT))
    decision = schedule_one(a_pod(), state, a_profile_of(a_plugin("Culprit", **methods)))
    assert decision.error.startswith('plugin "Culprit" failed at ')
    assert problem in decision.error
    assert (decision.node, decision.message) == (None, decision.error)
    assert _contents(state) == before
    assert told(schedule_one(a_pod("next"), state, DEFAULT)) == expected


def _contents(state: ClusterState) -> dict[str, Any]:
    return contents(state, (), (), a_pod())


def test_a_plugin_that_changes_columns_is_stopped() -> None:
    def grabs(pod: Any, nodes: Any) -> Any:
        nodes.allocatable["cpu"][0] = 10**9
        return np.zeros(len(nodes), np.int64)

    assert "read-only" in decide(a_plugin(score=grabs)).error


def test_a_plugin_whose_filter_is_wrong_fails_only_where_it_is_asked() -> None:
    """A node that an earlier plugin rejected is never shown to it."""
    picky = a_plugin("Picky", filter=lambda _, nodes: raises() if "a" in nodes.names else [])
    assert decide(a_plugin("First", filter=refusing("a")), picky).error == ""
    assert 'plugin "Picky"' in decide(picky).error


def test_a_plugin_may_be_a_dataclass() -> None:
    @dataclass
    class Rule:
        filters_by_row = True
        label: str = "zone"

        def filter(self, pod: Any, nodes: Any) -> Any:
            yield Reject(~nodes.label(self.label).present, "no")

    assert rejections(decide(Rule(), nodes=["a"])) == {"a": ("Rule", U, ("no",))}


def test_the_last_word_of_post_filters() -> None:
    nobody = a_plugin("Nobody", filter=refusing("a", "b", "c"))
    talks = a_plugin("Talks", post_filter=PostFilterResult(("one",)))
    settles = a_plugin("Settles", post_filter=PostFilterResult(("two",), settles=True))
    later = a_plugin("Later", post_filter=lambda *_: pytest.fail("it was settled"))
    assert decide(nobody, talks).full_message == "0/3 nodes are available: 3 no. one"
    assert decide(nobody, settles, later).full_message == "0/3 nodes are available: 3 no. two"
