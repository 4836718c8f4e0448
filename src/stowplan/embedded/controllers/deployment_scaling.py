"""The number of replicas that each ReplicaSet of a Deployment should have next."""

from __future__ import annotations

from stowplan.embedded.controllers.queries import int_or_percent
from stowplan.embedded.documents import Document


def surge(deployment: Document) -> int:
    """The number of pods that may exist beyond the desired replicas."""
    rolling = deployment["spec"]["strategy"].get("rollingUpdate")
    return int_or_percent(rolling["maxSurge"], deployment["spec"]["replicas"], up=True) if rolling else 0


def unavailable(deployment: Document) -> int:
    """The number of desired replicas that may be unavailable; at least one if no surge is allowed."""
    replicas = int(deployment["spec"]["replicas"])
    rolling = deployment["spec"]["strategy"].get("rollingUpdate")
    found = int_or_percent(rolling["maxUnavailable"], replicas, up=False) if rolling else 0
    return min(found if found or surge(deployment) else 1, replicas)


def new_set_replicas(deployment: Document, new: Document | None, old: list[Document]) -> int:
    """The replicas of the new ReplicaSet."""
    desired = int(deployment["spec"]["replicas"])
    current = int(new["spec"]["replicas"]) if new else 0
    others = sum(int(each["spec"]["replicas"]) for each in old)
    if deployment["spec"]["strategy"]["type"] == "Recreate":
        return 0 if others and new is None else desired if not others else current
    if current > desired:
        return desired
    free = desired + surge(deployment) - current - others
    return current + min(max(free, 0), desired - current)


def old_set_replicas(deployment: Document, new: Document, old: list[Document]) -> list[tuple[Document, int]]:
    """The replicas of the old ReplicaSets: unavailable pods are removed first, then as many as the rest can spare."""
    old = [each for each in old if each["spec"]["replicas"]]
    least = deployment["spec"]["replicas"] - unavailable(deployment)
    total = sum(each["spec"]["replicas"] for each in (new, *old))
    spare = total - least - (new["spec"]["replicas"] - _available(new))
    targets = [each["spec"]["replicas"] for each in old]
    for index, each in enumerate(old):
        cut = min(max(spare, 0), max(targets[index] - _available(each), 0))
        targets[index] -= cut
        spare -= cut
    spare = min(spare, sum(_available(each) for each in (new, *old)) - least)
    for index in range(len(old)):
        cut = min(max(spare, 0), targets[index])
        targets[index] -= cut
        spare -= cut
    return list(zip(old, targets, strict=True))


def _available(replica_set: Document) -> int:
    return int(replica_set.get("status", {}).get("availableReplicas", 0))
