"""Remedies judged by kube-scheduler's own code: the pod fits with the remedy, and with one step less it does not."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import pytest

from tests.oracle.__main__ import build
from tests.oracle.remedies import Scenario, drawn, judge, recorded

HIGHEST = 1_000_000_000  # of users: nothing evicts such pods
CATEGORIES = ("pending", "everything-mixed", "resources", "volumes", "misc")


def is_pending(scenario: Scenario) -> bool:
    return not scenario["expect"].get("best") and "error" not in scenario["expect"]


def check(count: int, seed: int, wanted: int) -> None:
    """Judge the remedies of pods that are drawn until so many of them are pending."""
    recorder = build()
    if recorder is None:
        pytest.skip("no Go on this machine, so the recorder of kube-scheduler's decisions cannot be built")
    by_category = [[*filter(is_pending, drawn(recorder, count, seed, [each]))] for each in CATEGORIES]
    in_turn = [each for row in zip_longest(*by_category) for each in row if each is not None]
    found = in_turn[:wanted]
    assert len(found) == wanted, f"only {len(found)} pending pods were drawn"
    verdicts = judge(found, recorded(recorder))
    assert verdicts.pods == wanted
    assert verdicts.problems == []
    assert verdicts.helped > wanted * 3 // 4


def test_100_drawn_pods_have_sound_and_minimal_remedies() -> None:
    check(70, 1, 100)


def test_budgets_and_workloads_that_are_scaled_down_are_judged_too() -> None:
    recorder = build()
    if recorder is None:
        pytest.skip("no Go on this machine, so the recorder of kube-scheduler's decisions cannot be built")
    verdicts = judge([owned("ReplicaSet"), owned("StatefulSet"), owned("Job"), protected()], recorded(recorder))
    assert verdicts.problems == []
    assert verdicts.codes["scale-down"] == 3
    assert verdicts.codes["free-room+change-budget"] == 1


def owned(kind: str) -> Scenario:
    """A node that is full of pods of one workload."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "w", "controller": True}
    pods = [
        a_pod(f"web-{at}", "1", {"ownerReferences": [owner], **aged(at)}, nodeName="n", priority=HIGHEST)
        for at in range(4)
    ]
    return {"id": kind, "cluster": {"nodes": [a_node("n", "4")], "pods": pods}, "pod": a_pod("new", "2"), "expect": {}}


def aged(minutes: int) -> dict[str, str]:
    return {"creationTimestamp": f"2026-01-01T00:0{minutes}:00Z"}


def protected() -> Scenario:
    """A node that is full of pods that a budget protects."""
    pods = [a_pod(f"web-{at}", "1", {"labels": {"app": "web"}}, nodeName="n", priority=HIGHEST) for at in range(4)]
    spec = {"minAvailable": "100%", "selector": {"matchLabels": {"app": "web"}}}
    status = {"disruptionsAllowed": 0, "currentHealthy": 4, "desiredHealthy": 4, "expectedPods": 4}
    budget = {"metadata": {"name": "web", "namespace": "default"}, "spec": spec, "status": status}
    cluster = {"nodes": [a_node("n", "4")], "pods": pods, "podDisruptionBudgets": [budget]}
    return {"id": "protected", "cluster": cluster, "pod": a_pod("new", "2"), "expect": {}}


def a_node(name: str, cpu: str) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {"metadata": {"name": name}, "spec": {}, "status": {"allocatable": amounts, "capacity": amounts}}


def a_pod(name: str, cpu: str, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": cpu}}}
    about = {"name": name, "namespace": "default", "uid": name, **(metadata or {})}
    return {"metadata": about, "spec": {"containers": [container], **spec}}


@pytest.mark.full
def test_1000_drawn_pods_have_sound_and_minimal_remedies() -> None:
    check(550, 2, 1000)
