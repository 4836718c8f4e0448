"""PodDisruptionBudgets in the eviction API."""

from __future__ import annotations

from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError, too_many_requests
from stowplan.embedded.timestamps import stamp
from stowplan.embedded.validation.workloads import selector
from stowplan.objects import selectors

COLLECTION = "poddisruptionbudgets.policy"


def protecting(api: Api, pod: Document) -> list[Document]:
    """The budgets whose selector matches a pod."""
    labels = pod["metadata"].get("labels", {})
    found = [stored.document for stored in api.store.all(COLLECTION, pod["metadata"]["namespace"])]
    return [budget for budget in found if selectors.matches(selector(budget["spec"].get("selector")), labels)]


class EvictionBudgets:
    def __init__(self, api: Api) -> None:
        self._api = api

    def apply_to(self, pod: Document) -> bool:
        """True if budgets protect a pod: not if it is finished, pending or terminating."""
        if pod.get("status", {}).get("phase") in ("Succeeded", "Failed", "Pending"):
            return False
        return "deletionTimestamp" not in pod["metadata"]

    def consume(self, pod: Document, options: RequestOptions) -> None:
        """Take one disruption from the budget of a pod. Raises 429 if none is allowed."""
        budgets = protecting(self._api, pod)
        if len(budgets) > 1:
            why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise ApiError(422, "Invalid", why)  # 500 in Kubernetes, although it is not an internal error
        for budget in budgets:
            self._consume_one(budget, pod, options)

    def _consume_one(self, budget: Document, pod: Document, options: RequestOptions) -> None:
        status = budget.get("status", {})
        name = budget["metadata"]["name"]
        if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
            cause = {"reason": "DisruptionBudget", "message": f"The disruption budget {name} is still being processed"}
            raise too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", [cause])
        if status.get("disruptionsAllowed", 0) <= 0:
            needs = f"needs {status.get('desiredHealthy', 0)} healthy pods and has {status.get('currentHealthy', 0)}"
            cause = {"reason": "DisruptionBudget", "message": f"The disruption budget {name} {needs} currently"}
            raise too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", [cause])
        disrupted = {**status.get("disruptedPods", {}), pod["metadata"]["name"]: stamp(options.now)}
        left = {**status, "disruptionsAllowed": status["disruptionsAllowed"] - 1, "disruptedPods": disrupted}
        resource = self._api.catalogue.find("policy", "v1", "poddisruptionbudgets")
        assert resource is not None
        self._api.write(resource, {**budget, "status": left}, options)
