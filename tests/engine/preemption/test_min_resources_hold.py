"""Room that is kept for a group: its minResources, beyond what its own pods request.

A node with eight cpu is full of pods of a low priority. A group of two pods wants more than two cpu to be free, so more
than two pods are evicted. They end slowly, and the group waits for the last one.
"""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import GROUP, a_pod_group, a_world, created, evicted, gang, member

CPU = 8
KEPT = "room is kept for pod group default/g: {} of cpu must be free (minResources)"


def waiting(wanted: int, ended: int, others: int = 0) -> World:
    """Return a world where the group waits for so many cpu.

    `ended`: how many of its victims have ended; `others`: how many pods have ended that are no victims.
    """
    world = a_world(nodes=0, graceful=True)
    world.submit(a_node("n", cpu=CPU), *(a_pod(f"low-{at}", cpu=1, node="n", priority=1) for at in range(CPU)))
    world.submit(a_pod_group("g", 2, minResources={"cpu": str(wanted)}))
    world.submit(*(member(f"g-{at}", {GROUP: "g"}, priority=10) for at in range(2)))
    world.advance(5)
    assert len(evicted(world)) == wanted
    spared = [pod for pod in world.pods() if pod.node_name and not pod.terminating]
    world.delete(*victims(world)[:ended], *spared[:others])
    world.run()
    return world


def victims(world: World) -> list[Pod]:
    return [pod for pod in world.pods() if pod.terminating]


def bound(world: World) -> set[str]:
    return {name for name in world.bindings if not name.startswith("low-")}


def end_victims(world: World) -> None:
    world.delete(*victims(world))
    world.advance(20)


def rival(priority: int = 0, cpu: int = 1, **more: Any) -> Pod:
    return created(a_pod("rival", cpu=cpu, priority=priority, preemptionPolicy="Never", **more), 0)


@pytest.mark.parametrize("priority", [0, 10], ids=["a lower priority", "an equal priority"])
@pytest.mark.parametrize("dies", [False, True], ids=["in the same life", "after a restart"])
def test_a_pod_leaves_the_kept_room_free_until_the_group_runs(priority: int, dies: bool) -> None:
    world = waiting(4, ended=3)
    if dies:
        world.restart()
    world.submit(rival(priority))
    world.advance(20)
    assert not bound(world) and world.event_notes("rival")[-1] == KEPT.format(4000)
    end_victims(world)
    assert bound(world) == {"g-0", "g-1", "rival"} and len(evicted(world)) == 4


@pytest.mark.parametrize(
    ("ended", "others", "pod"),
    [
        pytest.param(3, 0, rival(11), id="a higher priority"),
        pytest.param(3, 0, rival(cpu=0, memory="1Mi"), id="it requests none of the resource"),
        pytest.param(2, 1, rival(), id="enough is left, once all victims have ended"),
    ],
)
def test_a_pod_does_not_wait_if_the_room_is_not_kept_from_it(ended: int, others: int, pod: Pod) -> None:
    world = waiting(4, ended, others)
    world.submit(pod)
    world.run()
    assert bound(world) == {"rival"}
    end_victims(world)
    end_victims(world)  # another one, if the pod of a higher priority took the room
    assert bound(world) == {"g-0", "g-1", "rival"}


@pytest.mark.parametrize(("wanted", "keeps"), [(2, False), (3, True)], ids=["what its pods request", "more"])
def test_nominations_are_enough_for_what_the_pods_of_the_group_request(wanted: int, keeps: bool) -> None:
    world = waiting(wanted, ended=1)
    assert world.scheduler.preemption.min_resources_hold.holds("default/g") is keeps
    assert not world.scheduler.preemption.min_resources_hold.holds("default/other")


def test_the_room_is_no_longer_kept_if_the_group_is_deleted() -> None:
    world = waiting(4, ended=3)
    world.submit(rival())
    world.advance(5)
    assert not bound(world)
    world.delete(world.pod("g-0"), world.pod("g-1"))
    world.advance(5)
    assert bound(world) == {"rival"}


def test_a_pod_that_waits_for_kept_room_keeps_its_nomination() -> None:
    world = waiting(4, ended=3)
    world.submit(rival(nominated="n"))
    world.run()
    assert not bound(world) and world.scheduler.state.nominated_pods.node_of(world.pod("rival").uid) == "n"


def test_another_group_leaves_the_kept_room_free() -> None:
    world = waiting(6, ended=5)
    world.submit(*gang("other", 2, priority=5))
    world.run()
    assert not bound(world) and world.event_notes("other-1") == [KEPT.format(6000)]
    end_victims(world)
    assert bound(world) == {"g-0", "g-1", "other-0", "other-1"} and len(evicted(world)) == 6


def test_no_pod_is_evicted_for_a_group_that_needs_the_kept_room() -> None:
    """The second group could have five cpu beside the nominated pods, but not before the first one runs."""
    world = waiting(6, ended=5)
    world.submit(*gang("other", 5, priority=10))
    world.advance(20)
    assert not bound(world) and len(evicted(world)) == 6
    end_victims(world)
    end_victims(world)
    assert len(bound(world)) == 7 and len(evicted(world)) == 7


def test_two_groups_that_keep_room_do_not_wait_for_each_other() -> None:
    """Both have nominated nodes, from an earlier life say. Either can run, but not beside what the other keeps."""
    world = a_world(nodes=0)
    world.submit(a_node("n", cpu=CPU))
    for name in ("g", "h"):
        pods = [member(f"{name}-{at}", {GROUP: name}, nominated="n") for at in range(2)]
        world.submit(a_pod_group(name, 2, minResources={"cpu": "7"}), *pods)
    world.advance(20)
    assert len(bound(world)) == 2


@pytest.mark.parametrize("pods", [[rival()], gang("rival", 2, priority=5)], ids=["a pod", "a group"])
def test_an_explanation_says_that_room_is_kept(pods: list[Pod]) -> None:
    world = waiting(6, ended=5)
    order = list(world.scheduler.state.pods)
    world.submit(*pods)
    found = world.scheduler.explain(pods[0].uid)
    assert found.node is None and found.why_not == KEPT.format(6000)
    assert list(world.scheduler.state.pods) == order
    world.check()
