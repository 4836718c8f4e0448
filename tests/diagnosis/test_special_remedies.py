"""Remedies for pods with a WorkloadPolicy and for Spark applications: tables, and draws that a World judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stowplan.diagnosis.any_pod import diagnose_any, joined
from stowplan.diagnosis.diagnosis import Diagnosis
from stowplan.diagnosis.special_remedies import SpecialRemedies, special_remedies
from stowplan.framework.profile import Profile
from stowplan.objects.meta import Object
from stowplan.testing.builders import a_node, a_pod, a_profile
from stowplan.testing.world import World
from tests.diagnosis.drawn_applications import DRIVER, POD, drawn_application, drawn_policy
from tests.diagnosis.judged_pods import Changes, a_judged_world, one_step_less
from tests.plugins.nodes.resource_reservation.reservations import a_driver, a_reservation, needs
from tests.plugins.nodes.workload_policy.policies import a_member, a_policy, placed, zoned

Draw = Callable[[int], list[Object]]


def profiles() -> dict[str, Profile]:
    """A profile without preemption, so that a smaller change cannot be helped by evictions."""
    plugins = {
        "multiPoint": {"enabled": [{"name": "WorkloadPolicy"}, {"name": "ResourceReservation"}]},
        "postFilter": {"disabled": [{"name": "DefaultPreemption"}]},
    }
    profile = {"schedulerName": "default-scheduler", "plugins": plugins}
    return {"default-scheduler": a_profile({"profiles": [profile]})}


def runs(objects: list[Object], changes: Changes, name: str) -> bool:
    return name in a_judged_world(objects, changes, profiles()).bindings


def diagnosed(world: World, name: str) -> SpecialRemedies:
    scheduler = world.scheduler
    return special_remedies(world.pod(name), scheduler.state, scheduler.profiles)


REQUIRED: dict[str, Any] = {"allocationType": "Required"}


@pytest.mark.parametrize(
    ("objects", "code", "text"),
    [
        pytest.param(
            [*zoned("a"), a_policy({"a": 1}, **REQUIRED), *placed("a"), a_member(POD)],
            "raise-policy", "raise the number of a in the policy policy from 1 to 2", id="a domain is full",
        ),
        pytest.param(
            [*zoned("a"), a_policy({"a": 1}, **REQUIRED), *placed("a"), a_member(POD)],
            "prefer-policy", "let the policy policy be a preference", id="a domain is full, and need not be",
        ),
        pytest.param(
            [*zoned("a"), a_policy({"a": 1}, **REQUIRED), *placed("a"), a_member(POD)],
            "scale-down", "delete default/p0 of the policy policy", id="a domain is full of pods",
        ),
        pytest.param(
            [*zoned("c"), a_policy({"a": 1}, **REQUIRED), a_member(POD)],
            "list-domain", "list c in the policy policy with 1", id="a domain is not listed",
        ),
        pytest.param(
            [*zoned("-n"), a_policy({"a": 1}, **REQUIRED), a_member(POD)],
            "label-node", "label -n zone=a", id="no node has the topology key",
        ),
        pytest.param(
            [*zoned("a"), a_policy({"a": 1}), a_member(POD, policy="polcy")],
            "correct-policy", "correct the policy polcy in the label workload-policy/kosmos.io to policy",
            id="the policy does not exist",
        ),
        pytest.param(
            [*zoned("a"), a_policy({"a": 1}), a_member(POD, labels={"app": "y"})],
            "label-pod", "label the pod app=x, as the policy selects its pods", id="the policy does not select the pod",
        ),
    ],
)  # fmt: skip
def test_a_policy_is_changed_as_little_as_possible(objects: list[Object], code: str, text: str) -> None:
    found = diagnosed(a_judged_world(objects, (), profiles()), POD).remedies
    assert [each.text for each in found if each.code == code] == [text], [each.text for each in found]
    (remedy,) = (each for each in found if each.code == code)
    assert runs(objects, remedy.changes, POD)


@pytest.mark.parametrize(
    ("objects", "code", "text"),
    [
        pytest.param(
            [a_node("n", cpu=4, memory="8Gi"), a_driver(annotations=needs(4))],
            "fewer-executors", "lower the number of executors (spark-executor-count) from 4 to 3",
            id="one executor too many",
        ),
        pytest.param(
            [a_node("n", cpu=4, memory="8Gi"), a_driver(annotations=needs(4))],
            "smaller-executors", "lower the cpu of each executor (spark-executor-cpu) from 1 to 750m",
            id="executors are too large",
        ),
        pytest.param(
            [a_node("n", cpu=4, memory="8Gi"), a_driver(annotations=needs(5))],
            "add-nodes", "add a node like n", id="one more node",
        ),
        pytest.param(
            [a_node("n", cpu=4, memory="8Gi"), a_reservation(slot=("n", {"cpu": 1})), a_driver(annotations=needs(3))],
            "release-reservation", "delete the reservation default/kept", id="room is held for others",
        ),
        pytest.param(
            [a_node("n", cpu=4, memory="8Gi"), a_pod("p", cpu=1, node="n"), a_driver(annotations=needs(3))],
            "free-room", "delete default/p", id="a pod is in the way",
        ),
        pytest.param(
            [a_node("n", cpu=8, memory="8Gi"), a_reservation("app", slot=("n", {"cpu": 1})), a_driver()],
            "name-reservation", "let its reservation have the name app-app-driver", id="its reservation is another's",
        ),
    ],
)  # fmt: skip
def test_an_application_gets_room_for_its_executors(objects: list[Object], code: str, text: str) -> None:
    found = diagnosed(a_judged_world(objects, (), profiles()), DRIVER).remedies
    assert text in [each.text for each in found if each.code == code], [each.text for each in found]
    remedy = next(each for each in found if each.text == text)
    assert runs(objects, remedy.changes, DRIVER)


def test_a_pod_without_a_policy_gets_none_of_these() -> None:
    world = a_judged_world([a_node("n", cpu=1), a_pod("large", cpu=2)], (), profiles())
    assert diagnosed(world, "large") == SpecialRemedies()


def test_these_come_with_the_other_remedies_of_a_pod() -> None:
    world = a_judged_world([*zoned("a"), a_policy({"a": 1}, **REQUIRED), *placed("a"), a_member(POD)], (), profiles())
    found = diagnose_any(world.scheduler, world.pod(POD))
    codes = [each.code for each in found.remedies]
    assert codes.index("raise-policy") < codes.index("scale-down")
    assert found.groups


def test_a_pod_that_has_a_node_is_looked_at_as_if_it_had_none() -> None:
    world = a_judged_world([a_node("n", cpu=1), a_pod("p", cpu=1)], (), profiles())
    pod = world.pod("p")
    assert pod.node_name == "n"
    assert diagnose_any(world.scheduler, pod).remedies == ()
    assert pod.uid in world.scheduler.state.pods


# -- draws


def waiting(draw: Draw, name: str) -> Iterator[tuple[int, list[Object], World]]:
    for seed in range(100_000):
        objects = draw(seed)
        world = a_judged_world(objects, (), profiles())
        if name not in world.bindings:
            yield seed, objects, world


def judged(draw: Draw, name: str, number: int) -> Counter[str]:
    """Diagnose so many pods; every remedy must be sound and minimal. Return how many got one."""
    counts: Counter[str] = Counter()
    for _, (seed, objects, world) in zip(range(number), waiting(draw, name), strict=False):
        found = diagnosed(world, name)
        counts["pods"] += 1
        counts["with a remedy"] += bool(found.remedies)
        counts["bounded"] += bool(found.bounded)
        for remedy in found.remedies:
            counts["remedies"] += 1
            counts[f"  {remedy.code}"] += 1
            assert runs(objects, remedy.changes, name), f"{seed}: {remedy.text}"
            for less in one_step_less(remedy.changes, objects):
                counts["smaller ones"] += 1
                assert not runs(objects, less, name), f"{seed}: {remedy.text}: {less}"
    return counts


@pytest.mark.parametrize(("draw", "name"), [(drawn_policy, POD), (drawn_application, DRIVER)], ids=["policy", "spark"])
def test_remedies_of_drawn_pods_are_sound_and_minimal(draw: Draw, name: str) -> None:
    counts = judged(draw, name, 8)
    assert counts["with a remedy"] >= 7


@pytest.mark.full
@pytest.mark.parametrize(("draw", "name"), [(drawn_policy, POD), (drawn_application, DRIVER)], ids=["policy", "spark"])
def test_remedies_of_many_drawn_pods_are_sound_and_minimal(draw: Draw, name: str) -> None:
    counts = judged(draw, name, 100)
    print(counts)  # noqa: T201
    assert counts["pods"] == 100
    assert counts["with a remedy"] >= 95


def test_a_pod_that_the_kubelet_makes_again_is_not_deleted() -> None:
    mirror = a_pod("static", cpu=1, node="n", annotations={"kubernetes.io/config.mirror": "x"})
    objects = [a_node("n", cpu=4, memory="8Gi"), mirror, a_driver(annotations=needs(3))]
    found = diagnosed(a_judged_world(objects, (), profiles()), DRIVER).remedies
    assert "free-room" not in {each.code for each in found}


def test_a_search_that_found_nothing_special_still_says_where_it_stopped() -> None:
    assert joined(Diagnosis(bounded="one"), SpecialRemedies((), "two")).bounded == "one; two"
