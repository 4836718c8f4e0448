"""Pods that are deleted for a group: budgets that protect them, workloads that make them again, where they would go."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.diagnosis.groups.diagnosis import diagnose_group
from stowplan.diagnosis.remedy import Remedy
from stowplan.diagnosis.special_remedies import special_remedies
from stowplan.objects import kinds
from stowplan.objects.meta import Object
from stowplan.objects.workloads import Deployment, PodDisruptionBudget
from stowplan.testing.builders import a_node, a_pod
from tests.diagnosis.drawn_applications import DRIVER
from tests.diagnosis.drawn_gangs import KEY
from tests.diagnosis.judged_pods import a_judged_world
from tests.diagnosis.test_special_remedies import profiles as special_profiles
from tests.plugins.nodes.coscheduling.pod_groups import gang, profiles
from tests.plugins.nodes.resource_reservation.reservations import a_driver, needs

AGAINST, CHANGED = "free-room against a budget", "free-room+change-budget"


def a_budget(name: str, allowed: int, **spec: Any) -> PodDisruptionBudget:
    document = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**spec, "selector": {"matchLabels": {"app": name}}},
        "status": {"disruptionsAllowed": allowed},
    }
    return kinds.convert(PodDisruptionBudget, document)


def full_of(name: str, number: int, node: str = "n", **more: Any) -> list[Object]:
    return [a_pod(f"{name}-{at}", cpu=1, node=node, labels={"app": name}, **more) for at in range(number)]


def remedies(*objects: Object) -> dict[str, Remedy]:
    """What helps the gang, by what the table calls it, the best first."""
    world = a_judged_world(objects, (), profiles())
    return {each.ranked_as: each for each in diagnose_group(world.scheduler, KEY).remedies}


def test_pods_that_a_budget_protects_are_left_alone_if_others_do() -> None:
    objects = [a_node("n", cpu=4), *full_of("db", 2), *full_of("web", 2), a_budget("db", 0, minAvailable=2)]
    found = remedies(*objects, *gang("gang", 2))
    assert set(found["free-room"].evicted) == {"default/web-0", "default/web-1"}
    assert AGAINST not in found and CHANGED not in found


def test_the_cheapest_pods_are_not_taken_if_a_budget_protects_them() -> None:
    large = a_pod("large", cpu=2, node="n", labels={"app": "db"})
    objects = [a_node("n", cpu=2), a_node("m", cpu=2), large, *full_of("web", 2, "m"), a_budget("db", 0)]
    found = remedies(*objects, *gang("gang", 2))
    assert set(found["free-room"].evicted) == {"default/web-0", "default/web-1"}


def test_a_deletion_that_ignores_a_budget_says_so_and_comes_after_a_changed_budget() -> None:
    found = remedies(a_node("n", cpu=2), *full_of("db", 2), a_budget("db", 0, minAvailable=2), *gang("gang", 2))
    assert "free-room" not in found
    names = list(found)
    assert names.index(CHANGED) < names.index(AGAINST)
    note = (
        "PodDisruptionBudget default/db protects pod default/db-0: a deletion ignores it, an eviction would be refused"
    )
    assert any(note in each for each in found[AGAINST].also)
    assert found[CHANGED].text.startswith("change minAvailable of PodDisruptionBudget default/db from 2 to 0; delete")
    assert set(found[CHANGED].evicted) == {"default/db-0", "default/db-1"}


def test_a_budget_that_allows_one_of_two_is_named_for_the_other() -> None:
    found = remedies(a_node("n", cpu=2), *full_of("db", 2), a_budget("db", 1, minAvailable=1), *gang("gang", 2))
    assert sum("protects pod" in each for each in found[AGAINST].also) == 1
    assert "from 1 to 0" in found[CHANGED].text


def test_where_deleted_pods_would_go_is_said() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "j", "controller": True}
    owned = full_of("web", 1, "n", owner=owner)
    objects = [a_node("n", cpu=2, labels={"fast": "y"}), a_node("m", cpu=1), *owned, *full_of("lone", 1)]
    found = remedies(*objects, *gang("gang", 2, nodeSelector={"fast": "y"}))
    also = found["free-room"].also
    assert "pod default/web-0 is made again by its owner, and would go to node m" in also
    assert "pod default/lone-0 is gone for good: nothing makes it again" in also


def test_a_workload_is_scaled_down_instead() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "r", "controller": True}
    labels = {"app": "web", "pod-template-hash": "1"}
    pods = [a_pod(f"web-1-{at}", cpu=1, node="n", labels=labels, owner=owner) for at in range(3)]
    document = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 3}}
    deployment = kinds.convert(Deployment, document)
    found = remedies(a_node("n", cpu=3), *pods, deployment, *gang("gang", 2))
    assert found["scale-down"].text.startswith("scale Deployment default/web down from 3 to 1 replicas")
    assert len(found["scale-down"].evicted) == 2
    assert list(found).index("scale-down") < list(found).index("free-room")


@pytest.mark.parametrize("allowed", [0, 1], ids=["protected", "allowed"])
def test_the_room_of_an_application_is_freed_within_budgets(allowed: int) -> None:
    budget = a_budget("db", allowed, minAvailable=1)
    objects = [a_node("n", cpu=4, memory="8Gi"), *full_of("db", 1), budget, a_driver(annotations=needs(3))]
    world = a_judged_world(objects, (), special_profiles())
    found = special_remedies(world.pod(DRIVER), world.scheduler.state, world.scheduler.profiles).remedies
    names = [each.ranked_as for each in found]
    assert (AGAINST in names, CHANGED in names, "free-room" in names) == (allowed == 0, allowed == 0, allowed == 1)
