"""Is a remedy found whenever one change helps? An exhaustive search on small clusters says which pods these are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count

import pytest

from stowplan.diagnosis.remedies.free_room import FREE_ROOM
from stowplan.diagnosis.remedy import Remedy
from stowplan.diagnosis.search import diagnose
from stowplan.objects.errors import StowplanError
from tests.diagnosis.exhaustive import fits, fits_when_empty, one_change_that_helps, priority_that_helps
from tests.diagnosis.exhaustive_storage import Scenario
from tests.oracle.draw.__main__ import scenarios
from tests.oracle.remedies import loaded

CATEGORIES = (
    *("pending", "everything-mixed", "taints", "node-affinity", "topology-spread", "node-name-ports"),
    *("pending-storage", "pending-full", "volumes", "preemption"),
)
KINDS = {
    "room of several pods": ("room on ",),
    "claims and volumes": ("claim ", "create "),
    "more nodes": ("1 more", "2 more", "3 more"),
    "priority": ("allow preemption", "the highest priority"),
}


def pending(seed: int, category: str, number: int) -> Iterator[Scenario]:
    """Yield drawn scenarios whose pod has no node; what cannot be read, or decided, is left out."""
    for scenario in scenarios(category, number, seed):
        try:
            if scenario["cluster"]["nodes"] and not fits(scenario):
                yield scenario
        except StowplanError:
            continue


def is_single(remedy: Remedy) -> bool:
    """True if a remedy is one change: one object, and one kind of change; or room that several pods leave."""
    return "+" not in remedy.code and (len(remedy.changes) == 1 or remedy.code == FREE_ROOM)


def kind_of(change: str) -> str:
    """Return what kind of change these words are about, if it is one of those that are tried last."""
    return next((kind for kind, starts in KINDS.items() if change.startswith(starts)), "others")


def check(found: Iterator[Scenario], wanted: int) -> Counter[str]:
    """Assert that 99 % of the pods that one change helps get a remedy of one change, and that no "never" is refuted.

    Return how many of the pods each kind of change helps, where kinds that come before do not. Priority comes last, and
    whom it helps the room of several pods mostly helps, too; so it counts wherever none of the first kinds helps.
    """
    helped, missed, refuted, kinds = 0, list[str](), list[str](), Counter[str]()
    for scenario in found:
        state, pod, profiles = loaded(scenario)
        diagnosis = diagnose(pod, state, profiles[pod.scheduler_name], profiles=profiles)
        if diagnosis.never and (fits_when_empty(scenario) or one_change_that_helps(scenario, cluster_only=True)):
            refuted.append(f"{scenario['id']}: {diagnosis.never}")
        change = one_change_that_helps(scenario)
        helped += bool(change)
        kind = kind_of(change)
        kinds.update([kind] if change else [])
        if kind in KINDS and kind != "priority":
            kinds["priority"] += bool(priority_that_helps(scenario))
        kinds["never"] += bool(diagnosis.never)
        if change and not any(map(is_single, diagnosis.remedies)):
            missed.append(f"{scenario['id']}: {change}; offered: {[each.text for each in diagnosis.remedies]}")
        if helped >= wanted:
            break
    assert refuted == []
    assert helped >= wanted, f"only {helped} pods were drawn that one change helps"
    assert len(missed) <= helped // 100, missed
    return kinds


def test_a_pod_that_one_change_helps_gets_a_remedy_of_one_change() -> None:
    check((each for category in CATEGORIES for each in pending(1, category, 8)), 20)


@pytest.mark.full
def test_500_pods_that_one_change_helps_get_remedies_of_one_change() -> None:
    drawn = (each for seed in count(2) for category in CATEGORIES for each in pending(seed, category, 40))
    kinds = check(drawn, 500)
    print(kinds)  # noqa: T201
    assert all(kinds[each] >= 10 for each in KINDS), kinds
