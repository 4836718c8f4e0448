"""The engine's reports about groups: attempted, waiting, complete, timed out, partially bound."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowplan.engine import reports
from stowplan.engine.reports import (
    GroupAttempted,
    GroupComplete,
    GroupPartiallyBound,
    GroupTimedOut,
    GroupWaits,
    Report,
)
from stowplan.framework.decision import RejectPod
from stowplan.objects.actions import Action, Bind
from stowplan.objects.changes import Result
from stowplan.testing.world import World
from tests.engine.groups.test_groups import a_patient_member, members
from tests.engine.small_plugins import Gangs, Notes, Patience, profiles
from tests.plugins.nodes.coscheduling.pod_groups import a_world, gang, member

NAME = "default/g"


def reported(**options: Any) -> tuple[World, list[Report]]:
    found: list[Report] = []
    return a_world(report=found.append, **options), found


def of_groups(found: list[Report]) -> list[Report]:
    return [each for each in found if isinstance(each, reports.OfGroup)]


def test_a_group_that_fits() -> None:
    world, found = reported(nodes=3)
    world.submit(*gang("g", 2, needed=3))
    world.advance(5)
    world.submit(*gang("g", 1, needed=3, first=2))
    world.advance(5)
    waits, tried, complete = of_groups(found)
    assert waits == GroupWaits(NAME, "pod group default/g: 2 of 3 pods exist")
    assert tried == GroupAttempted(NAME, "default-scheduler", 3, 3, whole=True)
    assert complete == GroupComplete(NAME, 3, 5.0), "since it was first seen"
    assert [each.group for each in found if isinstance(each, reports.PodBound)] == [NAME] * 3


def test_a_group_that_is_complete_when_a_scheduler_starts_is_not_reported() -> None:
    world, found = reported(nodes=3)
    world.submit(*gang("g", 3))
    world.advance(1)
    found.clear()
    world.restart()
    world.advance(1)
    assert of_groups(found) == []


def test_a_deleted_group_and_a_new_one_of_its_name_are_two_groups() -> None:
    world, found = reported(nodes=3)
    for at in (0, 3):
        world.submit(*(pods := gang("g", 3, first=at)))
        world.advance(1)
        world.delete(*pods)
        world.advance(10)
    assert sum(isinstance(each, GroupComplete) for each in found) == 2


def test_a_group_that_does_not_fit() -> None:
    world, found = reported(nodes=2)
    world.submit(*gang("g", 3))
    world.run()
    (tried,) = of_groups(found)
    assert isinstance(tried, GroupAttempted)
    assert (tried.found, tried.needed, tried.whole, tried.error) == (2, 3, False, False)
    assert tried.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert {each.group for each in found if isinstance(each, reports.AttemptFailed)} == {NAME}


def test_a_group_that_is_not_permitted_is_not_whole() -> None:
    found: list[Report] = []
    picky = Notes("picky", [], permit=RejectPod(("not today",)))
    plugins = profiles(postBind=[Gangs()], permit=[picky])
    world = World(nodes=["n0", "n1", "n2"], profiles=plugins, report=found.append)
    world.submit(*members(3, needed=3))
    world.run()
    assert of_groups(found) == [GroupAttempted(NAME, "default-scheduler", 3, 3, whole=False, message="not today")]


def test_a_group_that_is_not_ready_in_time() -> None:
    found: list[Report] = []
    plugins = profiles(postBind=[Gangs()], permit=[Patience()])
    world = World(nodes=["n0", "n1", "n2"], profiles=plugins, report=found.append)
    world.submit(*members(2, needed=3), a_patient_member("g2", 300))
    world.run()
    world.advance(10)
    assert GroupTimedOut("default/g", 10.0) in found
    assert not any(isinstance(each, GroupComplete) for each in found)


@pytest.mark.parametrize("policy", ["Complete", "Evict"])
def test_a_group_that_is_partially_bound(policy: str) -> None:
    world, found = reported(nodes=3, args={"onPartialBind": policy, "partialBindDeadlineSeconds": 20})

    def refuse(action: Action) -> Result:
        fails = isinstance(action, Bind) and action.pod.name == "g-2"
        return Result(action.id, 500, "no") if fails else Result(action.id)

    world.answers = refuse
    world.submit(*gang("g", 3))
    world.advance(25)
    said = next(each for each in found if isinstance(each, GroupPartiallyBound))
    assert said.group == NAME and said.evicts == (policy == "Evict")
    assert "g-2" in said.message


def test_a_pod_without_a_group_is_not_reported() -> None:
    world, found = reported(nodes=1)
    world.submit(member("a", {}), member("b", {}))
    world.run()
    assert {type(each).__name__ for each in found} == {"PodBound", "AttemptFailed"}
    assert all(not each.group for each in found if isinstance(each, reports.PodBound | reports.AttemptFailed))
    assert msgspec.structs.asdict(found[0])["pod"] == "default/a"
