"""/debug/podgroups: what it says of each group, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stowplan.apps import printing
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import MOMENT, a_world, gang

START = datetime(2026, 2, 1, tzinfo=UTC)


def shown(world: World) -> dict[str, dict[str, Any]]:
    groups = world.scheduler.groups
    found = printing.grouped(groups.recent(world.now), START)
    assert found["kind"] == "PodGroupInfoList"
    return {each["name"]: each for each in found["items"]}


def test_what_is_said_of_a_group() -> None:
    world = a_world(nodes=3)
    world.submit(*gang("whole", 3, at=1), *gang("few", 2, needed=4, at=2))
    world.advance(7)
    assert list(shown(world)) == ["few", "whole"]
    whole, few = shown(world)["whole"], shown(world)["few"]
    moment = {"timestamp": MOMENT.replace(second=1), "lastUpdateTime": START}
    counts = {"minAvailable": 3, "scheduledPods": 3, "waitingPods": 0}
    assert whole == {"name": "whole", "namespace": "default", **counts, **moment}
    assert (few["minAvailable"], few["scheduledPods"], few["waitingPods"]) == (4, 0, 2)


def test_a_record_goes_ten_minutes_after_the_last_member() -> None:
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
