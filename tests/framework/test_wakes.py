"""Events that plugins wait for: which ones can happen, and what is said of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stowplan.framework import wakes
from stowplan.framework.interfaces import Wake
from stowplan.framework.plugin_checks import check_plugin
from stowplan.objects import kinds
from stowplan.objects.errors import ConfigError
from stowplan.plugins import BUILT_IN
from tests.framework.test_declared_kinds import HasEvents

OOPS = KeyError("oops")


class Waits:
    """Waits for these events."""

    reads: tuple[str, ...] = ("Namespace",)

    def __init__(self, *events: Any) -> None:
        self.events = events

    def filter(self, pod: Any, nodes: Any) -> Any:
        return ()

    def wakes_on(self) -> Iterator[Any]:
        for each in self.events:
            if isinstance(each, Exception):
                raise each
            yield each

    def is_open(self, pod: Any, old: Any, new: Any) -> bool:
        return bool(new)


RIGHT = [
    Wake("Node", ("Add", "Delete", "Update", "UpdateNodeLabel", "UpdateNodeDeclaredFeature")),
    Wake("Node", ("*",), hint="is_open"),
    Wake("AssignedPod", ("Add", "Delete", "UpdatePodLabel")),
    Wake("UnschedulablePod", ("Update", "UpdatePodToleration"), own=True),
    Wake("Pod", ("Add", "UpdatePodScaleDown")),
    Wake("Namespace", ("Add", "Update", "Delete")),
    Wake("*", ("*",)),
]
WRONG = [
    pytest.param(
        Wake("Node", ("Add", "UpdateNodeLabels")),
        "wakes_on names the action 'UpdateNodeLabels' of Node, which never happens; did you mean \"UpdateNodeLabel\"",
        id="a misspelt action",
    ),
    pytest.param(
        Wake("Namespace", ("Modified",)),
        "wakes_on names the action 'Modified' of Namespace, which never happens; "
        "the actions of Namespace are Add, Update, Delete, *",
        id="an action of another world",
    ),
    pytest.param(Wake("Namespace", ("UpdateNodeLabel",)), "'UpdateNodeLabel' of Namespace", id="of another resource"),
    pytest.param(Wake("UnschedulablePod", ("Add",)), "'Add' of UnschedulablePod, which never happens", id="not this"),
    pytest.param(
        Wake("Nodes", ("Add",)),
        "wakes_on names the resource 'Nodes', which is no known kind; did you mean \"Node\"",
        id="a misspelt resource",
    ),
    pytest.param(Wake("Unicorn", ("Add",)), "'Unicorn', which is no known kind; a plugin brings", id="no resource"),
    pytest.param(Wake("AssignedPod", "Delete"), 'which is no tuple; write ("Delete",)', id="a text"),  # type: ignore[arg-type]
    pytest.param(Wake("Node", ()), "wakes_on names no action of Node; its actions are Add", id="no action"),
    pytest.param(
        Wake("Node", ("Add",), hint="is_opne"),
        "wakes_on names the hint 'is_opne', and there is no such method; did you mean \"is_open\"?",
        id="a misspelt hint",
    ),
    pytest.param("Node", "wakes_on gives 'Node', and only Wake is right", id="no Wake"),
    pytest.param(OOPS, "wakes_on fails: KeyError: 'oops'", id="it raises"),
]


def test_events_that_can_happen() -> None:
    wakes.check([("P", Waits(*RIGHT))], kinds.KINDS)


@pytest.mark.parametrize(("event", "problem"), WRONG)
def test_events_that_cannot_happen(event: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        wakes.check([("Other", Waits(*RIGHT)), ("mine.py:P", Waits(event))], kinds.KINDS)
    assert str(caught.value).startswith("plugin mine.py:P: ") and problem in str(caught.value)


@pytest.mark.parametrize(("event", "problem"), WRONG)
def test_the_checks_of_a_plugin_say_the_same(event: Any, problem: str) -> None:
    found = check_plugin(Waits(event), clusters=1, idle={"filter": "rejects nothing"})
    assert len(found) == 1 and found[0].startswith("Waits: ") and problem in found[0], found


def test_an_order_that_waits_for_a_misspelt_event() -> None:
    class Order:
        def reorders_on(self) -> Iterator[Wake]:
            yield Wake("AssignedPod", ("Added",))

    with pytest.raises(ConfigError, match="reorders_on names the action 'Added' of AssignedPod"):
        wakes.check([("P", Order())], kinds.KINDS)


def test_a_kind_that_the_plugin_does_not_read_itself() -> None:
    found = check_plugin(Waits(Wake("Deployment", ("Add",))), clusters=1, idle={"filter": "rejects nothing"})
    assert len(found) == 1
    assert found[0].startswith("Waits: wakes_on names Deployment, which the plugin does not read; add it to its reads")


def test_a_plugin_with_events_of_its_own_may_name_resources_that_are_no_kinds() -> None:
    plugins = [("P", Waits(Wake("PendingDriver", ("Gone",)))), ("Q", HasEvents())]
    wakes.check(plugins, kinds.KINDS)
    with pytest.raises(ConfigError, match="'Gone' of Node"):
        wakes.check([("P", Waits(Wake("Node", ("Gone",)))), ("Q", HasEvents())], kinds.KINDS)


def test_the_plugins_that_come_with_stowplan_wait_for_what_can_happen() -> None:
    made = [(name, plugin()) for name, plugin in BUILT_IN.items() if not _needs_arguments(plugin)]
    assert len(made) > 20
    wakes.check(made, kinds.KINDS)


def _needs_arguments(plugin: type) -> bool:
    try:
        plugin()
    except TypeError:
        return True
    return False
