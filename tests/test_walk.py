"""`python -m tests.walk` counts as defined, and follows each way to its end."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from tests import walk
from tests.walk import Call, Walk

ENGINE = ("stowplan.engine",)


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        pytest.param([], 0, id="nothing is called"),
        pytest.param(["engine.queue"], 0, id="one call is no switch"),
        pytest.param(["engine.queue", "engine.queue"], 0, id="it stays in its module"),
        pytest.param(["engine.queue", "engine.unit", "engine.queue"], 2, id="there and back are two"),
        pytest.param(["engine.queue", "columns.state", "engine.queue"], 0, id="other packages in between do not count"),
        pytest.param(["engine.queue", "columns.state", "engine.unit"], 1, id="nor do they hide a switch"),
        pytest.param(
            ["engine", "engine.groups.monitor", "engine.groups"], 2, id="a package, and what is deeper inside it"
        ),
        pytest.param(["engine.queue", "engines.unit", "engine.queue"], 0, id="a name that only begins alike"),
    ],
)
def test_switches_within_a_package(modules: list[str], expected: int) -> None:
    assert walk.switches(walk.within([f"stowplan.{module}" for module in modules], ENGINE)) == expected


def test_placements_have_a_package_of_their_own() -> None:
    modules = ["stowplan.engine.outbox", "stowplan.placement.queue", "stowplan.framework.profile"]
    assert walk.within(modules, ("stowplan.engine", "stowplan.placement")) == modules[:2]


def test_consecutive_calls_in_one_module_are_one_line() -> None:
    calls = [Call("a", "f"), Call("a", "g"), Call("a", "h"), Call("b", "i"), Call("a", "f")]
    assert list(walk.collapsed(calls)) == ["a  (3 calls)  f … h", "b  (1 call)  i", "a  (1 call)  f"]


@pytest.mark.parametrize(
    ("follow", "end"),
    [
        pytest.param(walk.pod, "Successfully assigned default/second to ", id="the pod is bound"),
        pytest.param(walk.placement, "AllDecisionsScheduled: c00", id="the placement is decided"),
        pytest.param(walk.explain, "default/second goes to ", id="the pod is explained"),
    ],
)
def test_each_walk_ends_as_it_should(follow: Callable[[], Walk], end: str) -> None:
    found = follow()
    assert found.ended.startswith(end) and not found.ended.endswith("None")
    assert found.calls and all(call.module.startswith("stowplan.") for call in found.calls)
    assert sys.getprofile() is None
