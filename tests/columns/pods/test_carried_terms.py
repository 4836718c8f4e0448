"""Affinity terms that pods carry: the sums of those that match equal a look at each of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.columns.pods import carried_terms
from stowplan.columns.pods.carried_sums import weight_of
from stowplan.columns.pods.uses import TERMS
from stowplan.columns.state import ClusterState
from stowplan.objects.affinity import AffinityTerm, WeightedTerm
from stowplan.objects.changes import Gone, Put
from stowplan.objects.pods import Pod
from stowplan.objects.shape import PREFERRED as PREFERRED_USE
from stowplan.testing.builders import PREFERRED, REQUIRED, a_namespace, a_node, a_pod

KEYS, VALUES, NODES = ("app", "tier", "zone"), ("x", "y", "z"), ("n1", "n2", "n3")
NAMESPACES = ("one", "two")

conditions = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        st.sampled_from(KEYS),
        st.sampled_from(("In", "NotIn")),
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=2, unique=True),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        st.sampled_from(KEYS),
        st.sampled_from(("Exists", "DoesNotExist")),
    ),
)
selectors = st.lists(conditions, max_size=2).map(lambda parts: {"matchExpressions": parts})
terms = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(("zone", "host")), "labelSelector": selectors},
    optional={
        "namespaces": st.lists(st.sampled_from(NAMESPACES), min_size=1, max_size=2, unique=True),
        "namespaceSelector": st.sampled_from(({}, {"matchLabels": {"team": "red"}})),
    },
)
weighted = st.builds(lambda term, weight: {"weight": weight, "podAffinityTerm": term}, terms, st.integers(1, 3))
affinities = st.fixed_dictionaries(
    {
        kind: st.fixed_dictionaries({REQUIRED: st.lists(terms, max_size=2), PREFERRED: st.lists(weighted, max_size=4)})
        for kind in ("podAffinity", "podAntiAffinity")
    }
)
labels = st.dictionaries(st.sampled_from((*KEYS, "other")), st.sampled_from(VALUES), max_size=3)
carriers = st.builds(
    lambda number, namespace, node, affinity: a_pod(f"p{number}", namespace=namespace, node=node, affinity=affinity),
    *(st.integers(0, 5), st.sampled_from(NAMESPACES), st.sampled_from(NODES), affinities),
)
incoming = st.builds(
    lambda namespace, own: a_pod("incoming", namespace=namespace, labels=own), st.sampled_from(NAMESPACES), labels
)
steps = st.lists(
    st.one_of(
        carriers,
        st.integers(0, 5),  # a pod goes
        incoming,
        st.sampled_from(("red", "blue")),  # a namespace has another label
        st.lists(carriers, max_size=3),  # a trial
    ),
    min_size=5,
    max_size=30,
)


def one_by_one(state: ClusterState, sort: str, pod: Pod) -> dict[tuple[str, int], tuple[int, int]]:
    pods, weights = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    for carried, tally in state.terms_matching(sort, pod):
        term = carried.term if isinstance(carried, WeightedTerm) else carried
        assert isinstance(term, AffinityTerm)
        for row, count in tally.items().items():
            pods[term.topology_key, row] += count
            weights[term.topology_key, row] += count * weight_of((sort, carried))
    return {key: (count, weights[key]) for key, count in pods.items()}


def added_up(state: ClusterState, sort: str, pod: Pod) -> dict[tuple[str, int], tuple[int, int]]:
    found = {}
    for key, pods, weights, factor in state.carried_sums(sort, pod):
        assert factor == 1
        by_row = weights.items()
        found.update({(key, row): (count, by_row.get(row, 0)) for row, count in pods.items().items()})
    return found


def agree(state: ClusterState, pod: Pod) -> None:
    for sort in TERMS:
        assert added_up(state, sort, pod) == one_by_one(state, sort, pod)


@given(steps)
def test_sums_equal_a_look_at_each_term(history: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(carried_terms, "MANY", 0)
        patch.setattr(carried_terms, "MOST_QUESTIONS", 3)
        patch.setattr(carried_terms, "LONGEST_LOG", 25)
        state, asked = ClusterState(), list[Pod]()
        for name in NODES:
            state.apply(Put(a_node(name, labels={"zone": name[:1], "host": name})))
        for step in history:
            _take(state, step, asked)
        for pod in asked:
            agree(state, pod)


def _take(state: ClusterState, step: Any, asked: list[Pod]) -> None:
    match step:
        case int():
            placed = next((each.pod for each in state.pods.values() if each.pod.name == f"p{step}"), None)
            if placed is not None:
                state.apply(Gone(placed))
        case str():
            state.apply(Put(a_namespace("one", team=step)))
        case list():
            with state.trial():
                for pod in step:
                    state.add_pod(pod, pod.node_name)
                for pod in asked:
                    agree(state, pod)
        case Pod() if not step.node_name:
            asked.append(step)
            agree(state, step)
        case Pod():
            state.apply(Put(step))


def preferring(*values: str, key: str = "app", topology: str = "host") -> dict[str, Any]:
    """Terms that keep pods away which have none of these values."""
    parts = [{"key": key, "operator": "NotIn", "values": [value]} for value in values]
    found = [
        {"weight": 1, "podAffinityTerm": {"topologyKey": topology, "labelSelector": {"matchExpressions": [part]}}}
        for part in parts
    ]
    return {"podAntiAffinity": {PREFERRED: found}}


def many() -> ClusterState:
    state = ClusterState()
    state.apply(Put(a_node("n1", labels={"host": "n1"})))
    values = [f"x{number}" for number in range(100)]
    state.apply(Put(a_pod("carrier", node="n1", affinity=preferring(*values))))
    return state


def test_one_question_serves_all_pods_that_the_terms_cannot_tell_apart() -> None:
    state = many()
    for number in range(50):
        pod = a_pod(f"web-{number}", labels={"app": "web", "index": str(number)})
        (found,) = state.carried_sums(PREFERRED_USE, pod)
        assert (found.pods.count(0), found.weights.count(0)) == (100, -100)
    assert len(state.uses.terms._questions) == 1


def test_a_term_that_does_not_want_a_label_is_left_out() -> None:
    pod = a_pod("x7", labels={"app": "x7"})
    assert [each.pods.count(0) for each in many().carried_sums(PREFERRED_USE, pod)] == [99]


def test_few_terms_need_no_question() -> None:
    state = ClusterState()
    state.apply(Put(a_node("n1", labels={"host": "n1"})))
    state.apply(Put(a_pod("carrier", node="n1", affinity=preferring("x", "y"))))
    assert len(list(state.carried_sums(PREFERRED_USE, a_pod("web")))) == 2
    assert not state.uses.terms._questions


def test_nothing_is_left_of_terms_that_are_gone() -> None:
    state = many()
    list(state.carried_sums(PREFERRED_USE, a_pod("web")))
    state.remove_pod(next(iter(state.pods)))
    terms = state.uses.terms
    assert list(state.carried_sums(PREFERRED_USE, a_pod("web"))) == []
    assert not terms and not terms._mentioned and not terms._open._sums and not terms._open._unwanted
