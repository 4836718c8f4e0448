"""The status of a Deployment: its counts and its conditions Available, Progressing and ReplicaFailure."""

from __future__ import annotations

from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.deployment_scaling import unavailable
from stowplan.embedded.documents import Document
from stowplan.embedded.timestamps import seconds, stamp

SET_REFUSED = "ReplicaSetCreateError"
_FAILURE = "ReplicaFailure"


def refused_status(deployment: Document, message: str, now: float) -> Document:
    """The status of a Deployment whose ReplicaSet was refused."""
    condition = {"type": "Progressing", "status": "False", "reason": SET_REFUSED, "message": message}
    before = deployment.get("status", {})
    return {**before, "conditions": _set(list(before.get("conditions", ())), condition, now)}


def status_of(
    deployment: Document, new: Document | None, old: list[Document], now: float
) -> tuple[Document, float | None]:
    """The status, and the seconds after which it may change without another event."""
    sets = [*old, new] if new is not None else old
    desired, metadata = deployment["spec"]["replicas"], deployment["metadata"]
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
    least = desired - unavailable(deployment)
    conditions = _set(conditions, _availability(counts["availableReplicas"] >= least), now)
    progressing, again = _progressing(deployment, new, counts, before, now)
    if progressing is not None:
        conditions = _set(conditions, progressing, now)
    status["conditions"] = _with_failure(conditions, [new, *old] if new is not None else old, now)
    return status, again


def _with_failure(conditions: list[Document], sets: list[Document], now: float) -> list[Document]:
    """The conditions with the first failure of a ReplicaSet; the newest set comes first."""
    failures = (condition for each in sets if (condition := queries.condition(each, _FAILURE)) is not None)
    found = next(failures, None)
    if found is None:
        return [each for each in conditions if each["type"] != _FAILURE]
    failure = {name: found[name] for name in ("type", "status", "reason", "message")}
    known = next((each for each in conditions if each["type"] == _FAILURE), None)
    if known is not None and all(known[part] == failure[part] for part in ("status", "reason")):
        return conditions
    return _set(conditions, failure, now)


def _sum(sets: list[Document], name: str) -> int:
    return sum(each.get("status", {}).get(name, 0) for each in sets)


def _availability(available: bool) -> Document:
    if available:
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
    name, desired = new["metadata"]["name"], deployment["spec"]["replicas"]
    condition = {"type": "Progressing", "status": "True"}
    complete = counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == desired
    if complete:
        message = f'ReplicaSet "{name}" has successfully progressed.'
        return {**condition, "reason": "NewReplicaSetAvailable", "message": message}, None
    old = next((each for each in before.get("conditions", ()) if each["type"] == "Progressing"), None)
    progressed = any(
        counts[each] > before.get(each, 0) for each in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    progressed = progressed or counts["replicas"] - counts["updatedReplicas"] < before.get("replicas", 0) - before.get(
        "updatedReplicas", 0
    )
    if old is None or (not progressed and f'"{name}"' not in old.get("message", "")):
        return {**condition, "reason": "NewReplicaSetCreated", "message": f'Created new replica set "{name}"'}, None
    if progressed:
        message = f'ReplicaSet "{name}" is progressing.'
        return {**condition, "reason": "ReplicaSetUpdated", "message": message, "lastUpdateTime": stamp(now)}, None
    return _without_progress(deployment, name, old, now)


def _without_progress(
    deployment: Document, name: str, old: Document, now: float
) -> tuple[Document | None, float | None]:
    """Without progress: wait for the progress deadline, then report that it was exceeded."""
    if old["reason"] in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        return None, None
    left = seconds(old.get("lastUpdateTime", "")) + deployment["spec"].get("progressDeadlineSeconds", 600) - now
    if left > 0:
        return None, left
    message = f'ReplicaSet "{name}" has timed out progressing.'
    return {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": message}, None


def _set(conditions: list[Document], new: Document, now: float) -> list[Document]:
    """Set a condition. Those of Deployments also have a lastUpdateTime."""
    old = next((each for each in conditions if each["type"] == new["type"]), None)
    if old is not None and all(old.get(part) == new[part] for part in ("status", "reason", "message")):
        same = "lastUpdateTime" not in new or old.get("lastUpdateTime") == new["lastUpdateTime"]
        if same:
            return conditions
    stamped = {"lastUpdateTime": stamp(now), "lastTransitionTime": stamp(now), **new}
    if old is not None and old["status"] == new["status"]:
        stamped["lastTransitionTime"] = old.get("lastTransitionTime", stamped["lastTransitionTime"])
    return [stamped if each is old else each for each in conditions] if old else [*conditions, stamped]
