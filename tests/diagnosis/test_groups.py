"""Remedies for groups: a table of causes, and draws that a World of their own judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from stowplan.diagnosis.any_pod import diagnose_any
from stowplan.diagnosis.groups.diagnosis import GroupDiagnosis, diagnose_group
from stowplan.diagnosis.remedy import AddNodes, DeleteObject, ObjectChange, Remedy
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PodDisruptionBudget
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.diagnosis.drawn_gangs import KEY, drawn_gang
from tests.diagnosis.judged_pods import a_judged_world, one_step_less
from tests.plugins.nodes.coscheduling.pod_groups import (
    GROUP,
    MIN,
    NAME,
    a_kubernetes_group,
    a_pod_group,
    gang,
    member,
    profiles,
)
from tests.plugins.nodes.resource_reservation.reservations import ROLE, annotated, needs


def runs(objects: list[Object], changes: Iterable[ObjectChange], *, evicts: bool = False) -> bool:
    """True if the gang has enough members on nodes after the changes. `evicts`: it may evict pods for that."""
    world = a_judged_world(objects, changes, profiles(None if evicts else {"preemption": False}))
    found = world.scheduler.groups.get(KEY)
    return found is not None and found.satisfied


def waiting(objects: list[Object]) -> World | None:
    """Return a World in which the gang waits; None if it runs."""
    world = a_judged_world(objects, (), profiles())
    found = world.scheduler.groups.get(KEY)
    return None if found is None or found.satisfied else world


def diagnosed(*objects: Object) -> GroupDiagnosis:
    world = waiting(list(objects))
    assert world is not None, "the gang runs"
    return diagnose_group(world.scheduler, KEY)


def sigs(count: int, minimum: int, *, cpu: Any = 1, **spec: Any) -> list[Object]:
    members = [member(f"gang-{at}", {GROUP: "gang"}, cpu=cpu, at=at) for at in range(count)]
    return [a_pod_group("gang", minimum, **spec), *members]


@pytest.mark.parametrize(
    ("objects", "code", "text"),
    [
        pytest.param(
            [a_node("n", cpu=2), *gang("gang", 4)],
            "add-nodes", "add a node like n", id="one more node",
        ),
        pytest.param(
            [a_node("n", cpu=2), *gang("gang", 7)],
            "add-nodes", "add 3 nodes like n", id="three more nodes",
        ),
        pytest.param(
            [a_node("n", cpu=2), *sigs(3, 3)],
            "lower-minimum", "lower the minimum of the group from 3 to 2", id="a minimum that fits",
        ),
        pytest.param(
            [a_node("n", cpu=2), *gang("gang", 3)],
            "lower-minimum", "lower the minimum of the group from 3 to 2", id="a minimum that fits, by labels",
        ),
        pytest.param(
            [a_node("n", cpu=2), *gang("gang", 4)],
            "lower-request", "lower the cpu request of every member by 500m", id="smaller members",
        ),
        pytest.param(
            [a_node("n", cpu=4), *sigs(2, 3)],
            "create-members", "create 1 more member like gang-0", id="a member is missing",
        ),
        pytest.param(
            [a_node("n", cpu=4), *sigs(2, 2, minResources={"cpu": "6"})],
            "lower-min-resources", "lower minResources of cpu from 6 to 4", id="minResources are more than there is",
        ),
        pytest.param(
            [a_node("n", cpu=4), *sigs(3, 2)[1:]],
            "create-pod-group", f"create the PodGroup {KEY} for 3 pods", id="its PodGroup does not exist",
        ),
        pytest.param(
            [a_node("n", cpu=2, unschedulable=True), a_node("m", cpu=2, unschedulable=True), *gang("gang", 2)],
            "uncordon", "", id="nodes are cordoned, and one is enough",
        ),
        pytest.param(
            [a_node("n", cpu=2, taints=["dedicated=gpu:NoSchedule"]), *gang("gang", 2)],
            "tolerate", "let all members tolerate dedicated=gpu:NoSchedule", id="a taint",
        ),
        pytest.param(
            [a_node("n", cpu=3), *(a_pod(f"p{at}", cpu=1, node="n") for at in range(3)), *gang("gang", 2)],
            "free-room", "delete default/p0, default/p1", id="room for two",
        ),
        pytest.param(
            [a_node("n", cpu=2, labels={"disk": "ssd"}), *gang("gang", 2, nodeSelector={"disk": "sdd"})],
            "selector-value", "", id="a selector with a typing error",
        ),
        pytest.param(
            [a_node("n", cpu=2), *(a_pod(f"p{at}", cpu=1, node="n", priority=5) for at in range(2)), *gang("gang", 2)],
            "raise-priority", "give the group the priority class priority-6 (6)", id="a priority by which it preempts",
        ),
    ],
)  # fmt: skip
def test_a_cause_has_its_remedy(objects: list[Object], code: str, text: str) -> None:
    found = diagnosed(*objects)
    texts = [each.text for each in found.remedies if each.code == code]
    assert texts, [each.text for each in found.remedies]
    assert not text or texts == [text]
    remedy = next(each for each in found.remedies if each.code == code)
    assert runs(objects, remedy.changes, evicts=code == "raise-priority")
    assert remedy.nodes


def test_a_group_that_would_run_needs_nothing() -> None:
    world = World(nodes=[a_node("n", cpu=1)], profiles=profiles())
    world.submit(*gang("gang", 2))
    world.run()
    world.submit(a_node("m", cpu=1))
    found = diagnose_group(world.scheduler, KEY)
    assert (found.because, found.remedies) == ("", ())
    assert sorted((found.nodes or {}).values()) == ["m", "n"]


def test_the_members_without_a_node_are_named_with_their_causes() -> None:
    found = diagnosed(a_node("n", cpu=2), *gang("gang", 3))
    assert (found.existing, found.minimum) == (3, 3)
    (entry,) = found.causes
    assert [each.cause.code for group in entry.groups for each in group.causes]
    assert entry.members == ("default/gang-2",)


def test_missing_members_are_waited_for() -> None:
    found = diagnosed(a_node("n", cpu=4), *sigs(2, 3))
    assert [each.code for each in found.waits] == ["missing-members"]
    assert [each.cause.code for each in found.group_causes] == ["group-members"]


def test_a_group_of_kubernetes_gets_a_lower_minimum() -> None:
    pods = [a_pod(f"gang-{at}", cpu=1, schedulingGroup={"podGroupName": "gang"}) for at in range(3)]
    found = diagnosed(a_node("n", cpu=2), a_kubernetes_group("gang", 3), *pods)
    assert "lower-minimum" in [each.code for each in found.remedies]


def test_a_member_is_diagnosed_with_its_group() -> None:
    world = waiting([a_node("n", cpu=2), *gang("gang", 4)])
    assert world is not None
    found = diagnose_any(world.scheduler, world.pod("gang-0"))
    assert "add-nodes" in [each.code for each in found.remedies]
    assert all(each.node for each in found.remedies)
    assert found.groups


def test_nothing_changes_by_a_diagnosis() -> None:
    world = waiting([a_node("n", cpu=2), *(a_pod(name, cpu=1, node="n") for name in "pq"), *gang("gang", 3)])
    assert world is not None
    before = list(world.scheduler.state.pods)
    diagnose_group(world.scheduler, KEY)
    world.check()
    assert list(world.scheduler.state.pods) == before


def test_a_driver_in_a_group_may_have_fewer_executors() -> None:
    driver = annotated(member("driver", {NAME: "gang", MIN: "3", ROLE: "driver"}), **needs(4))
    objects = [a_node("n", cpu=4, memory="8Gi"), driver]
    world = a_judged_world(objects, (), profiles({}, "ResourceReservation"))
    assert world.bindings == {}
    found = diagnose_group(world.scheduler, KEY)
    texts = {each.code: each.text for each in found.remedies}
    assert texts["fewer-executors"] == "lower the number of executors (spark-executor-count) from 4 to 3"


# -- draws


def emptied(objects: list[Object]) -> list[Object]:
    """The gang and the nodes, without taints and other pods: if something can be tried, it is here."""
    found: list[Object] = []
    for each in objects:
        if isinstance(each, Node):
            each = a_node(each.name, cpu=each.status.allocatable["cpu"], memory="8Gi", labels=each.labels)
        if not isinstance(each, Pod) or not each.node_name:
            found.append(each)
    return found


def breaks_a_budget(remedy: Remedy, objects: list[Object]) -> bool:
    """True if more of the budget's pods are deleted than it allows."""
    allowed = [each.status.disruptions_allowed for each in objects if isinstance(each, PodDisruptionBudget)]
    pods = {each.key: each for each in objects if isinstance(each, Pod)}
    deleted = {change.key for change in remedy.changes if isinstance(change, DeleteObject)}
    return bool(allowed) and sum(pods[key].labels.get("app") == "db" for key in deleted) > allowed[0]


def unplaced() -> Iterator[tuple[int, list[Object], World]]:
    for seed in range(100_000):
        objects = drawn_gang(seed)
        world = waiting(objects)
        if world is not None:
            yield seed, objects, world


def judged(number: int) -> Counter[str]:
    """Diagnose so many gangs; every remedy must be sound and minimal. Return how many got one."""
    counts: Counter[str] = Counter()
    for _, (seed, objects, world) in zip(range(number), unplaced(), strict=False):
        found = diagnose_group(world.scheduler, KEY)
        counts["gangs"] += 1
        counts["with a remedy"] += bool(found.remedies)
        counts["evicts by itself"] += found.preemption is not None
        counts["bounded"] += bool(found.bounded)
        if found.never:
            counts["never"] += 1
            assert not runs(emptied(objects), ()), f"{seed}: {found.never}"
        for remedy in found.remedies:
            counts["remedies"] += 1
            counts[f"  {remedy.code}"] += 1
            evicts = "raise-priority" in remedy.code
            marked = "against a budget" in remedy.ranked_as or "change-budget" in remedy.code
            counts["against a budget, or with another"] += marked
            assert marked == breaks_a_budget(remedy, objects), f"{seed}: {remedy.text}"
            assert runs(objects, remedy.changes, evicts=evicts), f"{seed}: {remedy.text}"
            assert runs(objects, remedy.changes, evicts=True), f"{seed}: {remedy.text}"
            for less in one_step_less(remedy.changes, objects):
                counts["smaller ones"] += 1
                assert not runs(objects, less, evicts=evicts), f"{seed}: {remedy.text}: {less}"
    return counts


def test_the_judge_finds_what_is_too_little_and_what_is_too_much() -> None:
    objects = [a_node("n", cpu=2), *gang("gang", 4)]
    (remedy,) = (each for each in diagnosed(*objects).remedies if each.code == "add-nodes")
    (added,) = remedy.changes
    assert isinstance(added, AddNodes)
    more = AddNodes(added.number + 1, added.like, added.document)
    assert not runs(objects, ()) and runs(objects, remedy.changes)
    assert not any(runs(objects, less) for less in one_step_less(remedy.changes, objects))
    assert any(runs(objects, less) for less in one_step_less((more,), objects))


def test_remedies_of_drawn_gangs_are_sound_and_minimal() -> None:
    counts = judged(10)
    assert counts["with a remedy"] == 10


@pytest.mark.full
def test_remedies_of_many_drawn_gangs_are_sound_and_minimal() -> None:
    counts = judged(200)
    print(counts)  # noqa: T201
    assert counts["gangs"] == 200
    assert counts["against a budget, or with another"] >= 5
    assert counts["with a remedy"] >= 190
