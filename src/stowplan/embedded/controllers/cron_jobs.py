"""CronJobs: a job at each time of the schedule.

    the time comes ──► too late (startingDeadlineSeconds), or another job is active (Forbid): not now
                  ──► Replace: active jobs are deleted, and a job is created
                  ──► Allow: a job is created

A job is named after its minute, so no minute has two. Finished jobs beyond the history limits are deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from email.utils import format_datetime

from stowplan.embedded import cron_schedules
from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import (
    Action,
    CreateDocument,
    DeleteDocument,
    RecordEvent,
    RequeueAfter,
    SetStatus,
)
from stowplan.embedded.controllers.jobs import JOBS
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.embedded.timestamps import seconds, stamp

CRON_JOBS = "cronjobs.batch"
_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_COMPONENT = "cronjob-controller"
_TOO_MANY = 100  # missed times before a warning
_FORBIDDEN = "Not starting job because prior execution is running and concurrency policy is Forbid"
_MISSED = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
_UNEXPECTED = "Saw a job that the controller did not create or forgot: "


class CronJobController:
    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == CRON_JOBS:
            return (change.key,)
        key = queries.owner_key(change.document, "CronJob") if change.collection == JOBS else None
        return (key,) if key else ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        cron = self._store.get(CRON_JOBS, key)
        if cron is None:
            return
        jobs = queries.owned(self._store, cron, JOBS)
        yield from self._follow(key, cron, jobs)
        yield from _surplus(cron, jobs)
        if not queries.terminating(cron) and not cron["spec"].get("suspend"):
            yield from self._start(key, now)

    def _follow(self, key: str, cron: Document, jobs: list[Document]) -> Iterator[Action]:
        """Bring the status up to date with the jobs, and tell what became of them."""
        status = dict(cron.get("status", {}))
        active = {each.get("uid", ""): each for each in status.get("active", ())}
        ends = [status["lastSuccessfulTime"]] if "lastSuccessfulTime" in status else []
        for job in jobs:
            uid, name, outcome = job["metadata"]["uid"], job["metadata"]["name"], _outcome(job)
            if outcome == "Complete" and "completionTime" in job["status"]:
                ends.append(job["status"]["completionTime"])
            if not outcome and uid not in active:
                yield RecordEvent(cron, "UnexpectedJob", _UNEXPECTED + name, _COMPONENT, "Warning")
            elif outcome and active.pop(uid, None) is not None:
                said = f"Saw completed job: {name}, condition: {outcome}"
                yield RecordEvent(cron, "SawCompletedJob", said, _COMPONENT)
        present = {job["metadata"]["uid"] for job in jobs}
        for uid, reference in list(active.items()):
            if uid not in present:
                del active[uid]
                said = f"Active job went missing: {reference.get('name', '')}"
                yield RecordEvent(cron, "MissingJob", said, _COMPONENT)
        if ends:
            status["lastSuccessfulTime"] = max(ends, key=seconds)
        status = _with_active(status, list(active.values()))
        if status != cron.get("status", {}):
            yield SetStatus(CRON_JOBS, key, cron["metadata"]["uid"], status)

    def _start(self, key: str, now: float) -> Iterator[Action]:
        """Create the job that is due, and come back when the next one is."""
        cron = self._store.get(CRON_JOBS, key)
        if cron is None:
            return
        spec, status = cron["spec"], cron.get("status", {})
        zone = cron_schedules.zone_of(spec["timeZone"]) if spec.get("timeZone") else UTC
        schedule = cron_schedules.parse(spec["schedule"])
        due, missed = _due(cron, schedule, zone or UTC, now)
        if missed > _TOO_MANY:
            yield RecordEvent(cron, "TooManyMissedTimes", _MISSED, _COMPONENT, "Warning")
        if due is not None and seconds(status.get("lastScheduleTime", "")) != due:
            yield from self._start_at(key, cron, due, zone or UTC, now)
        following = schedule.after(now, zone or UTC)
        if following is not None:
            yield RequeueAfter(following - now)

    def _start_at(self, key: str, cron: Document, due: float, zone: tzinfo, now: float) -> Iterator[Action]:
        spec, active = cron["spec"], cron.get("status", {}).get("active", [])
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None and due + deadline < now:
            when = format_datetime(datetime.fromtimestamp(due, UTC))
            said = f"Missed scheduled time to start a job: {when}"
            yield RecordEvent(cron, "MissSchedule", said, _COMPONENT, "Warning")
            return
        if spec["concurrencyPolicy"] == "Forbid" and active:
            yield RecordEvent(cron, "JobAlreadyActive", _FORBIDDEN, _COMPONENT)
            return
        if spec["concurrencyPolicy"] == "Replace":
            for each in active:
                yield _deletion(cron, f"{cron['metadata']['namespace']}/{each.get('name', '')}", each.get("uid", ""))
            active = []
        yield from self._create(key, cron, active, due, zone)

    def _create(
        self, key: str, cron: Document, active: list[Document], due: float, zone: tzinfo
    ) -> Iterator[Action]:  # fmt: skip
        namespace = cron["metadata"]["namespace"]
        job = _job(cron, due, zone)
        location = f"{namespace}/{job['metadata']['name']}"
        if self._store.get(JOBS, location) is None:
            event = RecordEvent(cron, "SuccessfulCreate", "Created job {name}", _COMPONENT)
            failure = RecordEvent(cron, "FailedCreate", "Error creating job: {error}", _COMPONENT, "Warning")
            yield CreateDocument(JOBS, namespace, job, event, (failure,))
        created = self._store.get(JOBS, location)
        if created is None or (queries.controller_of(created) or {}).get("uid") != cron["metadata"]["uid"]:
            return
        status = {**cron.get("status", {}), "lastScheduleTime": stamp(due)}
        if not _outcome(created):
            active = [*active, _reference(created)]
        yield SetStatus(CRON_JOBS, key, cron["metadata"]["uid"], _with_active(status, active))


def _due(
    cron: Document, schedule: cron_schedules.Schedule, zone: tzinfo, now: float
) -> tuple[float | None, int]:  # fmt: skip
    """The last time that has come and has no job yet, and how many have come."""
    since = seconds(cron.get("status", {}).get("lastScheduleTime") or cron["metadata"]["creationTimestamp"])
    if (deadline := cron["spec"].get("startingDeadlineSeconds")) is not None:
        since = max(since, now - deadline)
    due, missed = None, 0
    if since > now:
        return due, missed
    following = schedule.after(max(since, 0.0), zone)
    while following is not None and following <= now:
        due, missed = following, missed + 1
        if missed > _TOO_MANY:  # the rest is too many to count: go on shortly before now
            following = schedule.after(max(following, now - (now - following) / 2), zone)
            continue
        following = schedule.after(following, zone)
    return due, missed


def _job(cron: Document, due: float, zone: tzinfo) -> Document:
    template = cron["spec"]["jobTemplate"]
    found = template.get("metadata", {})
    at = datetime.fromtimestamp(due, zone).isoformat().replace("+00:00", "Z")
    metadata: Document = {"name": f"{cron['metadata']['name']}-{int(due) // 60}"}
    metadata["annotations"] = {**found.get("annotations", {}), _SCHEDULED: at}
    if found.get("labels"):
        metadata["labels"] = dict(found["labels"])
    metadata["ownerReferences"] = [queries.owner_reference(cron)]
    return {"metadata": metadata, "spec": template["spec"]}


def _reference(job: Document) -> Document:
    metadata = job["metadata"]
    about = {name: metadata[name] for name in ("name", "namespace", "resourceVersion", "uid")}
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], **about}


def _with_active(status: Document, active: list[Document]) -> Document:
    others = {name: value for name, value in status.items() if name != "active"}
    return {"active": active, **others} if active else others


def _outcome(job: Document) -> str:
    """Complete or Failed; "" while the job is not finished."""
    found = job.get("status", {}).get("conditions", ())
    ended = (each["type"] for each in found if each["status"] == "True" and each["type"] in ("Complete", "Failed"))
    return str(next(ended, ""))


def _surplus(cron: Document, jobs: list[Document]) -> Iterator[Action]:
    """Delete the oldest finished jobs beyond the limits."""
    spec = cron["spec"]
    for outcome, name in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
        ended = [job for job in jobs if _outcome(job) == outcome and not queries.terminating(job)]
        ended.sort(key=lambda job: (seconds(job["status"].get("startTime", "")), job["metadata"]["name"]))
        for job in ended[: max(len(ended) - spec.get(name, len(ended)), 0)]:
            yield _deletion(cron, queries.key_of(job), job["metadata"]["uid"])


def _deletion(cron: Document, key: str, uid: str) -> Action:
    event = RecordEvent(cron, "SuccessfulDelete", "Deleted job {name}", _COMPONENT)
    return DeleteDocument(JOBS, key, uid, event=event)
