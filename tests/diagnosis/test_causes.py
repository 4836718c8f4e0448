"""Nodes grouped by their causes, and what is said of plugins that name none or name them wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.columns.state import ClusterState
from stowplan.diagnosis.causes import cause_groups, extenders_not_asked, pod_causes
from stowplan.diagnosis.rejections import rejections
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.config.settings import Extender, ManagedResource
from stowplan.framework.decision import Only, Reject, RejectPod
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod, a_profile, a_profile_of, a_state
from tests.framework.fakes import a_plugin, refusing


def groups_of(*plugins: Any, nodes: Any = ("a", "b", "c"), state: ClusterState | None = None) -> Any:
    state, profile, pod = state or a_state(nodes=nodes), a_profile_of(*plugins), a_pod()
    found = cause_groups(pod, rejections(pod, state, profile), state, profile)
    return [(" ".join(each.nodes), [(named.plugin, named.cause.text) for named in each.causes]) for each in found]


def naming(*names: str, text: str = "its colour") -> Any:
    return lambda _, nodes: [NodeCause(np.isin(nodes.names, names), Cause("example.com/colour", text))]


def test_nodes_with_the_same_causes_are_one_group_and_the_largest_comes_first() -> None:
    plugins = (
        a_plugin("First", filter=refusing("b", "c", reason="one")),
        a_plugin("Second", filter=refusing("a", "c", "d", reason="two")),
    )
    found = groups_of(*plugins, nodes=("a", "b", "c", "d", "e"))
    assert found == [
        ("a d", [("Second", "two")]),
        ("b", [("First", "one")]),
        ("c", [("First", "one"), ("Second", "two")]),
    ]


def test_a_plugin_may_name_causes_and_its_reason_stands_for_nodes_without_one() -> None:
    plugin = a_plugin("Colours", filter=refusing("a", "b", "c"), causes=naming("a", "c"))
    assert groups_of(plugin) == [("a c", [("Colours", "its colour")]), ("b", [("Colours", "no")])]


def test_a_plugin_is_only_asked_about_nodes_that_it_rejected() -> None:
    asked: list[list[str]] = []

    def causes(_pod: Pod, nodes: Any) -> list[NodeCause]:
        asked.append(nodes.names)
        return [NodeCause(np.ones(len(nodes), np.bool_), Cause("example.com/colour", "its colour"))]

    assert groups_of(a_plugin("Colours", filter=refusing("b"), causes=causes)) == [("b", [("Colours", "its colour")])]
    assert asked == [["b"]]


def test_nodes_that_a_pre_filter_left_out_have_a_cause() -> None:
    plugin = a_plugin("Pinned", pre_filter=Only(frozenset({"b", "x"})))
    assert groups_of(plugin) == [("a c", [("Pinned", "the pod is limited to b, x by Pinned (x does not exist)")])]


def test_a_node_without_room_beside_nominated_pods_names_them() -> None:
    state = a_state(nodes=[a_node("a", cpu="2"), a_node("b", cpu="4")])
    state.nominated_pods.add(a_pod("first", cpu="1", priority=9), "a")
    state.nominated_pods.add(a_pod("second", cpu="500m", priority=9), "a")
    profile, pod = a_profile(), a_pod("late", cpu="1")
    (found,) = cause_groups(pod, rejections(pod, state, profile), state, profile)
    assert found.nodes == ("a",)
    (named,) = found.causes
    assert (named.plugin, named.cause.code) == ("NodeResourcesFit", "beside-nominated")
    expected = "room is kept for default/first, default/second, nominated to the node: Insufficient cpu"
    assert named.cause.text == expected
    assert named.cause.details["pods"] == ("default/first", "default/second")


def test_a_pod_that_is_rejected_as_a_whole_has_causes_of_gates_and_of_pre_filters() -> None:
    plugins = (
        a_plugin("Gate", pre_enqueue=RejectPod("not yet")),
        a_plugin("Budget", pre_filter=RejectPod(("one", "two"))),
        a_plugin("Quota", pre_filter=RejectPod("x"), pod_causes=[Cause("example.com/quota", "quota web is used up")]),
    )
    state, profile, pod = a_state(nodes="a"), a_profile_of(*plugins), a_pod()
    found = pod_causes(pod, rejections(pod, state, profile), state, profile)
    assert [(each.plugin, each.cause.code, each.cause.text) for each in found] == [
        ("Gate", "rejected", "not yet"),
        ("Budget", "rejected", "one"),
        ("Budget", "rejected", "two"),
        ("Quota", "example.com/quota", "quota web is used up"),
    ]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([Cause("x", "y")], "only NodeCause is right"),
        ([NodeCause(np.ones(9, np.bool_), Cause("x", "y"))], "must be 3 booleans, one per node; found bool of shape"),
        ([NodeCause(np.ones(3, np.int64), Cause("x", "y"))], "must be 3 booleans"),
        ([NodeCause(np.ones(3, np.bool_), "no")], "only Cause is right"),  # type: ignore[arg-type]
        ([NodeCause(np.ones(3, np.bool_), Cause("", "y"))], "the code of a cause is a text and not empty"),
        ([NodeCause(np.ones(3, np.bool_), Cause("x", " "))], "the text of a cause is a text and not empty"),
        ([NodeCause(np.ones(3, np.bool_), Cause("x", "y", {"a": (1, np.int64(2))}))], "details.a[1] is"),  # type: ignore[dict-item]
        (lambda *_: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_wrong_answer_is_a_cause_that_names_the_plugin(answer: Any, expected: str) -> None:
    plugin = a_plugin("Wrong", filter=lambda _, nodes: [Reject(np.ones(len(nodes), np.bool_), "no")], causes=answer)
    ((nodes, [(_, reason), (name, problem)]),) = groups_of(plugin)
    assert (nodes, reason, name) == ("a b c", "no", "Wrong")
    assert 'plugin "Wrong" failed at causes' in problem and expected in problem


def test_a_wrong_answer_about_the_pod_is_a_cause_that_names_the_plugin() -> None:
    plugin = a_plugin("Wrong", pre_filter=RejectPod("no"), pod_causes=[Cause("x", "")])
    state, profile, pod = a_state(nodes="a"), a_profile_of(plugin), a_pod()
    reason, problem = pod_causes(pod, rejections(pod, state, profile), state, profile)
    assert (reason.cause.text, problem.plugin, problem.cause.code) == ("no", "Wrong", "plugin-error")
    assert "text and not empty" in problem.cause.text


def test_extenders_that_were_not_asked() -> None:
    extenders = (
        Extender(url_prefix="http://one", filter_verb="filter"),
        Extender(url_prefix="http://two", prioritize_verb="score"),
        Extender(url_prefix="http://gpus", filter_verb="f", managed_resources=(ManagedResource("example.com/gpu"),)),
    )
    found = [each.cause.text for each in extenders_not_asked(a_pod(), extenders)]
    assert found == ["extender http://one was not asked"]
    assert len(extenders_not_asked(a_pod(requests={"example.com/gpu": 1}), extenders)) == 2


def test_thousands_of_causes_are_grouped_exactly() -> None:
    names = [f"n{number}" for number in range(3000)]

    def causes(_pod: Pod, nodes: Any) -> Any:
        numbers = np.arange(len(nodes))
        for residue in range(700):
            yield NodeCause(numbers % 700 == residue, Cause("example.com/residue", f"residue {residue}"))

    plugin = a_plugin("Residues", filter=lambda _, nodes: [Reject(np.ones(len(nodes), np.bool_), "no")], causes=causes)
    found = groups_of(plugin, nodes=names)
    assert len(found) == 700
    assert found[0] == ("n0 n700 n1400 n2100 n2800", [("Residues", "residue 0")])
    assert sum(len(nodes.split()) for nodes, _ in found) == 3000
