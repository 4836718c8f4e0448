"""What becomes of plugins that misbehave."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from stowplan.columns.state import ClusterState
from stowplan.framework.decision import Only, PostFilterResult, Reject, RejectPod
from stowplan.framework.evaluation import schedule_one
from stowplan.testing.builders import a_pod, a_profile, a_profile_of, a_state, rejections
from stowplan.testing.comparison import contents, decision_contents
from tests.framework.fakes import a_plugin, decide, refusing

U = "Unschedulable"
DEFAULT = a_profile()
REJECTED = np.array([True, True, True])


def refusing_all(reason: Any = "no", resolvable: Any = True) -> Any:
    return lambda _, nodes: [Reject(np.ones(len(nodes), np.bool_), reason, resolvable)]


def wrong(answer: Any) -> Any:
    """Return the answer, hidden from the type checker."""
    return answer


def raises(*_: Any) -> Any:
    raise KeyError("zone")


LINE_THAT_RAISES = raises.__code__.co_firstlineno + 1


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
    pytest.param({"filter": None}, "answered None; a filter yields Reject, or returns", id="filter answers None"),
    pytest.param(
        {"filter": [REJECTED]}, "found an array, bool of shape (3,); a filter yields Reject", id="filter yields a mask"
    ),
    pytest.param({"filter": [True]}, "found True; a filter yields Reject", id="filter yields what is no Reject"),
    pytest.param(
        {"filter": [Reject(REJECTED[:2], "no")]}, "found bool of shape (2,)", id="filter speaks of fewer nodes"
    ),
    pytest.param(
        {"filter": [Reject(np.array([1, 0, 0]), "no")]}, "found int64 of shape (3,)", id="filter gives numbers"
    ),
    pytest.param(
        {"filter": [Reject(REJECTED, f"reason {n}") for n in range(1001)]},
        "gave 1001 rejections",
        id="filter has 1,001 reasons",
    ),
    pytest.param({"score": np.array([1, 2])}, "found int64 of shape (2,)", id="score speaks of fewer nodes"),
    pytest.param({"score": np.array([1.0, 2.0, 3.0])}, "found float64 of shape (3,)", id="score gives floats"),
    pytest.param({"score": np.array([[1], [2], [3]])}, "found int64 of shape (3, 1)", id="score gives a table"),
    pytest.param({"score": [1, 2, 3]}, "found [1, 2, 3]", id="score gives a list"),
    pytest.param({"score": np.array([0, 101, 100])}, "within 0 and 100; found 101", id="a score of 101"),
    pytest.param({"score": np.array([0, -1, 100])}, "within 0 and 100; found -1", id="a score of -1"),
]

MISDEEDS += [
    pytest.param({"pre_enqueue": "no"}, "RejectPod or None was due", id="pre_enqueue answers nonsense"),
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
    pytest.param({"pre_filter": lambda *_: RejectPod(wrong(5))}, "tuple of texts", id="reasons that are a number"),
    pytest.param({"pre_filter": lambda *_: Only(wrong("a"))}, "frozenset of node names", id="names that are one text"),
]  # fmt: skip


@pytest.mark.parametrize(("methods", "problem"), MISDEEDS)
def test_a_plugin_that_misbehaves_ends_this_decision_and_nothing_else(methods: dict[str, Any], problem: str) -> None:
    state = a_state(nodes=["a", "b", "c"], pods=[a_pod("there", node="a", cpu=1), a_pod("promised", nominated="b")])
    before, expected = _contents(state), decision_contents(schedule_one(a_pod("next"), state, DEFAULT))
    decision = schedule_one(a_pod(), state, a_profile_of(a_plugin("Culprit", **methods)))
    assert decision.error.startswith('plugin "Culprit" failed at ')
    assert problem in decision.error
    assert (decision.node, decision.message) == (None, decision.error)
    assert _contents(state) == before
    assert decision_contents(schedule_one(a_pod("next"), state, DEFAULT)) == expected


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


@pytest.mark.parametrize("point", ["pre_enqueue", "pre_filter", "filter", "score"])
def test_an_error_names_the_method_however_it_was_made(point: str) -> None:
    """A wrapped method, or a lambda, has a `__name__` of its own."""
    assert decide(culprit(**{point: raises})).error == (
        f"plugin \"Culprit\" failed at {point}: KeyError: 'zone' (test_misbehaving_plugins.py:{LINE_THAT_RAISES})"
    )


def culprit(**methods: Any) -> Any:
    """A plugin with these functions as its methods."""
    return type("Culprit", (), {name: staticmethod(each) for name, each in methods.items()})()


def exits(*_: Any) -> Any:
    sys.exit(3)


def rude(error: type[BaseException]) -> Any:
    def raise_it(*_: Any) -> Any:
        raise error

    return raise_it


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize("point", ["pre_enqueue", "pre_filter", "filter", "score"])
@pytest.mark.parametrize(
    ("raising", "told"),
    [
        pytest.param(exits, "SystemExit: 3", id="SystemExit"),
        pytest.param(rude(KeyboardInterrupt), "KeyboardInterrupt (", id="KeyboardInterrupt"),
        pytest.param(rude(asyncio.CancelledError), "CancelledError (", id="CancelledError"),
        pytest.param(rude(GeneratorExit), "GeneratorExit (", id="GeneratorExit"),
        pytest.param(rude(MemoryError), "MemoryError (", id="MemoryError"),
        pytest.param(rude(UnspeakableError), "UnspeakableError: its text cannot be had: ValueError", id="no text"),
    ],
)
def test_whatever_a_plugin_raises_is_its_own_error(point: str, raising: Any, told: str) -> None:
    error = decide(culprit(**{point: raising})).error
    assert error.startswith(f'plugin "Culprit" failed at {point}: {told}')
    assert error.endswith(")") and "(test_misbehaving_plugins.py:" in error


def test_ctrl_c_is_no_error_of_the_plugin_that_happens_to_be_asked() -> None:
    def asked(*_: Any) -> Any:
        while True:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores Ctrl-C
    try:
        with pytest.raises(KeyboardInterrupt):
            decide(a_plugin("Innocent", score=asked))
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_line_is_that_of_the_plugins_own_file() -> None:
    """A library that it calls raises, and the method is wrapped."""
    error = decide(culprit(score=lambda *_: json.loads("{"))).error
    assert "JSONDecodeError" in error and "(test_misbehaving_plugins.py:" in error


@pytest.mark.parametrize("reason", ["x" * 3_000_000, "é" * 3_000, "\ud800 alone"])
def test_a_reason_is_cut_and_can_be_encoded(reason: str) -> None:
    for plugin in (
        a_plugin(filter=refusing_all(reason)),
        a_plugin(pre_filter=lambda *_: RejectPod(reason)),
        a_plugin(filter=refusing_all(), post_filter=PostFilterResult((reason,))),
        a_plugin(score=rude_text(reason)),
    ):
        assert len(decide(plugin).full_message.encode()) < 1100


def rude_text(text: str) -> Any:
    def raise_it(*_: Any) -> Any:
        raise ValueError(text)

    return raise_it


def test_a_filter_may_have_hundreds_of_reasons() -> None:
    """As many resources may be missing. Nodes with the same reasons share a verdict."""
    masks = [np.array([True, number % 2 == 0, number == 199]) for number in range(200)]
    many = a_plugin("Many", filter=lambda *_: [Reject(mask, f"r{at:03}") for at, mask in enumerate(masks)])
    decision = decide(many, nodes=["a", "b", "c"])
    found = {name: verdict.reasons for name, verdict in decision.trail.rejections() if verdict is not None}
    assert found["a"] == tuple(f"r{at:03}" for at in range(200))
    assert found["b"] == tuple(f"r{at:03}" for at in range(0, 200, 2))
    assert found["c"] == ("r199",)
