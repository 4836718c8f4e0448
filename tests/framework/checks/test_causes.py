"""`check_plugin` checks what `causes` and `pod_causes` answer."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import Reject, RejectPod
from stowplan.framework.plugin_checks import check_plugin
from tests.framework.fakes import a_plugin

NUMBERS = count()


def complaints(**methods: Any) -> list[str]:
    def everything(_: Any, nodes: Any) -> list[Reject]:
        return [Reject(np.ones(len(nodes), np.bool_), "no")]

    return check_plugin(a_plugin("Named", filter=everything, **methods), clusters=3)


def test_causes_that_are_right() -> None:
    def causes(_: Any, nodes: Any) -> list[NodeCause]:
        return [NodeCause(np.ones(len(nodes), np.bool_), Cause("example.com/x", "x", {"names": ("a",)}))]

    assert complaints(causes=causes) == []


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        pytest.param(lambda *_: [], "causes names none for a node that filter rejected", id="none"),
        pytest.param(
            lambda _, nodes: [NodeCause(np.arange(len(nodes)) > 0, Cause("x", "y"))],
            "causes names none for a node that filter rejected",
            id="one node is left out",
        ),
        pytest.param(
            lambda _, nodes: [NodeCause(np.ones(len(nodes) + 1, np.bool_), Cause("x", "y"))],
            "the rows of a cause must be",
            id="rows of nodes that were not asked about",
        ),
        pytest.param(
            lambda _, nodes: [NodeCause(np.ones(len(nodes), np.bool_), Cause("x", ""))],
            "the text of a cause is a text and not empty",
            id="no text",
        ),
        pytest.param(
            lambda _, nodes: [NodeCause(np.ones(len(nodes), np.bool_), Cause("x", "y", {"at": 1.5}))],  # type: ignore[dict-item]
            "details.at is 1.5",
            id="details that are no whole number",
        ),
        pytest.param(
            lambda _, nodes: [NodeCause(np.ones(len(nodes), np.bool_), Cause("x", str(next(NUMBERS))))],
            "causes gives two answers to one question",
            id="another answer each time",
        ),
    ],
)
def test_causes_that_are_wrong(causes: Any, expected: str) -> None:
    found = complaints(causes=causes)
    assert len(found) == 1 and expected in found[0]


@pytest.mark.parametrize("method", ["pre_filter", "pre_enqueue"])
def test_causes_of_a_rejected_pod(method: str) -> None:
    def rejecting(**more: Any) -> list[str]:
        idle = {method: "here it rejects all"} if method == "pre_filter" else {}
        return check_plugin(a_plugin("Named", **{method: RejectPod("no")}, **more), clusters=3, idle=idle)

    assert rejecting(pod_causes=[Cause("example.com/x", "x")]) == []
    (found,) = rejecting(pod_causes=[])
    assert f"pod_causes names none for a pod that {method} rejected" in found
    (found,) = rejecting(pod_causes=[Cause("x", " ")])
    assert "the text of a cause is a text and not empty" in found
