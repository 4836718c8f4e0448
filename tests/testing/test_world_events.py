"""What a test of a plugin lets happen in a `World`: bindings that fail, pods that end, pods with wrong keywords."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import msgspec
import pytest

from stowplan.objects.actions import Bind
from stowplan.objects.pod_parts import PodSpec
from stowplan.testing import World, a_node, a_pod
from stowplan.testing.builders import UNREAD


def test_a_binding_that_fails_is_tried_again() -> None:
    world = World(nodes=["a"])
    world.fail_next_binding()
    world.submit(a_pod("web"))
    world.run()
    assert world.bindings == {}
    world.advance(60)
    assert world.bindings == {"web": "a"}


def test_several_bindings_fail() -> None:
    world = World(nodes=["a"])
    world.fail_next_binding(409, "not now", times=2)
    world.submit(a_pod("web"))
    world.advance(600)
    assert world.bindings == {"web": "a"}
    assert len([each for each in world.actions if isinstance(each, Bind)]) == 3


def test_a_pod_that_ends_gives_its_room_back() -> None:
    world = World(nodes=[a_node("a", cpu=1)])
    world.submit(a_pod("first", cpu=1), a_pod("second", cpu=1))
    world.run()
    assert world.bindings == {"first": "a"}
    world.finish("first")
    world.advance(60)
    assert world.bindings == {"first": "a", "second": "a"}
    assert world.pod("first").status.phase == "Succeeded"


def test_a_pod_without_a_node_cannot_end() -> None:
    world = World()
    world.submit(a_pod("web"))
    with pytest.raises(ValueError, match="pod default/web has no node"):
        world.finish("web")


def test_what_was_submitted_can_be_deleted() -> None:
    world, pod = World(nodes=["a"]), a_pod("web")
    world.submit(pod)
    world.run()
    world.delete(pod, a_node("a"))
    assert world.objects == {}


@pytest.mark.parametrize(
    ("keyword", "problem"),
    [
        pytest.param(
            "zzz", "unexpected keyword argument 'zzz', which is no field of a pod's spec either", id="unknown"
        ),
        pytest.param("scheduler_name", 'did you mean "schedulerName"', id="the spelling of Python"),
        pytest.param("label", 'did you mean "labels"', id="nearly a keyword"),
    ],
)
def test_a_keyword_that_a_pod_does_not_have(keyword: str, problem: str) -> None:
    given: dict[str, Any] = {keyword: 1}
    with pytest.raises(TypeError) as caught:
        a_pod(**given)
    assert problem in str(caught.value)


def test_a_field_that_scheduling_does_not_read() -> None:
    assert a_pod(restartPolicy="Never", schedulerName="mine").spec.scheduler_name == "mine"


def test_every_field_of_a_pod_is_known() -> None:
    text = resources.files("stowplan.embedded.schema").joinpath("builtin_types.json").read_text(encoding="utf-8")
    read = {field.encode_name for field in msgspec.structs.fields(PodSpec)}
    assert set(json.loads(text)["types"]["core.v1.PodSpec"]) == UNREAD | read
