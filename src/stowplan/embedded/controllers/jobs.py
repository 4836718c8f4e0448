"""Jobs: completions, parallelism and the backoff limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import (
    Action,
    CreateDocument,
    DeleteDocument,
    RecordEvent,
    RequeueAfter,
    SetStatus,
)
from stowplan.embedded.documents import Document
from stowplan.embedded.numbers import natural
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.embedded.timestamps import seconds, stamp

JOBS = "jobs.batch"
_INDEX = "batch.kubernetes.io/job-completion-index"
_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
_COMPONENT = "job-controller"
_BACKOFF, _MAX_BACKOFF = 10.0, 600.0
_MAX_PER_SYNC = 500


class JobOutcome(msgspec.Struct, frozen=True):
    """The condition with which a job ends: Complete or Failed."""

    type: str
    reason: str
    message: str


class JobController:
    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == JOBS:
            return (change.key,)
        key = queries.owner_key(change.document, "Job") if change.collection == "pods" else None
        return (key,) if key else ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        job = self._store.get(JOBS, key)
        if job is None or queries.terminating(job):
            return
        if _finished(job):
            yield from self._clean_up(key, job, now)
            return
        pods = queries.owned(self._store, job, "pods")
        outcome = _outcome(job, pods, now)
        if outcome is None and not job["spec"].get("suspend"):
            yield from self._create_pods(job, pods, now)
        elif outcome is None or outcome.type == "Failed":
            yield from self._delete_pods(job, pods)
        yield from self._update_status(key, outcome, now)

    def refused(self, key: str, _error: str, now: float) -> Iterator[Action]:
        """Count the pods that were created before one was refused."""
        yield from self._update_status(key, None, now)

    def _clean_up(self, key: str, job: Document, now: float) -> Iterator[Action]:
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return
        end = max(seconds(each.get("lastTransitionTime", "")) for each in job["status"]["conditions"])
        left = end + ttl - now
        yield RequeueAfter(left) if left > 0 else DeleteDocument(JOBS, key, job["metadata"]["uid"])

    def _create_pods(self, job: Document, pods: list[Document], now: float) -> Iterator[Action]:
        spec = job["spec"]
        active = [pod for pod in pods if queries.active(pod)]
        succeeded = _succeeded(job, pods)
        missing = spec["parallelism"] - len(active)
        if "completions" in spec:
            missing = min(missing, spec["completions"] - succeeded - len(active))
        elif succeeded:
            missing = 0
        if missing > 0 and (wait := _backoff(pods, now)) > 0:
            yield RequeueAfter(wait)
            return
        indices = _free_indices(job, pods) if spec["completionMode"] == "Indexed" else None
        for number in range(min(missing, _MAX_PER_SYNC)):
            event = RecordEvent(job, "SuccessfulCreate", "Created pod: {name}", _COMPONENT)
            pod = _pod(job, indices[number] if indices is not None else None)
            yield CreateDocument("pods", job["metadata"]["namespace"], pod, event)
        if missing > _MAX_PER_SYNC:
            yield RequeueAfter(0.0)
        if (deadline := spec.get("activeDeadlineSeconds")) is not None:
            begun = seconds(job.get("status", {}).get("startTime", "")) or now
            yield RequeueAfter(max(begun + deadline - now, 0.01))

    def _delete_pods(self, job: Document, pods: list[Document]) -> Iterator[Action]:
        for pod in pods:
            if queries.active(pod):
                event = RecordEvent(job, "SuccessfulDelete", "Deleted pod: {name}", _COMPONENT)
                yield DeleteDocument("pods", queries.key_of(pod), pod["metadata"]["uid"], event=event)

    def _update_status(self, key: str, outcome: JobOutcome | None, now: float) -> Iterator[Action]:
        job = self._store.get(JOBS, key)
        if job is None:
            return
        pods = queries.owned(self._store, job, "pods")
        before = job.get("status", {})
        status: Document = {"startTime": before.get("startTime", stamp(now)), "uncountedTerminatedPods": {}}
        active = [pod for pod in pods if queries.active(pod)]
        counts = {"active": len(active), "succeeded": _succeeded(job, pods), "failed": _failed(job, pods)}
        status |= {name: count for name, count in counts.items() if count}
        status["ready"] = sum(queries.ready(pod) for pod in active)
        status["terminating"] = sum(
            queries.terminating(pod) for pod in pods if queries.phase(pod) not in ("Succeeded", "Failed")
        )
        if job["spec"]["completionMode"] == "Indexed" and (done := _done_indices(pods)):
            status["completedIndexes"] = _ranges(sorted(done))
        conditions = _conditions(job, before.get("conditions", []), outcome, now)
        if conditions:
            status["conditions"] = conditions
        if outcome is not None and outcome.type == "Complete":
            status["completionTime"] = stamp(now)
        if status != before:
            yield SetStatus(JOBS, key, job["metadata"]["uid"], status)
        if outcome is not None:
            yield _final_event(job, outcome)


def _final_event(job: Document, outcome: JobOutcome) -> RecordEvent:
    if outcome.type == "Complete":
        return RecordEvent(job, "Completed", "Job completed", _COMPONENT)
    return RecordEvent(job, outcome.reason, outcome.message, _COMPONENT, "Warning")


def _finished(job: Document) -> bool:
    found = job.get("status", {}).get("conditions", ())
    return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in found)


def _succeeded(job: Document, pods: list[Document]) -> int:
    """The number of succeeded pods. A pod that was counted stays counted after its deletion."""
    if job["spec"]["completionMode"] == "Indexed":
        return len(_done_indices(pods))
    count = sum(queries.phase(pod) == "Succeeded" for pod in pods)
    return max(count, int(job.get("status", {}).get("succeeded", 0)))


def _failed(job: Document, pods: list[Document]) -> int:
    count = sum(queries.phase(pod) == "Failed" for pod in pods)
    return max(count, int(job.get("status", {}).get("failed", 0)))


def _outcome(job: Document, pods: list[Document], now: float) -> JobOutcome | None:
    """The final condition of the job; None while it is not finished."""
    spec = job["spec"]
    if _failed(job, pods) > spec["backoffLimit"]:
        return JobOutcome("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    begun = seconds(job.get("status", {}).get("startTime", ""))
    if begun and now - begun >= spec.get("activeDeadlineSeconds", float("inf")):
        return JobOutcome("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    done, active = _succeeded(job, pods), any(queries.active(pod) for pod in pods)
    complete = done >= spec["completions"] if "completions" in spec else done > 0 and not active
    if not complete:
        return None
    return JobOutcome("Complete", "CompletionsReached", "Reached expected number of succeeded pods")


def _conditions(job: Document, conditions: list[Document], outcome: JobOutcome | None, now: float) -> list[Document]:
    if outcome is not None:
        first = "SuccessCriteriaMet" if outcome.type == "Complete" else "FailureTarget"
        for each in (first, outcome.type):
            conditions = queries.with_condition(
                conditions, each, "True", now, outcome.reason, outcome.message, lastProbeTime=stamp(now)
            )
    elif job["spec"].get("suspend"):
        return queries.with_condition(conditions, "Suspended", "True", now, "JobSuspended", "Job suspended")
    elif any(each["type"] == "Suspended" and each["status"] == "True" for each in conditions):
        return queries.with_condition(conditions, "Suspended", "False", now, "JobResumed", "Job resumed")
    return conditions


def _backoff(pods: list[Document], now: float) -> float:
    """Seconds until the next attempt after failures."""
    failed = [pod for pod in pods if queries.phase(pod) == "Failed"]
    if not failed:
        return 0.0
    wait: float = min(_BACKOFF * 2 ** min(len(failed) - 1, 10), _MAX_BACKOFF)
    return max(map(_ended, failed)) + wait - now


def _ended(pod: Document) -> float:
    """When a pod failed; when it was created, if no container tells."""
    ends = [
        seconds(each.get("state", {}).get("terminated", {}).get("finishedAt", ""))
        for each in pod["status"].get("containerStatuses", ())
    ]
    return max(ends, default=0.0) or seconds(pod["metadata"]["creationTimestamp"])


def _index_of(pod: Document) -> int:
    text = pod["metadata"].get("annotations", {}).get(_INDEX, "-1")
    return natural(text, -1)


def _done_indices(pods: list[Document]) -> set[int]:
    return {_index_of(pod) for pod in pods if queries.phase(pod) == "Succeeded"}


def _free_indices(job: Document, pods: list[Document]) -> list[int]:
    taken = {_index_of(pod) for pod in pods if queries.active(pod)} | _done_indices(pods)
    return [index for index in range(job["spec"]["completions"]) if index not in taken]


def _ranges(numbers: list[int]) -> str:
    """Ranges of numbers such as "0-2,5"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _pod(job: Document, index: int | None) -> Document:
    pod = queries.pod_from(job["spec"]["template"], job)
    if index is None:
        return pod
    metadata = pod["metadata"]
    metadata["generateName"] = f"{job['metadata']['name']}-{index}-"
    for part in ("labels", "annotations"):
        metadata[part] = {**metadata.get(part, {}), _INDEX: str(index)}
    spec = pod["spec"] = {"hostname": f"{job['metadata']['name']}-{index}", **pod["spec"]}
    for part in ("initContainers", "containers"):
        if part in spec:
            spec[part] = [_knowing_its_index(container) for container in spec[part]]
    return pod


def _knowing_its_index(container: Document) -> Document:
    found = container.get("env", [])
    if any(each["name"] == _INDEX_VARIABLE for each in found):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{_INDEX}']"}}
    return {**container, "env": [*found, {"name": _INDEX_VARIABLE, "valueFrom": source}]}
