"""Defaults of the kinds with a pod template."""

from __future__ import annotations

from stowplan.embedded.admission import pods, storage
from stowplan.embedded.admission.context import AdmissionContext
from stowplan.embedded.documents import Document

_JOB_UID, _OLD_JOB_UID = "batch.kubernetes.io/controller-uid", "controller-uid"
_JOB_NAME, _OLD_JOB_NAME = "batch.kubernetes.io/job-name", "job-name"


def _template(spec: Document) -> None:
    pods.template_spec(spec.setdefault("template", {}).setdefault("spec", {}))


def deployment(document: Document) -> None:
    spec = document["spec"]
    _template(spec)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def replica_set(document: Document) -> None:
    _template(document["spec"])
    document["spec"].setdefault("replicas", 1)


def replication_controller(document: Document) -> None:
    spec = document["spec"]
    spec.setdefault("replicas", 1)
    _template(spec)
    labels = spec["template"].get("metadata", {}).get("labels")
    if labels:
        spec.setdefault("selector", dict(labels))
        document["metadata"].setdefault("labels", dict(labels))


def stateful_set(document: Document) -> None:
    spec = document["spec"]
    _template(spec)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    kept = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    kept.setdefault("whenDeleted", "Retain")
    kept.setdefault("whenScaled", "Retain")
    for claim in spec.get("volumeClaimTemplates", ()):
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        storage.claim(claim)
        claim["status"] = {"phase": "Pending"}


def daemon_set(document: Document) -> None:
    spec = document["spec"]
    _template(spec)
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)


def job(document: Document) -> None:
    spec = document["spec"]
    _template(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def cron_job(document: Document) -> None:
    spec = document["spec"]
    _template(spec.setdefault("jobTemplate", {}).setdefault("spec", {}))
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)


def admit_job(document: Document, _context: AdmissionContext) -> None:
    """Give the job a selector of its uid, and its pods the labels for it."""
    spec, metadata = document["spec"], document["metadata"]
    if spec.get("manualSelector"):
        return
    labels = {_JOB_UID: metadata["uid"], _OLD_JOB_UID: metadata["uid"]}
    labels |= {_JOB_NAME: metadata["name"], _OLD_JOB_NAME: metadata["name"]}
    spec["selector"] = {"matchLabels": {_JOB_UID: metadata["uid"]}}
    template = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    template.update(labels)
    metadata.setdefault("labels", dict(template))
