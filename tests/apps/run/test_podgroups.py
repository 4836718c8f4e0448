"""/debug/podgroups: what the page shows of each group, for how long, and that reading it changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stowplan.apps.run import pages
from stowplan.engine.groups.group import GroupState
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import MOMENT, a_world, gang, refuse_binding

START = datetime(2026, 2, 1, tzinfo=UTC)


def shown(world: World) -> dict[str, dict[str, Any]]:
    found = pages.pod_groups(world.scheduler, world.now, START)
    assert found["kind"] == "PodGroupInfoList"
    return {each["name"]: each for each in found["items"]}


def test_what_is_shown_of_a_group() -> None:
    world = a_world(nodes=3)
    world.submit(*gang("whole", 3, at=1), *gang("few", 2, needed=4, at=2))
    world.advance(7)
    assert list(shown(world)) == ["few", "whole"]
    whole, few = shown(world)["whole"], shown(world)["few"]
    moment = {"timestamp": MOMENT.replace(second=1), "lastUpdateTime": START}
    counts = {"minAvailable": 3, "scheduledPods": 3, "waitingPods": 0}
    assert whole == {"name": "whole", "namespace": "default", **counts, **moment}
    assert (few["minAvailable"], few["scheduledPods"], few["waitingPods"]) == (4, 0, 2)


def test_a_group_is_shown_for_ten_minutes_after_its_last_member() -> None:
    world = a_world(nodes=3)
    world.submit(*(pods := gang("g", 3)))
    world.advance(60)
    world.delete(*pods)
    world.advance(599)
    gone = shown(world)["g"]
    assert (gone["scheduledPods"], gone["waitingPods"]) == (0, 0)
    assert gone["lastUpdateTime"] == START.replace(minute=1)
    world.advance(1)
    assert shown(world) == {}


def test_reading_the_page_changes_nothing() -> None:
    """The engine remembers that the group failed, so its new pods wait out the backoff, however often it is read."""
    assert actions_of_a_group_that_failed(reads=0) == actions_of_a_group_that_failed(reads=50)


def actions_of_a_group_that_failed(reads: int) -> list[str]:
    """All actions of a world in which the page is read so often after each step."""
    world = a_world(nodes=3, initial_backoff=3600, max_backoff=3600)

    def read() -> None:
        for _ in range(reads):
            before = known_groups(world)
            shown(world)
            assert known_groups(world) == before

    refuse_binding(world, "g-0", "g-1", "g-2")
    world.submit(*(pods := gang("g", 3)))
    world.run()
    read()
    world.delete(*pods)
    world.advance(601)
    read()
    assert shown(world) == {}
    world.answers = world.succeed
    world.submit(*gang("g", 3, at=601))
    world.advance(10)
    read()
    assert world.bindings == {}
    world.advance(3000)
    assert set(world.bindings) == {"g-0", "g-1", "g-2"}
    return [repr(action) for action in world.actions]


def known_groups(world: World) -> dict[str, list[str]]:
    """All that the engine knows of each group."""
    groups = world.scheduler.groups
    return {each.group.name: [repr(getattr(each, slot)) for slot in GroupState.__slots__] for each in groups}
