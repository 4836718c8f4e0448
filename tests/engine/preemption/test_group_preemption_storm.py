"""Random clusters full of pods and groups of lower priorities, some with disruption budgets, and one group of a high
priority.

No pod is evicted unless that group then runs; no budget is exceeded; no group is left with too few members.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stowplan.engine.preemption.capacity_check import CapacityCheck
from stowplan.objects.actions import Evict
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_budget, a_node, a_pod
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import MIN, NAME, a_pod_group, a_world, created, member, running

GROUP = "scheduling.x-k8s.io/pod-group"
BUDGETS = ("red", "blue")


@dataclass
class Scene:
    """`lone`: cpu, priority and budget of each single pod; `gangs`: members and minimum of each group of a lower
    priority, and the budget of its first member; `wanted`: the cpu of each member of the preempting group; `least`: its
    minResources, if any.
    """

    nodes: list[int]
    lone: list[tuple[int, int, str]]
    gangs: list[tuple[int, int, str]]
    allowed: dict[str, int]
    wanted: list[int]
    least: int | None


budget = st.sampled_from(["", *BUDGETS])
scenes = st.builds(
    Scene,
    nodes=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    lone=st.lists(st.tuples(st.integers(1, 2), st.integers(0, 12), budget), max_size=10),
    gangs=st.lists(st.tuples(st.integers(2, 4), st.integers(2, 3), budget), max_size=2),
    allowed=st.fixed_dictionaries({name: st.integers(0, 3) for name in BUDGETS}),
    wanted=st.lists(st.integers(1, 3), min_size=2, max_size=5),
    least=st.none() | st.integers(1, 12),
)


def lesser(scene: Scene) -> list[Pod]:
    more: dict[str, Any] = {"preemptionPolicy": "Never"}
    pods = [
        created(a_pod(f"p{at}", cpu=cpu, priority=priority, labels={"budget": name}, **more), 0)
        for at, (cpu, priority, name) in enumerate(scene.lone)
    ]
    for at, (count, minimum, name) in enumerate(scene.gangs):
        labels = {NAME: f"lesser{at}", MIN: str(minimum)}
        for number in range(count):
            own = {**labels, "budget": name if number == 0 else ""}
            pods.append(member(f"lesser{at}-{number}", own, priority=5, at=1, **more))
    return pods


def the_gang(scene: Scene, minimum: int) -> list[Any]:
    resources = {} if scene.least is None else {"minResources": {"cpu": str(scene.least)}}
    group = a_pod_group("g", minimum, **resources)
    return [group, *(member(f"g-{at}", {GROUP: "g"}, cpu=cpu, priority=10) for at, cpu in enumerate(scene.wanted))]


def played(scene: Scene, graceful: bool, minimum: int | None = None) -> tuple[World, list[Pod]]:
    """Return the world afterwards, and the pods that the group evicted; without a minimum it needs all its pods."""
    world = a_world(nodes=0, graceful=graceful)
    world.submit(*(a_node(f"n{at}", cpu=cpu) for at, cpu in enumerate(scene.nodes)))
    world.submit(*(a_budget(name, budget=name, allowed=allowed) for name, allowed in scene.allowed.items()))
    world.submit(*lesser(scene))
    world.advance(5)
    before = {pod.uid: pod for pod in world.pods()}
    world.submit(*the_gang(scene, minimum or len(scene.wanted)))
    for _ in range(4):
        world.advance(30)
        world.delete(*(pod for pod in world.pods() if pod.terminating))
    told = dict.fromkeys(action.pod.uid for action in world.actions if isinstance(action, Evict))
    return world, [before[uid] for uid in told]


def runs(world: World) -> int:
    return sum(name.startswith("g-") for name in world.bindings)


# More must be free than the group's pods request, and p1 waits for room.
BEYOND_ITS_PODS = Scene(
    nodes=[1, 1, 1, 4],
    lone=[(1, 0, ""), (2, 0, "red")],
    gangs=[(2, 2, "")],
    allowed={"red": 0, "blue": 0},
    wanted=[1, 1],
    least=7,
)


@pytest.mark.parametrize("graceful", [False, True], ids=["at once", "gracefully"])
@given(scene=scenes)
@example(scene=BEYOND_ITS_PODS)
def test_no_pod_is_evicted_for_a_group_that_then_does_not_run(scene: Scene, graceful: bool) -> None:
    world, gone = played(scene, graceful)
    assert runs(world) in (0, len(scene.wanted))
    assert not gone or runs(world)
    check_victims(scene, world, gone)


@pytest.mark.parametrize("graceful", [False, True], ids=["at once", "gracefully"])
@given(scene=scenes, spare=st.integers(1, 4))
def test_members_beyond_the_minimum_keep_the_same_rules(scene: Scene, spare: int, graceful: bool) -> None:
    minimum = max(len(scene.wanted) - spare, 1)
    scene.allowed = dict.fromkeys(BUDGETS, 0)  # nobody counts a budget again between the evictions
    world, gone = played(scene, graceful, minimum)
    assert runs(world) in (0, *range(minimum, len(scene.wanted) + 1))
    assert not gone or runs(world)
    check_victims(scene, world, gone)


def check_victims(scene: Scene, world: World, gone: list[Pod]) -> None:
    """Victims have a lower priority, budgets are kept, and no group is left with too few members."""
    assert all(pod.priority < 10 for pod in gone)
    for name, allowed in scene.allowed.items():
        assert sum(pod.labels["budget"] == name for pod in gone) <= allowed
    after = running(world)
    for at, (count, minimum, _) in enumerate(scene.gangs):
        assert after.get(f"lesser{at}", 0) in (0, *range(min(minimum, count), count + 1))


# Of the two blue pods only one may be evicted, and only the larger one makes enough room.
ONE_OF_A_BUDGET = Scene(
    nodes=[1, 1, 1, 3, 4],
    lone=[(2, 0, "red"), (2, 0, "red"), (2, 0, "blue"), (1, 0, "red"), (1, 0, "red"), (1, 0, "blue")],
    gangs=[],
    allowed={"red": 0, "blue": 1},
    wanted=[1, 1, 1],
    least=None,
)


@given(scene=scenes, cpu=st.integers(1, 3))
@example(scene=ONE_OF_A_BUDGET, cpu=1)
def test_the_feasibility_check_never_excludes_a_group_wrongly(scene: Scene, cpu: int) -> None:
    """Members that are all alike fit or not, in any order, with the feasibility check and without it."""
    scene.wanted = [cpu] * len(scene.wanted)
    world, _ = played(scene, False)
    with patch.object(CapacityCheck, "most", lambda *_: 1 << 30):
        other, _ = played(scene, False)
    assert runs(world) == runs(other)
