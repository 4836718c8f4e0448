"""Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, budgets."""

from __future__ import annotations

from typing import Any, TypeAlias

from stowplan.embedded.tables.columns import Row, Sheet, columns, containers, selector_text
from stowplan.embedded.timestamps import age, seconds, span

Document: TypeAlias = dict[str, Any]

_WIDE = ("Containers", "Images", "Selector")


def _parts(document: Document, now: float) -> tuple[str, str, Document, Document]:
    metadata = document["metadata"]
    return metadata["name"], age(metadata.get("creationTimestamp"), now), document["spec"], document.get("status", {})


def _deployment(document: Document, now: float) -> Row:
    name, old, spec, status = _parts(document, now)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [name, ready, *counts, old, *containers(document), selector_text(spec.get("selector"))]


def _replica_set(document: Document, now: float) -> Row:
    name, old, spec, status = _parts(document, now)
    counts = [spec.get("replicas", 1), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name, *counts, old, *containers(document), selector_text(spec.get("selector"))]


def _stateful_set(document: Document, now: float) -> Row:
    name, old, spec, status = _parts(document, now)
    return [name, f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}", old, *containers(document)]


def _daemon_set(document: Document, now: float) -> Row:
    name, old, spec, status = _parts(document, now)
    counts = [
        status.get(f"{part}", 0)
        for part in ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    ]
    chosen = selector_text(spec.get("template", {}).get("spec", {}).get("nodeSelector"))
    more = [*containers(document), selector_text(spec.get("selector"))]
    return [name, *counts, status.get("numberAvailable", 0), chosen, old, *more]


def _job(document: Document, now: float) -> Row:
    name, old, spec, status = _parts(document, now)
    wanted = spec.get("completions")
    done = status.get("succeeded", 0)
    parallel = spec.get("parallelism", 0)
    completions = (
        f"{done}/{wanted}" if wanted is not None else f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"
    )
    more = [*containers(document), selector_text(spec.get("selector"))]
    return [name, _job_word(document), completions, _duration(status, now), old, *more]


def _job_word(document: Document) -> str:
    for each in document.get("status", {}).get("conditions", ()):
        if each.get("status") == "True" and each["type"] in ("Complete", "Failed", "Suspended", "FailureTarget"):
            return str(each["type"])
    return "Terminating" if "deletionTimestamp" in document["metadata"] else "Running"


def _duration(status: Document, now: float) -> str:
    if "startTime" not in status:
        return ""
    end = seconds(status["completionTime"]) if "completionTime" in status else now
    return span(end - seconds(status["startTime"]))


def _budget(document: Document, now: float) -> Row:
    name, old, spec, status = _parts(document, now)
    limits = [str(spec.get(part, "N/A")) for part in ("minAvailable", "maxUnavailable")]
    return [name, *limits, status.get("disruptionsAllowed", 0), old]


_COUNTS = ("Desired", "Current", "Ready")
_replicas = Sheet(columns(*_COUNTS, "Age", wide=_WIDE, whole=_COUNTS), _replica_set)

SHEETS = {
    "deployments.apps": Sheet(columns("Ready", "Up-to-date", "Available", "Age", wide=_WIDE), _deployment),
    "replicasets.apps": _replicas,
    "replicationcontrollers": _replicas,
    "statefulsets.apps": Sheet(columns("Ready", "Age", wide=_WIDE[:2]), _stateful_set),
    "daemonsets.apps": Sheet(
        columns(*_COUNTS, "Up-to-date", "Available", "Node Selector", "Age", wide=_WIDE,
                whole=(*_COUNTS, "Up-to-date", "Available")),
        _daemon_set,
    ),
    "jobs.batch": Sheet(columns("Status", "Completions", "Duration", "Age", wide=_WIDE), _job),
    "poddisruptionbudgets.policy": Sheet(
        columns("Min Available", "Max Unavailable", "Allowed Disruptions", "Age", whole=("Allowed Disruptions",)),
        _budget,
    ),
}  # fmt: skip
