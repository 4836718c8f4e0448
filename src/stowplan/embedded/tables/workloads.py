"""Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs, PodDisruptionBudgets."""

from __future__ import annotations

from stowplan.embedded.documents import Document
from stowplan.embedded.tables.columns import Row, TablePrinter, columns, containers, selector_text
from stowplan.embedded.timestamps import age, seconds, span

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
    completions = spec.get("completions")
    done = status.get("succeeded", 0)
    parallel = spec.get("parallelism", 0)
    text = (
        f"{done}/{completions}"
        if completions is not None
        else f"{done}/1 of {parallel}"
        if parallel > 1
        else f"{done}/1"
    )
    more = [*containers(document), selector_text(spec.get("selector"))]
    return [name, _job_status(document), text, _duration(status, now), old, *more]


def _cron_job(document: Document, now: float) -> Row:
    name, old, spec, status = _parts(document, now)
    last = age(status["lastScheduleTime"], now) if "lastScheduleTime" in status else "<none>"
    suspended = "True" if spec.get("suspend") else "False"
    row = [name, spec.get("schedule", ""), spec.get("timeZone") or "<none>", suspended]
    job = spec.get("jobTemplate", {})
    more = [*containers(job), selector_text(job.get("spec", {}).get("selector"))]
    return [*row, len(status.get("active", ())), last, old, *more]


def _job_status(document: Document) -> str:
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
_replicas = TablePrinter(columns(*_COUNTS, "Age", wide=_WIDE, integers=_COUNTS), _replica_set)

PRINTERS = {
    "deployments.apps": TablePrinter(columns("Ready", "Up-to-date", "Available", "Age", wide=_WIDE), _deployment),
    "replicasets.apps": _replicas,
    "replicationcontrollers": _replicas,
    "statefulsets.apps": TablePrinter(columns("Ready", "Age", wide=_WIDE[:2]), _stateful_set),
    "daemonsets.apps": TablePrinter(
        columns(*_COUNTS, "Up-to-date", "Available", "Node Selector", "Age", wide=_WIDE,
                integers=(*_COUNTS, "Up-to-date", "Available")),
        _daemon_set,
    ),
    "jobs.batch": TablePrinter(columns("Status", "Completions", "Duration", "Age", wide=_WIDE), _job),
    "cronjobs.batch": TablePrinter(
        columns("Schedule", "Timezone", "Suspend", "Active", "Last Schedule", "Age", wide=_WIDE, integers=("Active",)),
        _cron_job,
    ),
    "poddisruptionbudgets.policy": TablePrinter(
        columns("Min Available", "Max Unavailable", "Allowed Disruptions", "Age", integers=("Allowed Disruptions",)),
        _budget,
    ),
}  # fmt: skip
