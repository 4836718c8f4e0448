"""WorkloadPolicy's scores: the formulae, the order of domains in all cases, nodes within a domain."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.plugins.nodes.workload_policy.plugin import WorkloadPolicyPlugin
from stowplan.testing.builders import a_node, a_pod, a_state
from stowplan.testing.plugin_questions import scored
from tests.plugins.nodes.workload_policy.policies import a_member, a_policy, placed, zoned

BALANCE: dict[str, Any] = {"allocationMethod": "Balance"}
FILL: dict[str, Any] = {"allocationMethod": "Fill"}


@pytest.mark.parametrize(
    ("policy", "pods", "expected"),
    [
        pytest.param(a_policy({"a": 4, "b": 4}), [], {"a1": 100, "b1": 100}, id="Balance: the first pod"),
        pytest.param(a_policy({"a": 4, "b": 4}), placed("a1"), {"a1": 75, "b1": 100}, id="Balance: one of four"),
        pytest.param(a_policy({"a": 3, "b": 5}), placed("a1", "b1"), {"a1": 66, "b1": 80}, id="Balance: rounded down"),
        pytest.param(
            a_policy({"a": 5, "b": 5}), placed(*["a1"] * 4), {"a1": 20, "b1": 100}, id="Balance: 4 of 5 are 20, not 19"
        ),
        pytest.param(a_policy({"a": 4, "b": 4}, **FILL), [], {"a1": 0, "b1": 0}, id="Fill: the first pod"),
        pytest.param(
            a_policy({"a": 1, "b": 3}, **FILL), [], {"a1": 0, "b1": 1}, id="Fill: equal, where most places are left"
        ),
        pytest.param(a_policy({"a": 4, "b": 4}, **FILL), placed("a1"), {"a1": 25, "b1": 0}, id="Fill: one of four"),
        pytest.param(
            a_policy({"a": 3, "b": 5}, **FILL), placed("a1", "b1"), {"a1": 33, "b1": 20}, id="Fill: rounded down"
        ),
        pytest.param(
            a_policy({"a": 1, "b": 3}), placed("a1"), {"a1": 0, "b1": 100}, id="a full domain comes after an open one"
        ),
        pytest.param(
            a_policy({"a": 1, "b": 3}, **FILL), placed("a1"), {"a1": 0, "b1": 1}, id="Fill: even after an empty one"
        ),
        pytest.param(
            a_policy({"a": 1, "b": 2}), placed("a1", "a1", "b1", "b1", "b1"), {"a1": 0, "b1": 1},
            id="both overflow: 200 percent after 150",
        ),
        pytest.param(
            a_policy({"a": 1, "b": 2}, **FILL), placed("a1", "a1", "b1", "b1", "b1"), {"a1": 0, "b1": 1},
            id="Fill: the same order of overflow",
        ),
        pytest.param(a_policy({"a": 1}), placed("a1"), {"a1": 1, "b1": 0}, id="overflow before what is not listed"),
        pytest.param(a_policy({"a": 1, "b": 0}), placed("a1"), {"a1": 1, "b1": 0}, id="nothing desired: as not listed"),
        pytest.param(a_policy({"a": 0}), [], {"a1": 0, "b1": 0}, id="nothing desired anywhere"),
        pytest.param(
            a_policy({"a": 200, "b": 1}), placed(*["a1"] * 199, "b1"), {"a1": 1, "b1": 0},
            id="the last of 200 places still comes before a full domain",
        ),
    ],
)  # fmt: skip
def test_scores_of_domains(policy: Any, pods: list[Any], expected: dict[str, int]) -> None:
    """The formulae, where they can be; else the next number that keeps the order."""
    state = a_state(nodes=zoned("a1", "b1", pods=500), pods=pods, others=[policy])
    assert scored(WorkloadPolicyPlugin(), a_member(), state) == expected


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        pytest.param(BALANCE, {"a1": 68, "a2": 69, "a3": 70, "b1": 90, "-x": 0}, id="Balance spreads"),
        pytest.param(FILL, {"a1": 30, "a2": 29, "a3": 28, "b1": 10, "-x": 0}, id="Fill packs"),
    ],
)
def test_nodes_of_one_domain(method: dict[str, Any], expected: dict[str, int]) -> None:
    """The policy's own pods tell them apart; others do not matter."""
    pods = [*placed("a1", "a1", "a2", "b1"), a_pod("other", node="a3", labels={"app": "y"})]
    state = a_state(
        nodes=zoned("a1", "a2", "a3", "b1", "-x"), pods=pods, others=[a_policy({"a": 10, "b": 10}, **method)]
    )
    assert scored(WorkloadPolicyPlugin(), a_member(), state) == expected


def test_a_domain_of_one_node_each() -> None:
    """The label is distinct: nothing is to be told apart within a domain."""
    nodes = [a_node(name, labels={"zone": name}) for name in "abc"]
    state = a_state(nodes=nodes, pods=placed("a", "a", "b"), others=[a_policy({"a": 4, "b": 4}, **FILL)])
    assert scored(WorkloadPolicyPlugin(), a_member(), state) == {"a": 50, "b": 25, "c": 0}


def test_nodes_without_a_label_and_without_a_policy() -> None:
    state = a_state(nodes=zoned("a1", "-x"), others=[a_policy({"a": 1})])
    assert scored(WorkloadPolicyPlugin(), a_member(), state) == {"a1": 100, "-x": 0}
    assert scored(WorkloadPolicyPlugin(), a_member(policy=""), state) is None
    assert scored(WorkloadPolicyPlugin(), a_member(policy="q"), state) is None


# -- in all cases

ZONES = "abcdefgh"


def rank(desired: int | None, count: int, fills: bool) -> tuple[int, Fraction]:
    """Where a domain stands, by hand and without rounding; `desired` None stands for one that is not listed."""
    if not desired:
        return 0, Fraction(0)
    if count >= desired:
        return 1, -Fraction(count, desired)
    return 2, Fraction(count, desired) if fills else -Fraction(count, desired)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[dict[str, int], list[str], list[str]]:
    """What is desired where, the nodes, and the nodes where the policy's pods are."""
    desired = draw(st.dictionaries(st.sampled_from(ZONES), st.integers(0, 9), min_size=1))
    nodes = draw(st.lists(st.sampled_from([f"{zone}{number}" for zone in f"{ZONES}-" for number in range(3)]),
                          min_size=1, max_size=12, unique=True))  # fmt: skip
    return desired, nodes, draw(st.lists(st.sampled_from(nodes), max_size=30))


@pytest.mark.parametrize("method", ["Balance", "Fill"])
@given(crowd=crowds())
def test_the_order_of_domains_is_kept(method: str, crowd: tuple[dict[str, int], list[str], list[str]]) -> None:
    desired, names, pods = crowd
    policy, fills = a_policy(desired, allocationMethod=method), method == "Fill"
    found = scored(
        WorkloadPolicyPlugin(), a_member(), a_state(nodes=zoned(*names), pods=placed(*pods), others=[policy])
    )
    assert found is not None and set(found) == set(names)
    assert all(0 <= score <= 100 for score in found.values())
    here, there = Counter(pods), Counter(name[0] for name in pods)
    ranks = {name: rank(desired.get(name[0]), there[name[0]], fills) for name in names}
    for mine in names:
        for other in names:
            if ranks[mine] > ranks[other]:
                assert found[mine] > found[other], "no node outweighs a domain"
            elif mine[0] == other[0] and (here[mine] > here[other] if fills else here[mine] < here[other]):
                assert found[mine] >= found[other], "nor is the order within a domain another one"


@pytest.mark.parametrize("method", ["Balance", "Fill"])
@given(
    desired=st.dictionaries(st.sampled_from(ZONES), st.integers(1, 40), min_size=1),
    data=st.data(),
)
def test_open_domains_of_a_node_each_have_what_the_formula_says(
    method: str, desired: dict[str, int], data: st.DataObject
) -> None:
    counts = {zone: data.draw(st.integers(0, number - 1)) for zone, number in desired.items()}
    pods = [f"{zone}1" for zone, number in counts.items() for _ in range(number)]
    nodes = zoned(*(f"{zone}1" for zone in desired), pods=1000)
    state = a_state(nodes=nodes, pods=placed(*pods), others=[a_policy(desired, allocationMethod=method)])
    found = scored(WorkloadPolicyPlugin(), a_member(), state)
    assert found is not None
    for zone, number in desired.items():
        if method == "Balance":
            assert found[f"{zone}1"] == 100 * (number - counts[zone]) // number
        else:  # equals are told apart by the places that are left
            assert 0 <= found[f"{zone}1"] - 100 * counts[zone] // number < len(desired)
