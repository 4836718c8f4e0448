"""How many pods match a query, per node; and which counts are dropped."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.pods import match_counts
from stowplan.columns.pods.selector_index import SelectorIndex
from stowplan.columns.state import ClusterState
from stowplan.columns.tally import Tally
from stowplan.objects.affinity import PodQuery
from stowplan.objects.changes import Gone, Put
from stowplan.objects.selectors import LabelRequirement, Selector, from_labels
from stowplan.testing.builders import a_pod, a_state

X, Z = from_labels({"app": "x"}), from_labels({"app": "z"})
DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "z", "uid": "z", "controller": True}
PODS = [
    a_pod("x1", node="a", labels={"app": "x"}),
    a_pod("x2", node="a", labels={"app": "x", "tier": "front"}),
    a_pod("y", node="b", labels={"app": "y"}),
    a_pod("leaving", node="b", labels={"app": "x"}, terminating=True),
    a_pod("elsewhere", node="b", labels={"app": "x"}, namespace="other"),
    a_pod("bare", node="b"),
    a_pod("daemon", node="b", labels={"app": "z"}, owner=DAEMON_SET),
    a_pod("like-it", node="a", labels={"app": "z"}),
    a_pod("done", node="a", labels={"app": "x"}, phase="Succeeded"),
    a_pod("waiting", labels={"app": "x"}),
]


def here(*selector: LabelRequirement) -> PodQuery:
    return PodQuery(frozenset({"default"}), selector)


def counts(state: ClusterState, *queries: PodQuery, settled: match_counts.Settled = False) -> dict[str, int]:
    return by_name(state, state.count(*queries, settled=settled))


def by_name(state: ClusterState, tally: Tally) -> dict[str, int]:
    return {state.table.names[row]: number for row, number in tally.items().items()}


@pytest.mark.parametrize(
    ("queries", "settled", "expected"),
    [
        pytest.param([here(*X)], False, {"a": 2, "b": 1}, id="by a label, in one namespace"),
        pytest.param([here(*X)], True, {"a": 2}, id="those on their way out do not count as settled"),
        pytest.param([PodQuery(None, X)], False, {"a": 2, "b": 2}, id="in every namespace"),
        pytest.param([PodQuery(frozenset(), X)], False, {}, id="in no namespace"),
        pytest.param([here(*Z)], False, {"a": 1, "b": 1}, id="pods of DaemonSets, too"),
        pytest.param([PodQuery(None, Z, daemons=False)], False, {"a": 1}, id="… unless they are not asked for"),
        pytest.param([here(*Z), PodQuery(None, Z, daemons=False)], False, {"a": 1}, id="… by one of two questions"),
        pytest.param([here()], False, {"a": 3, "b": 4}, id="a selector without conditions matches every pod"),
        pytest.param([here()], True, {}, id="… but counts nothing as settled"),
        pytest.param([PodQuery(None, None)], False, {}, id="no selector matches nothing"),
        pytest.param(
            [here(LabelRequirement("app", "Exists"))], False, {"a": 3, "b": 3}, id="a label that must be there"
        ),
        pytest.param(
            [here(LabelRequirement("app", "In", ("x", "x")))], False, {"a": 2, "b": 1}, id="a value that is named twice"
        ),
        pytest.param(
            [here(LabelRequirement("app", "DoesNotExist"))], False, {"b": 1}, id="a label that must not be there"
        ),
        pytest.param(
            [here(LabelRequirement("app", "NotIn", ("x",)))], False, {"a": 1, "b": 3}, id="a value that must not be"
        ),
        pytest.param(
            [here(LabelRequirement("app", "In", ("x", "y")))], False, {"a": 2, "b": 2}, id="one of two values"
        ),
        pytest.param([here(*X), here(LabelRequirement("tier", "Exists"))], False, {"a": 1}, id="two questions at once"),
        pytest.param([here(*X), PodQuery(None, None)], False, {}, id="two questions of which one matches nothing"),
    ],
)
@pytest.mark.parametrize("first", [pytest.param("ask", id="asked before"), pytest.param("add", id="asked after")])
def test_what_is_counted(first: str, queries: list[PodQuery], settled: bool, expected: dict[str, int]) -> None:
    """Whether a question is asked before the pods come or afterwards makes no difference."""
    state = a_state(nodes=["a", "b"])
    if first == "ask":
        counts(state, *queries, settled=settled)
    for pod in PODS:
        state.apply(Put(pod))
    assert counts(state, *queries, settled=settled) == expected


def test_a_pod_that_changes_is_counted_again() -> None:
    state = a_state(nodes=["a", "b"], pods=[a_pod("p", node="a", labels={"app": "x"})])
    assert counts(state, here(*X), settled=True) == {"a": 1}
    for changed, expected in (
        (a_pod("p", node="a", labels={"app": "y"}), {}),
        (a_pod("p", node="b", labels={"app": "x"}), {"b": 1}),
        (a_pod("p", node="b", labels={"app": "x"}, terminating=True), {}),
        (a_pod("p", node="b", labels={"app": "x"}), {"b": 1}),
        (a_pod("p", node="b", labels={"app": "x"}, phase="Failed"), {}),
    ):
        state.apply(Put(changed))
        assert counts(state, here(*X), settled=True) == expected


def test_deleted_pods_leave_nothing_behind() -> None:
    state = a_state(nodes=["a"])
    counts(state, here(*X))
    pods = [a_pod(f"p{n}", node="a", labels={"app": "x", "unique": str(n)}) for n in range(50)]
    for pod in pods:
        state.apply(Put(pod))
    assert (state.match_counts.label_sets, counts(state, here(*X))) == (50, {"a": 50})
    for pod in pods:
        state.apply(Gone(pod))
    assert (state.match_counts.label_sets, state.match_counts._by_label) == (0, {})
    assert not state.pods and not state.uses.tallies
    assert counts(state, here(*X)) == {}


def test_the_least_recently_used_queries_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_counts, "MOST_COUNTERS", 2)
    state = a_state(nodes=["a"], pods=[a_pod("p", node="a", labels={"app": "x"})])
    for value in "xyxz":
        counts(state, here(*from_labels({"app": value})))
    kept = [queries[0].selector for queries, _ in state.match_counts._counters]
    assert kept == [from_labels({"app": "x"}), from_labels({"app": "z"})]
    assert counts(state, here(*from_labels({"app": "y"}))) == {}
    assert counts(state, here(*X)) == {"a": 1}


def test_queries_that_nobody_asks_for_are_dropped_while_pods_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod with many terms must not cost everybody's pods long after it is gone."""
    monkeypatch.setattr(match_counts, "PATIENCE", 10)
    pods = [a_pod(f"p{n}", node="a", labels={"app": "x"}) for n in range(5)]
    state = a_state(nodes=["a"], pods=pods)
    unasked = [here(LabelRequirement("app", "NotIn", (str(n),))) for n in range(50)]
    for query in unasked:
        assert counts(state, query) == {"a": 5}
    lengths = []
    for _ in range(20):
        state.apply(Gone(pods[0]))
        state.apply(Put(pods[0]))
        assert counts(state, here(*X)) == {"a": 5}
        lengths.append(len(state.match_counts))
    assert lengths[8] == 51  # two for each pod on a node, and ten
    assert lengths[-1] == 1
    assert [counts(state, query) for query in unasked] == [{"a": 5}] * 50
    assert state.match_counts.stray_counters == 0


def weighed(state: ClusterState, *queries: tuple[PodQuery, int]) -> tuple[dict[str, int], dict[str, int]]:
    found = state.weigh(queries)
    return by_name(state, found.pods), by_name(state, found.weights)


def test_queries_with_weights_are_added_up() -> None:
    labelled, other = (LabelRequirement("app", "Exists"), LabelRequirement("app", "NotIn", ("x",)))
    asked = ((here(*X), 5), (here(labelled), -2), (here(other), 7))
    pods = [
        a_pod("p", node="a", labels={"app": "x"}), a_pod("q", node="a", labels={"app": "y"}), a_pod("r", node="b"),
        a_pod("s", node="b", namespace="other", labels={"app": "x"}),
    ]  # fmt: skip
    state = a_state(nodes=["a", "b"], pods=pods[:1])
    assert weighed(state, *asked) == ({"a": 2}, {"a": 3})
    for pod in pods[1:]:
        state.apply(Put(pod))
    assert weighed(state, *asked) == ({"a": 4, "b": 1}, {"a": 8, "b": 7})
    state.apply(Gone(pods[0]))
    assert weighed(state, *asked) == ({"a": 2, "b": 1}, {"a": 5, "b": 7})
    assert state.match_counts.sums == [asked] and len(state.match_counts) == 0


def test_the_same_query_counts_twice_and_new_labels_are_compared_with_those_that_may_match() -> None:
    state = a_state(nodes=["a"])
    many = [(here(LabelRequirement("app", "In", (f"x{n}",))), 1) for n in range(100)]
    twice = [(here(LabelRequirement("app", "Exists")), 2)] * 2
    assert weighed(state, *many, *twice) == ({}, {})
    state.apply(Put(a_pod("p", node="a", labels={"app": "x7"})))
    assert weighed(state, *many, *twice) == ({"a": 3}, {"a": 5})
    assert state.match_counts._summed.count_candidates({"app": "x7"}) == 3


def test_a_change_pays_for_few_drops_where_there_are_many_label_sets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(match_counts, "PATIENCE", -1000)
    monkeypatch.setattr(match_counts, "MOST_LOOKS", 30)
    state = a_state(nodes=["a"], pods=[a_pod(f"p{n}", node="a", labels={"app": f"x{n}"}) for n in range(20)])
    for n in range(9):
        counts(state, here(LabelRequirement("app", "NotIn", (f"y{n}",))))
    state.apply(Put(a_pod("q", node="a")))
    assert len(state.match_counts) == 9 - 2


def test_sums_end_with_their_trial_and_are_dropped_like_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_counts, "PATIENCE", 4)
    monkeypatch.setattr(match_counts, "MOST_SUMMED", 1)
    pod = a_pod("p", node="a", labels={"app": "x"})
    state = a_state(nodes=["a"], pods=[pod])
    with state.trial() as trial:
        trial.remove_pod(pod.uid)
        assert weighed(state, (here(*X), 5)) == ({}, {})
    assert state.match_counts.sums == []
    for weight in (5, 6):
        assert weighed(state, (here(*X), weight)) == ({"a": 1}, {"a": weight})
    assert state.match_counts.sums == [((here(*X), 6),)]
    for _ in range(6):
        state.apply(Gone(pod))
        state.apply(Put(pod))
    assert state.match_counts.sums == [] and state.match_counts.stray_counters == 0


def test_a_query_of_a_trial_ends_with_the_trial() -> None:
    leaving = a_pod("p", node="a", labels={"app": "x"}, terminating=True)
    state = a_state(nodes=["a"], pods=[leaving])
    with state.trial() as trial:
        trial.remove_pod(leaving.uid, as_extension=True)
        assert counts(state, here(*X), settled=True) == {}
    assert len(state.match_counts) == 0
    assert counts(state, here(*X), settled=True) == {}


def test_a_query_of_a_trial_may_replace_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_counts, "MOST_COUNTERS", 1)
    leaving = a_pod("p", labels={"app": "x"}, terminating=True)
    state = a_state(nodes=["a"])
    counts(state, here(*from_labels({"app": "other"})))
    with state.trial() as trial:
        trial.add_pod(leaving, "a", as_extension=True)
        counts(state, here(*X), settled=True)
    assert counts(state, here(*X), settled=True) == {}


def test_extensions_count_what_pre_filters_leave_out() -> None:
    """kube-scheduler's AddPod and RemovePod do not ask whether a pod is on its way out."""
    leaving = a_pod("p", labels={"app": "x"}, terminating=True)
    state = a_state(nodes=["a"])
    assert counts(state, here(*X), settled=True) == {}
    with state.trial() as trial:
        trial.add_pod(leaving, "a", as_extension=True)
        assert counts(state, here(*X), settled=True) == {"a": 1}
    assert counts(state, here(*X), settled=True) == {}


@pytest.mark.parametrize(
    ("selector", "labels", "found"),
    [
        pytest.param(X, {"app": "x"}, True, id="its value"),
        pytest.param(X, {"app": "y"}, False, id="another value"),
        pytest.param((LabelRequirement("app", "In", ("x", "y")),), {"app": "y"}, True, id="one of several values"),
        pytest.param((LabelRequirement("app", "Exists"),), {"app": "z"}, True, id="a key"),
        pytest.param((LabelRequirement("rank", "Gt", ("5",)),), {"rank": "7"}, True, id="a key that is compared"),
        pytest.param((LabelRequirement("app", "DoesNotExist"),), {}, True, id="nothing positive is looked at always"),
        pytest.param((), {}, True, id="no conditions are looked at always"),
        pytest.param(None, {"app": "x"}, False, id="what matches nothing is never found"),
        pytest.param(
            (*X, LabelRequirement("tier", "Exists")), {"tier": "front"}, False, id="the most telling one decides"
        ),
    ],
)
def test_selectors_are_found_by_the_labels_they_need(
    selector: Selector | None, labels: dict[str, str], found: bool
) -> None:
    index: Any = SelectorIndex()
    index.add(selector, "item")
    assert list(index.candidates(labels)) == ["item"] * found
    index.remove(selector, "item")
    assert list(index.candidates(labels)) == [] and not index._items


def test_always_settled_applies_in_trials_too() -> None:
    """kube-scheduler's dry runs count a leaving pod that is taken away; whoever counts "always" does not."""
    state = a_state(
        nodes=["a"], pods=[*PODS[:1], leaving := a_pod("l", node="a", labels={"app": "x"}, terminating=True)]
    )
    assert counts(state, here(*X), settled="always") == counts(state, here(*X), settled=True) == {"a": 1}
    with state.trial() as trial:
        trial.remove_pod(leaving.uid, as_extension=True)
        assert counts(state, here(*X), settled=True) == {}
        assert counts(state, here(*X), settled="always") == {"a": 1}
        trial.add_pod(leaving, "a", as_extension=True)
        assert counts(state, here(*X), settled="always") == {"a": 1}
    assert counts(state, here(*X), settled="always") == {"a": 1}
