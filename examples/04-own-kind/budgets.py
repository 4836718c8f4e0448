"""Give each team a budget of pods, kept in objects of a kind of its own: TeamBudget."""

from collections.abc import Iterator, Sequence

from stowplan.plugin import (
    ApiValue,
    Cluster,
    CustomResource,
    Object,
    Patch,
    Pod,
    RejectPod,
    Wake,
    pods_with,
    status_patch,
)


class TeamBudgetSpec(ApiValue, frozen=True):
    max_pods: int = 0  # maxPods in the API


class TeamBudgetStatus(ApiValue, frozen=True):
    used_pods: int | None = None  # None: not written yet


class TeamBudget(Object, frozen=True):
    spec: TeamBudgetSpec = TeamBudgetSpec()
    status: TeamBudgetStatus = TeamBudgetStatus()


class Budgets:
    """A pod with the label `team` needs a TeamBudget of that name in its namespace, with room for one more pod."""

    reads = (CustomResource(TeamBudget, group="example.com", version="v1", plural="teambudgets", writes=("status",)),)
    reconciles = ("TeamBudget", "Pod")

    def __init__(self, label: str = "team") -> None:
        self.label = label

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | None:
        team = pod.labels.get(self.label)
        if team is None:
            return None
        budget = cluster.get(TeamBudget, f"{pod.namespace}/{team}")
        if budget is None:
            return RejectPod(f"there is no TeamBudget {team}", resolvable=False)
        used = self._used(pod.namespace, team, cluster)
        if used >= budget.spec.max_pods:
            return RejectPod(f"team {team} uses {used} of {budget.spec.max_pods} pods", resolvable=False)
        return None

    # -- when to try a rejected pod again

    def wakes_on(self) -> Iterator[Wake]:
        yield Wake("TeamBudget", ("Add", "Update"), hint="raises_its_budget")
        yield Wake("AssignedPod", ("Delete",), hint="is_of_its_team")

    def raises_its_budget(self, pod: Pod, old: TeamBudget | None, new: TeamBudget) -> bool:
        more = old is None or new.spec.max_pods > old.spec.max_pods
        return more and (new.namespace, new.name) == (pod.namespace, pod.labels.get(self.label))

    def is_of_its_team(self, pod: Pod, old: Pod, _: None) -> bool:
        return (old.namespace, old.labels.get(self.label)) == (pod.namespace, pod.labels.get(self.label))

    # -- the status of the budgets

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Patch]:  # noqa: ARG002
        for budget in cluster.every(TeamBudget).values():
            used = self._used(budget.namespace, budget.name, cluster)
            if budget.status.used_pods != used:
                yield status_patch(budget, {"usedPods": used})

    def _used(self, namespace: str, team: str, cluster: Cluster) -> int:
        return int(cluster.nodes.count(pods_with({self.label: team}, [namespace])).sum())
