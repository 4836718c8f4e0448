"""Never: which members of a group no node could host, and groups that are too large for the cluster as it is."""

from __future__ import annotations

import pytest

from stowplan.diagnosis.groups.diagnosis import diagnose_group
from stowplan.objects.meta import Object
from stowplan.testing.builders import a_node, a_pod
from tests.diagnosis.drawn_gangs import KEY
from tests.diagnosis.judged_pods import a_judged_world
from tests.plugins.nodes.coscheduling.pod_groups import GROUP, a_pod_group, gang, member, profiles


def sized(*cpus: int, minimum: int) -> list[Object]:
    members = [member(f"gang-{at}", {GROUP: "gang"}, cpu=cpu, at=at) for at, cpu in enumerate(cpus)]
    return [a_pod_group("gang", minimum), *members]


def never(*objects: Object) -> str:
    world = a_judged_world(objects, (), profiles())
    return diagnose_group(world.scheduler, KEY).never


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        pytest.param(
            [a_node("n", cpu=4), *gang("gang", 2, cpu=9)],
            "no node is big enough: it needs 9 of cpu, the largest has 4 (default/gang-0, default/gang-1). "
            "0 of its other members are left, and 2 must run",
            id="all members are too large",
        ),
        pytest.param(
            [a_node("n", cpu=4), *sized(9, 1, 1, minimum=3)],
            "no node is big enough: it needs 9 of cpu, the largest has 4 (default/gang-0). "
            "2 of its other members are left, and 3 must run",
            id="one member is too large, and all are needed",
        ),
        pytest.param(
            [a_node("n", cpu=4), a_pod("p", cpu=3, node="n"), *sized(9, 2, 2, minimum=2)],
            "",
            id="one member is too large, and not needed",
        ),
        pytest.param(
            [a_node("n", cpu=4), *sized(9, 2, 2, 1, minimum=3)],
            "the cluster is too small: empty nodes have room for at most 2 of its members, and 3 must run",
            id="the others need more than all nodes have",
        ),
        pytest.param(
            [a_node("n", cpu=2), a_node("m", cpu=3), *gang("gang", 4, cpu=2)],
            "the cluster is too small: empty nodes have room for at most 2 of its members, and 4 must run",
            id="the nodes have room for fewer, one by one",
        ),
        pytest.param(
            [a_node("n", cpu=4), a_pod("p", cpu=3, node="n"), *gang("gang", 4)],
            "",
            id="there would be room if it were empty",
        ),
        pytest.param([a_node("n", cpu=2), *sized(1, 1, minimum=9)], "", id="members that do not exist may be small"),
        pytest.param([*gang("gang", 2)], "the cluster has no node", id="no node"),
    ],
)
def test_never_has_its_reason(objects: list[Object], text: str) -> None:
    assert never(*objects) == text


def test_room_of_members_that_run_counts_as_theirs() -> None:
    running = [member(f"gang-{at}", {GROUP: "gang"}, cpu=2, at=at, node="n") for at in range(2)]
    waiting = [member(f"gang-{at}", {GROUP: "gang"}, cpu=2, at=at) for at in range(2, 4)]
    objects = [a_node("n", cpu=5), a_node("m", cpu=2), a_pod_group("gang", 4), *running, *waiting]
    assert never(*objects) == (
        "the cluster is too small: empty nodes have room for at most 3 of its members, and 4 must run"
    )
