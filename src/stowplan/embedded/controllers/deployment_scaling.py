"""How many pods each ReplicaSet of a Deployment should have next."""

from __future__ import annotations

from typing import Any, TypeAlias

from stowplan.embedded.controllers.queries import share

Document: TypeAlias = dict[str, Any]


def surge(deployment: Document) -> int:
    """Pods beyond those that are wanted."""
    rolling = deployment["spec"]["strategy"].get("rollingUpdate")
    return share(rolling["maxSurge"], deployment["spec"]["replicas"], up=True) if rolling else 0


def unavailable(deployment: Document) -> int:
    """Wanted pods that may be missing; one at least if none can be made beforehand."""
    replicas = int(deployment["spec"]["replicas"])
    rolling = deployment["spec"]["strategy"].get("rollingUpdate")
    found = share(rolling["maxUnavailable"], replicas, up=False) if rolling else 0
    return min(found if found or surge(deployment) else 1, replicas)


def grown(deployment: Document, new: Document | None, old: list[Document]) -> int:
    """Of the new set."""
    wanted = int(deployment["spec"]["replicas"])
    present = int(new["spec"]["replicas"]) if new else 0
    others = sum(int(each["spec"]["replicas"]) for each in old)
    if deployment["spec"]["strategy"]["type"] == "Recreate":
        return 0 if others and new is None else wanted if not others else present
    if present > wanted:
        return wanted
    room = wanted + surge(deployment) - present - others
    return present + min(max(room, 0), wanted - present)


def shrunk(deployment: Document, new: Document, old: list[Document]) -> list[tuple[Document, int]]:
    """Old sets give up pods: those that are not available first, then as many as the rest can spare."""
    old = [each for each in old if each["spec"]["replicas"]]
    least = deployment["spec"]["replicas"] - unavailable(deployment)
    total = sum(each["spec"]["replicas"] for each in (new, *old))
    spare = total - least - (new["spec"]["replicas"] - _available(new))
    targets = [each["spec"]["replicas"] for each in old]
    for place, each in enumerate(old):
        cut = min(max(spare, 0), max(targets[place] - _available(each), 0))
        targets[place] -= cut
        spare -= cut
    spare = min(spare, sum(_available(each) for each in (new, *old)) - least)
    for place in range(len(old)):
        cut = min(max(spare, 0), targets[place])
        targets[place] -= cut
        spare -= cut
    return list(zip(old, targets, strict=True))


def _available(replica_set: Document) -> int:
    return int(replica_set.get("status", {}).get("availableReplicas", 0))
