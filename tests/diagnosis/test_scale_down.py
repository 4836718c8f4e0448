"""Workloads that are scaled down: which pods their controllers delete then."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.diagnosis.remedies.scale_down import DELETION_COST, Workload, scaled
from stowplan.diagnosis.remedy import Operation, PatchObject, Remedy
from stowplan.diagnosis.search import diagnose
from stowplan.objects import kinds
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PodDisruptionBudget, ReplicaSet, StatefulSet
from stowplan.testing.builders import a_node, a_pod, a_profile, a_state

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
NODES = [a_node("a", cpu=2), a_node("b", cpu=9, taints=["kept:NoSchedule"])]  # the pod that waits can have a alone
COST = PatchObject("Pod", "default/web-a", (Operation("add", "/metadata/annotations", {DELETION_COST: "-1"}),))


def of(kind: str, name: str, pod: str, node: str, **more: Any) -> Pod:
    owner = {"kind": kind, "name": name, "uid": f"uid-of-{name}", "apiVersion": "apps/v1"}
    return a_pod(pod, cpu=2, node=node, owner=owner, status=more.pop("status", READY), **more)


def web(pod: str, node: str, replica_set: str = "web-5d", **more: Any) -> Pod:
    return of("ReplicaSet", replica_set, pod, node, labels={"pod-template-hash": replica_set[-2:]}, **more)


def scaling(*pods: Pod, others: Any = ()) -> list[Remedy]:
    state = a_state(nodes=NODES, pods=pods, others=others)
    found = diagnose(a_pod(cpu=2, owner={"kind": "Job", "name": "mine", "uid": "m"}), state, a_profile())
    return [each for each in found.remedies if each.code == "scale-down"]


def test_a_deployment_is_scaled_down_and_told_which_pod_may_go() -> None:
    (remedy,) = scaling(web("web-a", "a"), web("web-b", "b"))
    assert remedy.text == "scale Deployment default/web down from 2 to 1 replicas, without pod default/web-a"
    scale = PatchObject("Deployment", "default/web", (Operation("replace", "/spec/replicas", 1),))
    assert (remedy.changes, remedy.node, remedy.evicted) == ((COST, scale), "a", ("default/web-a",))


def test_the_last_pod_needs_no_cost() -> None:
    (remedy,) = scaling(web("web-a", "a"))
    assert remedy.changes == (PatchObject("Deployment", "default/web", (Operation("replace", "/spec/replicas", 0),)),)


def test_a_replica_set_that_is_nobodys_is_scaled_itself_from_the_number_it_asks_for() -> None:
    document = {"metadata": {"name": "web-5d", "namespace": "default"}, "spec": {"replicas": 3}}
    (remedy,) = scaling(web("web-a", "a"), web("web-b", "b"), others=[kinds.convert(ReplicaSet, document)])
    assert remedy.text.startswith("scale ReplicaSet default/web-5d down from 3 to 1 replicas")


def test_pods_that_are_not_ready_go_before_the_one_that_is_in_the_way() -> None:
    (remedy,) = scaling(web("web-a", "a"), web("web-b", "b"), web("web-c", "b", status={"phase": "Running"}))
    assert remedy.evicted == ("default/web-c", "default/web-a")
    assert remedy.changes[-1] == PatchObject("Deployment", "default/web", (Operation("replace", "/spec/replicas", 1),))


def test_a_stateful_set_loses_its_highest_ordinals() -> None:
    (low,) = scaling(of("StatefulSet", "db", "db-0", "a"), of("StatefulSet", "db", "db-1", "b"))
    assert low.evicted == ("default/db-1", "default/db-0")
    assert low.changes == (PatchObject("StatefulSet", "default/db", (Operation("replace", "/spec/replicas", 0),)),)
    (high,) = scaling(of("StatefulSet", "db", "db-0", "b"), of("StatefulSet", "db", "db-1", "a"))
    assert high.evicted == ("default/db-1",)


def numbered(start: int, replicas: int) -> StatefulSet:
    spec = {"replicas": replicas, "ordinals": {"start": start}}
    return kinds.convert(StatefulSet, {"metadata": {"name": "db", "namespace": "default"}, "spec": spec})


@pytest.mark.parametrize(
    ("ordinals", "replicas", "gone", "left"),
    [
        pytest.param((5, 6), 2, ("default/db-6",), 1, id="the highest ordinal goes, and one replica stays"),
        pytest.param((1, 2), 3, ("default/db-2",), 1, id="the highest pod waits, so that it goes first"),
    ],
)
def test_a_stateful_set_may_count_from_another_number(
    ordinals: tuple[int, int], replicas: int, gone: tuple[str, ...], left: int
) -> None:
    low, high = ordinals
    pods = of("StatefulSet", "db", f"db-{low}", "b"), of("StatefulSet", "db", f"db-{high}", "a")
    (remedy,) = scaling(*pods, others=[numbered(low, replicas)])
    scale = PatchObject("StatefulSet", "default/db", (Operation("replace", "/spec/replicas", left),))
    assert (remedy.evicted, remedy.changes) == (gone, (scale,))


@pytest.mark.parametrize(
    ("kind", "pods"),
    [
        pytest.param("a rollout", [web("web-a", "a"), web("web-b", "b", "web-6e")], id="two ReplicaSets share it"),
        pytest.param("gaps", [of("StatefulSet", "db", f"db-{at}", n) for at, n in ((0, "a"), (2, "b"))], id="a gap"),
        pytest.param("Rollout", [of("Rollout", "x", "x-1", "a")], id="nobody knows how it scales"),
    ],
)
def test_what_is_not_certain_is_not_proposed(kind: str, pods: list[Pod]) -> None:
    assert scaling(*pods) == [], kind


def test_of_pods_of_a_job_that_are_equal_all_go() -> None:
    (remedy,) = scaling(of("Job", "j", "j-a", "a"), of("Job", "j", "j-b", "b"))
    assert remedy.evicted == ("default/j-b", "default/j-a")
    assert remedy.text.startswith("scale Job default/j down from 2 to 0 pods at a time")


def test_a_job_loses_its_newest_pod() -> None:
    def aged(name: str, minute: int) -> Pod:
        document = {
            "name": name,
            "namespace": "default",
            "uid": name,
            "creationTimestamp": f"2026-01-01T00:0{minute}:00Z",
        }
        return kinds.convert(Pod, {"metadata": document, "spec": {"nodeName": "a"}, "status": READY})

    old, new = aged("old", 1), aged("new", 2)
    workload = Workload("Job", "default/j", 2, (old, new))
    edit, both = scaled(workload, [new]), scaled(workload, [old])
    assert edit is not None
    assert both is not None
    assert (edit.gone, both.gone) == (("default/new",), ("default/new", "default/old"))
    assert edit.changes == (PatchObject("Job", "default/j", (Operation("replace", "/spec/parallelism", 1),)),)


def test_siblings_of_the_pod_come_last() -> None:
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "w", "apiVersion": "apps/v1"}
    pods = [a_pod("sibling", cpu=2, node="a", owner=owner), a_pod("other", cpu=4, node="b")]
    state = a_state(nodes=[a_node("a", cpu=2), a_node("b", cpu=4)], pods=pods)
    found = diagnose(a_pod(cpu=2, owner=owner), state, a_profile()).remedies
    assert found[-1].ranked_as == "free-room of siblings"
    assert found[-1].evicted == ("default/sibling",)
    assert found[-1].also[-1].endswith("this only moves the problem")
    assert ("default/other",) in [each.evicted for each in found]
    assert "scale-down" not in {each.code for each in found}


def test_a_stateful_set_counts_pods_that_have_no_node() -> None:
    document = {"metadata": {"name": "db", "namespace": "default"}, "spec": {"replicas": 4}}
    pods = [of("StatefulSet", "db", f"db-{at}", node) for at, node in ((1, "b"), (2, "b"), (3, "a"))]
    (remedy,) = scaling(*pods, others=[kinds.convert(StatefulSet, document)])
    assert remedy.evicted == ("default/db-3",)
    assert remedy.changes == (PatchObject("StatefulSet", "default/db", (Operation("replace", "/spec/replicas", 3),)),)


def test_a_stateful_set_that_does_not_count_from_0_is_not_scaled() -> None:
    document = {"metadata": {"name": "db", "namespace": "default"}, "spec": {"replicas": 2}}
    pods = [of("StatefulSet", "db", f"db-{at}", node) for at, node in ((5, "b"), (6, "a"))]
    assert scaling(*pods, others=[kinds.convert(StatefulSet, document)]) == []


WEB = {"kind": "ReplicaSet", "name": "web", "uid": "w", "apiVersion": "apps/v1"}


def test_a_priority_that_only_evicts_siblings_is_not_proposed() -> None:
    state = a_state(nodes=[a_node("a", cpu=2)], pods=[a_pod("sibling", cpu=2, node="a", owner=WEB)])
    found = diagnose(a_pod(cpu=2, owner=WEB), state, a_profile()).remedies
    assert "raise-priority" not in {each.code for each in found}


def test_a_priority_that_evicts_a_sibling_among_others_comes_last() -> None:
    pods = [a_pod("sibling", cpu=2, node="a", owner=WEB), a_pod("other", cpu=2, node="a")]
    state = a_state(nodes=[a_node("a", cpu=4)], pods=pods)
    found = diagnose(a_pod(cpu=4, owner=WEB), state, a_profile()).remedies
    (remedy,) = [each for each in found if each.code == "raise-priority"]
    assert remedy.ranked_as == "free-room of siblings"
    assert remedy.also == ("its own owner makes default/sibling again: this only moves the problem",)


def test_a_sibling_that_a_budget_protects_is_told_both() -> None:
    budget = {"metadata": {"name": "keep", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "w"}}}}
    pods = [a_pod("sibling", cpu=2, node="a", owner=WEB, labels={"app": "w"})]
    state = a_state(nodes=[a_node("a", cpu=2)], pods=pods, others=[kinds.convert(PodDisruptionBudget, budget)])
    found = [each for each in diagnose(a_pod(cpu=2, owner=WEB), state, a_profile()).remedies if each.evicted]
    (deleting,) = [each for each in found if each.code == "free-room"]
    assert deleting.ranked_as == "free-room of siblings"
    assert "only moves the problem" in deleting.also[-1]
    assert "PodDisruptionBudget default/keep protects" in deleting.also[-1]
    assert all("free-room of siblings" in each.ranked_as for each in found)
