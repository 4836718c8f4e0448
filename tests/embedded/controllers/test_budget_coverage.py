"""Which pods a disruption budget covers: found by a label, and the same as by looking at every pair."""

from __future__ import annotations

import random
from typing import Any

from stowplan.embedded.controllers.budget_coverage import BudgetCoverage
from stowplan.embedded.store import DocumentStore
from stowplan.embedded.validation.workloads import selector
from stowplan.objects import selectors

BUDGETS = "poddisruptionbudgets.policy"
SELECTORS: list[Any] = [
    {"matchLabels": {"app": "a"}},
    {"matchLabels": {"app": "b", "tier": "x"}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]},
    {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}], "matchLabels": {"tier": "y"}},
    {"matchExpressions": [{"key": "app", "operator": "Nonsense", "values": ["a"]}]},
    {},
    None,
]


def test_it_is_what_every_pair_says_after_any_changes() -> None:
    draw, store = random.Random(1), DocumentStore()
    coverage = BudgetCoverage(store, BUDGETS)
    store.listeners.append(coverage.change)
    seen = 0
    for _ in range(400):
        _change(draw, store)
        for stored in store.all("pods"):
            pod = stored.document
            covering = [key for key in _keys(store, BUDGETS) if _covers(store, key, pod)]
            assert coverage.budgets_of(pod) == covering
            seen += len(covering)
        for key in _keys(store, BUDGETS):
            covered = [each.document for each in store.all("pods") if _covers(store, key, each.document)]
            assert coverage.pods_of(key) == covered
        assert BudgetCoverage(store, BUDGETS).pods_of("a/0") == coverage.pods_of("a/0")
    assert seen > 1000 and coverage.pods_of("a/none") == []


def _change(draw: random.Random, store: DocumentStore) -> None:
    collection, namespace = draw.choice(("pods", BUDGETS)), draw.choice("ab")
    key = f"{namespace}/{draw.randrange(6)}"
    metadata: dict[str, Any] = {"namespace": namespace, "name": key.rpartition("/")[2]}
    if draw.random() < 0.2:
        if store.get(collection, key) is not None:
            store.remove(collection, key)
    elif collection == "pods":
        found = {"app": draw.choice("abc"), "tier": draw.choice("xy")}
        labels = {name: found[name] for name in found if draw.random() < 0.7}
        store.put(collection, key, {"metadata": {**metadata, **({"labels": labels} if labels else {})}})
    else:
        store.put(collection, key, {"metadata": metadata, "spec": {"selector": draw.choice(SELECTORS)}})


def _keys(store: DocumentStore, name: str) -> list[str]:
    return sorted(store.collection(name).items)


def _covers(store: DocumentStore, key: str, pod: Any) -> bool:
    budget = store.get(BUDGETS, key)
    assert budget is not None
    inside = budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return inside and selectors.matches(selector(budget["spec"]["selector"]), pod["metadata"].get("labels", {}))
