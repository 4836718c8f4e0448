"""PodDisruptionBudgets: the number of pods that may be disrupted now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import Action, SetStatus
from stowplan.embedded.controllers.budget_coverage import BudgetCoverage
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange

BUDGETS = "poddisruptionbudgets.policy"
_SCALES = {
    "ReplicaSet": "replicasets.apps", "StatefulSet": "statefulsets.apps",
    "ReplicationController": "replicationcontrollers", "Deployment": "deployments.apps",
}  # fmt: skip


class DisruptionController:
    def __init__(self, store: DocumentStore) -> None:
        self._store, self._coverage = store, BudgetCoverage(store, BUDGETS)

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        self._coverage.change(change)
        if change.collection == BUDGETS:
            return (change.key,)
        return self._coverage.budgets_of(change.document) if change.collection == "pods" else ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        budget = self._store.get(BUDGETS, key)
        if budget is None:
            return
        pods = [pod for pod in self._coverage.pods_of(key) if queries.phase(pod) not in ("Succeeded", "Failed")]
        disrupted = budget.get("status", {}).get("disruptedPods", {})
        by_name = {pod["metadata"]["name"]: pod for pod in pods}
        disrupted = {
            name: when for name, when in disrupted.items() if name in by_name and not queries.terminating(by_name[name])
        }
        healthy = sum(
            queries.ready(pod) and not queries.terminating(pod) and pod["metadata"]["name"] not in disrupted
            for pod in pods
        )
        expected, needed = self._needed(budget, pods)
        allowed = max(healthy - needed, 0) if expected else 0
        status = _status(budget, allowed, healthy, needed, expected, now)
        if disrupted:
            status["disruptedPods"] = disrupted
        if status != budget.get("status"):
            yield SetStatus(BUDGETS, key, budget["metadata"]["uid"], status)

    def _needed(self, budget: Document, pods: list[Document]) -> tuple[int, int]:
        """The number of expected pods, and the number of them that must be healthy."""
        spec = budget["spec"]
        if "maxUnavailable" in spec:
            expected = self._expected(pods)
            return expected, max(expected - queries.int_or_percent(spec["maxUnavailable"], expected, up=True), 0)
        least = spec.get("minAvailable", 1)
        if isinstance(least, int):
            return len(pods), least
        expected = self._expected(pods)
        return expected, queries.int_or_percent(least, expected, up=True)

    def _expected(self, pods: list[Document]) -> int:
        """The desired replicas of the owners of these pods, in sum."""
        owners: dict[str, int] = {}
        for pod in pods:
            owner = queries.controller_of(pod)
            if owner is not None and owner["kind"] in _SCALES:
                key = f"{pod['metadata']['namespace']}/{owner['name']}"
                found = self._store.get(_SCALES[owner["kind"]], key)
                deployment_key = queries.owner_key(found, "Deployment")
                deployment = self._store.get("deployments.apps", deployment_key) if deployment_key else None
                scaled = deployment or found
                if scaled is not None:
                    owners[scaled["metadata"]["uid"]] = scaled["spec"].get("replicas", 1)
        return sum(owners.values())


def _status(budget: Document, allowed: int, healthy: int, needed: int, expected: int, now: float) -> Document:
    words = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    generation = budget["metadata"]["generation"]
    conditions = queries.with_condition(
        budget.get("status", {}).get("conditions", []), "DisruptionAllowed", words[0], now, words[1], "",
        observedGeneration=generation,
    )  # fmt: skip
    return {
        "conditions": conditions, "currentHealthy": healthy, "desiredHealthy": needed, "disruptionsAllowed": allowed,
        "expectedPods": expected, "observedGeneration": generation,
    }  # fmt: skip
