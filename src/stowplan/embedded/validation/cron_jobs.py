"""CronJobs: the schedule, the time zone, and the template of the jobs."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.embedded import cron_schedules
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, invalid_value, required, unsupported
from stowplan.embedded.validation.pods import check_spec
from stowplan.embedded.validation.workloads import check_job_restarts

_LONGEST_NAME = 52  # the names of its jobs have eleven characters more
_POLICIES = ("Allow", "Forbid", "Replace")
_LIMITS = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
_JOB_LIMITS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_NOT_NEGATIVE = "must be greater than or equal to 0"
_NO_ZONE = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
_EXPLICIT = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"


def check(document: Document) -> Iterator[StatusCause]:
    spec = document["spec"]
    yield from _schedule(spec.get("schedule", ""))
    yield from _numbers(spec, "spec", _LIMITS[:1])
    yield from _zone(spec.get("timeZone"))
    if spec["concurrencyPolicy"] not in _POLICIES:
        yield unsupported("spec.concurrencyPolicy", spec["concurrencyPolicy"], _POLICIES)
    yield from _template(spec["jobTemplate"]["spec"])
    yield from _numbers(spec, "spec", _LIMITS[1:])
    if len(document["metadata"].get("name", "")) > _LONGEST_NAME:
        why = f"must be no more than {_LONGEST_NAME} characters"
        yield invalid_value("metadata.name", document["metadata"]["name"], why)


def _schedule(text: str) -> Iterator[StatusCause]:
    if not text:
        yield required("spec.schedule")
        return
    if "TZ" in text:
        yield invalid_value("spec.schedule", text, _NO_ZONE)
        return
    try:
        cron_schedules.parse(text)
    except cron_schedules.ScheduleError as error:
        yield invalid_value("spec.schedule", text, str(error))


def _zone(name: str | None) -> Iterator[StatusCause]:
    if name is None:
        return
    if not name:
        yield invalid_value("spec.timeZone", name, "timeZone must be nil or non-empty string")
    elif name.lower() == "local":
        yield invalid_value("spec.timeZone", name, _EXPLICIT)
    elif cron_schedules.zone_of(name) is None:
        yield invalid_value("spec.timeZone", name, f"unknown time zone {name}")


def _template(spec: Document) -> Iterator[StatusCause]:
    yield from _numbers(spec, "spec.jobTemplate.spec", _JOB_LIMITS)
    if spec.get("manualSelector"):
        yield unsupported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false"))
    template = spec["template"]["spec"]
    yield from check_spec(template, "spec.jobTemplate.spec.template.spec")
    yield from check_job_restarts(template, "spec.jobTemplate.spec.template.spec")


def _numbers(spec: Document, field: str, names: tuple[str, ...]) -> Iterator[StatusCause]:
    for name in names:
        if spec.get(name, 0) < 0:
            yield invalid_value(f"{field}.{name}", spec[name], _NOT_NEGATIVE)
