"""What a Deployment says of itself: its counts, and whether it is available and getting on."""

from __future__ import annotations

from typing import Any, TypeAlias

from stowplan.embedded.controllers.deployment_scaling import unavailable
from stowplan.embedded.timestamps import seconds, stamp

Document: TypeAlias = dict[str, Any]


def reported(
    deployment: Document, new: Document | None, old: list[Document], now: float
) -> tuple[Document, float | None]:
    """The status, and after how many seconds it may change by time alone."""
    sets = [*old, new] if new is not None else old
    wanted, metadata = deployment["spec"]["replicas"], deployment["metadata"]
    counts = {
        "replicas": _sum(sets, "replicas"), "updatedReplicas": _sum([new] if new else [], "replicas"),
        "readyReplicas": _sum(sets, "readyReplicas"), "availableReplicas": _sum(sets, "availableReplicas"),
    }  # fmt: skip
    counts["unavailableReplicas"] = max(sum(each["spec"]["replicas"] for each in sets) - counts["availableReplicas"], 0)
    status: Document = {name: count for name, count in counts.items() if count}
    status["terminatingReplicas"] = _sum(sets, "terminatingReplicas")
    status["observedGeneration"] = metadata["generation"]
    before = deployment.get("status", {})
    conditions = list(before.get("conditions", ()))
    least = wanted - unavailable(deployment)
    conditions = _set(conditions, _availability(counts["availableReplicas"] >= least), now)
    progressing, again = _progressing(deployment, new, counts, before, now)
    if progressing is not None:
        conditions = _set(conditions, progressing, now)
    status["conditions"] = conditions
    return status, again


def _sum(sets: list[Document], name: str) -> int:
    return sum(each.get("status", {}).get(name, 0) for each in sets)


def _availability(fine: bool) -> Document:
    if fine:
        words = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        words = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return dict(zip(("status", "reason", "message"), words, strict=True)) | {"type": "Available"}


def _progressing(
    deployment: Document, new: Document | None, counts: dict[str, int], before: Document, now: float
) -> tuple[Document | None, float | None]:
    if deployment["spec"].get("paused"):
        words = ("Unknown", "DeploymentPaused", "Deployment is paused")
        return dict(zip(("status", "reason", "message"), words, strict=True)) | {"type": "Progressing"}, None
    if new is None:
        return None, None
    name, wanted = new["metadata"]["name"], deployment["spec"]["replicas"]
    condition = {"type": "Progressing", "status": "True"}
    complete = counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted
    if complete:
        told = f'ReplicaSet "{name}" has successfully progressed.'
        return {**condition, "reason": "NewReplicaSetAvailable", "message": told}, None
    old = next((each for each in before.get("conditions", ()) if each["type"] == "Progressing"), None)
    moved = any(
        counts[each] > before.get(each, 0) for each in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    moved = moved or counts["replicas"] - counts["updatedReplicas"] < before.get("replicas", 0) - before.get(
        "updatedReplicas", 0
    )
    if old is None or (not moved and f'"{name}"' not in old.get("message", "")):
        return {**condition, "reason": "NewReplicaSetCreated", "message": f'Created new replica set "{name}"'}, None
    if moved:
        told = f'ReplicaSet "{name}" is progressing.'
        return {**condition, "reason": "ReplicaSetUpdated", "message": told, "lastUpdateTime": stamp(now)}, None
    return _timed(deployment, name, old, now)


def _timed(deployment: Document, name: str, old: Document, now: float) -> tuple[Document | None, float | None]:
    """Nothing moves: wait until the deadline, then say so."""
    if old["reason"] in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        return None, None
    left = seconds(old.get("lastUpdateTime", "")) + deployment["spec"].get("progressDeadlineSeconds", 600) - now
    if left > 0:
        return None, left
    told = f'ReplicaSet "{name}" has timed out progressing.'
    return {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": told}, None


def _set(conditions: list[Document], new: Document, now: float) -> list[Document]:
    """Unlike other kinds' conditions these say when they were last updated, too."""
    old = next((each for each in conditions if each["type"] == new["type"]), None)
    if old is not None and all(old.get(part) == new[part] for part in ("status", "reason", "message")):
        same = "lastUpdateTime" not in new or old.get("lastUpdateTime") == new["lastUpdateTime"]
        if same:
            return conditions
    stamped = {"lastUpdateTime": stamp(now), "lastTransitionTime": stamp(now), **new}
    if old is not None and old["status"] == new["status"]:
        stamped["lastTransitionTime"] = old.get("lastTransitionTime", stamped["lastTransitionTime"])
    return [stamped if each is old else each for each in conditions] if old else [*conditions, stamped]
