"""A plugin that fails is a cause by name, with its file and line, and the rest of the diagnosis goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stowplan.diagnosis.any_pod import diagnose_any
from stowplan.diagnosis.diagnosis import Diagnosis
from stowplan.framework.decision import Reject
from stowplan.framework.extension_points import METHODS
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.nodes import Node
from stowplan.testing.builders import a_node, a_pod, a_profile
from stowplan.testing.world import World
from tests.framework.fakes import a_plugin, refusing
from tests.plugins.nodes.coscheduling.pod_groups import gang, profiles

TAINTED = [a_node("a", cpu=4, taints=["dedicated=gpu:NoSchedule"])]


def raises(*_: Any) -> Any:
    raise KeyError("zone")


LINE = raises.__code__.co_firstlineno + 1
PLACE = f"test_failing_plugins.py:{LINE}"


def failing(name: str = "Acme", at: str = "filter", **methods: Any) -> Any:
    """A plugin one method of which raises, in this file."""
    plugin = a_plugin(name, **methods)
    setattr(type(plugin), at, raises)
    return plugin


def with_plugins(profile: Profile, *plugins: Any) -> Profile:
    """A profile with plugins more, each at the points that it has methods for."""
    points = dict(profile.points)
    for plugin in plugins:
        enabled = EnabledPlugin(type(plugin).__name__, plugin, 1)
        for point, method in METHODS.items():
            if method and hasattr(plugin, method):
                points[point] = (*points.get(point, ()), enabled)
    return replace(profile, points=points)


def diagnosed(*plugins: Any, nodes: list[Node], pod: Any = None) -> Diagnosis:
    world = World(nodes=nodes, profiles={"default-scheduler": with_plugins(a_profile(), *plugins)})
    pod = pod or a_pod("web", cpu="1")
    world.submit(pod)
    world.run()
    return diagnose_any(world.scheduler, pod)


def named(found: Diagnosis) -> list[str]:
    return [each.plugin for each in found.pod_causes if each.cause.code == "plugin-error"]


AT_ANY_POINT = [
    pytest.param("pre_enqueue", {}, id="a gate"),
    pytest.param("pre_filter", {}, id="a pre-filter"),
    pytest.param("filter", {}, id="a filter"),
    pytest.param("score", {}, id="a score"),
    pytest.param("avoid", {"score": 0}, id="a plugin that avoids nodes"),
    pytest.param("needs_free", {"filter": ()}, id="a filter that says what it needs"),
]


@pytest.mark.parametrize(("point", "methods"), AT_ANY_POINT)
def test_the_plugin_is_named_and_other_causes_and_remedies_are_found(point: str, methods: dict[str, Any]) -> None:
    found = diagnosed(failing(at=point, **methods), nodes=TAINTED)
    (cause, *_) = found.pod_causes
    assert (cause.plugin, cause.cause.code) == ("Acme", "plugin-error")
    assert cause.cause.text == f"plugin \"Acme\" failed at {point}: KeyError: 'zone' ({PLACE})"
    error = f"KeyError: 'zone' ({PLACE})"
    expected = {"point": point, "error": error, "file": "test_failing_plugins.py", "line": LINE}
    assert cause.cause.details == expected
    assert [(group.nodes, [each.cause.code for each in group.causes]) for group in found.groups] == [
        (("a",), ["taint"])
    ]
    first = found.remedies[0]
    assert first.code == "tolerate" and "tried without plugin Acme: it helps once this works" in first.also


def test_a_pod_that_only_the_plugin_keeps_from_a_node_is_told_so() -> None:
    found = diagnosed(failing(), nodes=[a_node("a", cpu=4)])
    assert named(found) == ["Acme"] and found.groups == () and found.remedies == ()
    (wait,) = found.waits
    assert (wait.code, wait.text) == (
        "plugin-error", "mend plugin Acme: the pod would go to a if nothing else changed",
    )  # fmt: skip


def test_every_plugin_that_fails_is_named() -> None:
    found = diagnosed(failing(), failing("Other", "score"), nodes=[a_node("a", cpu=4)])
    assert named(found) == ["Acme", "Other"]
    assert "plugins Acme and Other" in found.waits[0].text


def test_a_plugin_that_other_filters_keep_from_being_asked_is_named_too() -> None:
    everywhere = a_plugin("First", filter=refusing("a", reason="no"))
    found = diagnosed(everywhere, failing(), nodes=[a_node("a", cpu=4)])
    assert named(found) == ["Acme"]
    assert [each.cause.text for group in found.groups for each in group.causes] == ["no"]


def test_a_remedy_that_does_not_meet_the_plugin_needs_no_note() -> None:
    def only_on_large(_pod: Any, nodes: Any) -> list[Reject]:
        if "large" in nodes.names:
            raise KeyError("zone")
        return []

    nodes = [a_node("a", cpu=4, taints=["dedicated=gpu:NoSchedule"]), a_node("large", cpu=4, labels={"pool": "x"})]
    pod = a_pod("web", cpu="1", nodeSelector={"pool": "y"})
    found = diagnosed(
        a_plugin("Colours", filter=refusing("large")), a_plugin("Acme", filter=only_on_large), nodes=nodes, pod=pod
    )
    assert named(found) == ["Acme"]
    assert found.remedies and all("tried without" not in also for each in found.remedies for also in each.also)


def test_a_plugin_that_fails_to_name_its_causes_still_has_its_reasons() -> None:
    plugin = failing(at="causes", filter=refusing("a", reason="no"))
    found = diagnosed(plugin, nodes=[a_node("a", cpu=4)])
    codes = [(each.cause.code, each.cause.text) for group in found.groups for each in group.causes]
    assert codes == [
        ("rejected", "no"),
        ("plugin-error", f"plugin \"Acme\" failed at causes: KeyError: 'zone' ({PLACE})"),
    ]


@pytest.mark.parametrize(("point", "methods"), AT_ANY_POINT[1:3])
def test_a_group_names_the_plugin_and_says_that_nothing_was_searched(point: str, methods: dict[str, Any]) -> None:
    members = gang("gang", 2, cpu="1")
    raising = {name: with_plugins(each, failing(at=point, **methods)) for name, each in profiles().items()}
    world = World(nodes=[a_node("a", cpu=8)], profiles=raising)
    world.submit(*members)
    world.run()
    found = diagnose_any(world.scheduler, members[0])
    assert named(found)[:1] == ["Acme"] and f"failed at {point}" in found.pod_causes[0].cause.text
    assert found.bounded == "what would help the group while plugin Acme fails"
