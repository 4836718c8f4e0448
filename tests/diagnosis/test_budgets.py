"""Disruption budgets: changed by just enough, before pods are deleted against them."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.diagnosis import patches
from stowplan.diagnosis.remedy import PatchObject, Remedy
from stowplan.diagnosis.search import diagnose
from stowplan.embedded.controllers.queries import int_or_percent
from stowplan.objects import kinds
from stowplan.objects.workloads import PodDisruptionBudget
from stowplan.testing.builders import a_node, a_pod, a_profile, a_state

PODS = 4


def a_budget(spec: dict[str, Any], allowed: int = 0, **status: int) -> PodDisruptionBudget:
    document = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {**spec, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed, **status},
    }
    return kinds.convert(PodDisruptionBudget, document)


def remedies(budget: PodDisruptionBudget, cpu: int) -> dict[str, Remedy]:
    """What helps a pod on a full node whose pods the budget protects; what the table calls them, in order."""
    pods = [a_pod(f"web-{at}", cpu=1, node="a", labels={"app": "web"}) for at in range(PODS)]
    state = a_state(nodes=[a_node("a", cpu=PODS)], pods=pods, others=[budget])
    return {each.ranked_as: each for each in diagnose(a_pod(cpu=cpu), state, a_profile()).remedies}


def allowed(spec: dict[str, Any]) -> int:
    """As many as the disruption controller lets go, if all pods are healthy."""
    if "maxUnavailable" in spec:
        return min(int_or_percent(spec["maxUnavailable"], PODS, up=True), PODS)
    return max(PODS - int_or_percent(spec["minAvailable"], PODS, up=True), 0)


def one_step_less(spec: dict[str, Any]) -> dict[str, Any]:
    ((field, value),) = spec.items()
    step = 1 if field == "minAvailable" else -1
    return {field: value + step if isinstance(value, int) else f"{int(value.rstrip('%')) + step}%"}


@pytest.mark.parametrize("cpu", [1, 2, 4])
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"minAvailable": 4}, id="a number of pods that must be there"),
        pytest.param({"minAvailable": "100%"}, id="a share of them"),
        pytest.param({"maxUnavailable": 0}, id="a number of pods that may be missing"),
        pytest.param({"maxUnavailable": "0%"}, id="a share that may be missing"),
    ],
)
@pytest.mark.parametrize("status", [{"currentHealthy": PODS, "expectedPods": PODS}, {}], ids=["counted", "not counted"])
def test_a_budget_is_changed_by_just_enough(spec: dict[str, Any], cpu: int, status: dict[str, int]) -> None:
    budget = a_budget(spec, **status)
    remedy = remedies(budget, cpu)["free-room+change-budget"]
    ((field, _),) = spec.items()
    (patch,) = [each for each in remedy.changes if isinstance(each, PatchObject)]
    assert (patch.kind, patch.key, len(remedy.evicted), remedy.node) == ("PodDisruptionBudget", "default/web", cpu, "a")
    after = patches.patched({"spec": dict(spec)}, patch.operations)["spec"]
    assert set(after) == {field}
    assert allowed(after) >= cpu > allowed(one_step_less(after))


def test_a_deletion_against_a_budget_comes_after_the_change_of_the_budget() -> None:
    names = list(remedies(a_budget({"minAvailable": PODS}), 1))
    assert names.index("free-room+change-budget") < names.index("free-room against a budget")


def test_a_deletion_against_a_budget_says_that_it_ignores_the_budget() -> None:
    remedy = remedies(a_budget({"minAvailable": PODS}), 1)["free-room against a budget"]
    assert remedy.code == "free-room"
    assert "PodDisruptionBudget default/web protects pod default/web-" in remedy.also[-1]
    assert "a deletion ignores it" in remedy.also[-1]


def test_a_budget_that_allows_enough_is_left_alone() -> None:
    assert not {"free-room+change-budget", "free-room against a budget"} & set(
        remedies(a_budget({"minAvailable": 2}, allowed=2), 2)
    )


def test_more_pods_without_a_budget_go_before_one_that_a_budget_protects() -> None:
    pods = [a_pod("kept", cpu=2, node="a", labels={"app": "web"}), *(a_pod(f"p{at}", cpu=1, node="a") for at in (0, 1))]
    state = a_state(nodes=[a_node("a", cpu=4)], pods=pods, others=[a_budget({"minAvailable": 1})])
    (remedy,) = [each for each in diagnose(a_pod(cpu=2), state, a_profile()).remedies if "free-room" in each.code]
    assert set(remedy.evicted) == {"default/p0", "default/p1"}


def test_a_budget_whose_status_lags_behind_is_not_changed() -> None:
    assert "free-room+change-budget" not in remedies(a_budget({"minAvailable": 0}), 1)
