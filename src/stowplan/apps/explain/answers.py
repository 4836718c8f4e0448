"""The answer about a pod: its decision, its diagnosis, who serves it, since when it waits, and the commands to type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from stowplan.apps.explain.kubectl_commands import Owner
from stowplan.apps.explain.schedulers import UNKNOWN, Serving
from stowplan.apps.explain.sources import event_time, moment
from stowplan.diagnosis.diagnosis import Diagnosis, NamedCause, Wait
from stowplan.diagnosis.remedy import ObjectChange, Operation, PatchObject, Remedy
from stowplan.engine.explain import Explanation
from stowplan.framework.causes import Cause
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

SCHEDULER_NAME = "scheduler-name"


@dataclass(frozen=True)
class Waiting:
    """What is known of a pod's wait. Times are seconds since 1970.

    queue   what the running scheduler says: its stage, attempts, and until when it backs off
    """

    since: float | None = None
    condition: Mapping[str, Any] | None = None
    event: Mapping[str, Any] | None = None
    queue: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Answer:
    """`commands`: those of each remedy. `alike`: further pods for which everything here holds, too.

    `file`: the manifest that the pod comes from.
    """

    explanation: Explanation
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    serving: Serving = field(default_factory=lambda: Serving("", UNKNOWN))
    waiting: Waiting = field(default_factory=Waiting)
    owner: Owner | None = None
    commands: tuple[tuple[str, ...], ...] = ()
    alike: tuple[Pod, ...] = ()
    bound_to: str = ""
    file: str = ""
    now: float = 0.0

    @property
    def pod(self) -> Pod:
        return self.explanation.decision.pod

    @property
    def node(self) -> str | None:
        """Where the pod would go; none if nobody would put it there."""
        return None if self.serving.absent else self.explanation.node

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.pod.key, *(each.key for each in self.alike))


def unserved(serving: Serving, diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis of a pod that nobody serves: that comes first."""
    cause = NamedCause("", Cause("scheduler", serving.text, {"schedulerName": serving.name, "state": serving.state}))
    stopped = Wait("scheduler-stopped", f"until {serving.by} is started again") if serving.by else None
    waits = (stopped, *diagnosis.waits) if stopped is not None else diagnosis.waits
    return replace(diagnosis, pod_causes=(cause, *diagnosis.pod_causes), waits=waits, never="")


def under_another_name(pod: Pod, name: str, node: str | None, diagnosis: Diagnosis) -> tuple[Remedy, ...]:
    """Return remedies that let another scheduler serve the pod, and make the changes that it needs there."""
    rename = Operation("replace" if pod.spec.scheduler_name else "add", "/spec/schedulerName", name)
    text = f"set schedulerName to {name}"
    if node is not None:
        return (Remedy(SCHEDULER_NAME, text, (PatchObject("Pod", pod.key, (rename,)),), node),)
    return tuple(
        replace(
            each,
            code=f"{SCHEDULER_NAME}+{each.code}",
            text=f"{text}; {each.text}",
            changes=_with_operation(pod.key, rename, each.changes),
        )
        for each in diagnosis.remedies
    )


def _with_operation(key: str, operation: Operation, changes: tuple[ObjectChange, ...]) -> tuple[ObjectChange, ...]:
    for at, change in enumerate(changes):
        if isinstance(change, PatchObject) and (change.kind, change.key) == ("Pod", key):
            whole = replace(change, operations=(operation, *change.operations))
            return (*changes[:at], whole, *changes[at + 1 :])
    return (PatchObject("Pod", key, (operation,)), *changes)


def waiting(pod: Pod, document: Mapping[str, Any] | None, events: Sequence[Mapping[str, Any]]) -> Waiting:
    """Return since when a pod waits, and what was last said of it."""
    created = pod.metadata.creation_timestamp
    conditions = ((document or {}).get("status") or {}).get("conditions") or ()
    condition = next((each for each in conditions if each.get("type") == "PodScheduled"), None)
    last = max(events, key=lambda each: event_time(each) or 0.0, default=None)
    return Waiting(
        None if created is None else created.timestamp(),
        None if condition is None else _condition(condition),
        None if last is None else _event(last),
    )


def _condition(found: Mapping[str, Any]) -> dict[str, Any]:
    at = moment(found.get("lastTransitionTime"))
    return {name: str(found.get(name, "")) for name in ("status", "reason", "message")} | {"since": at}


def _event(found: Mapping[str, Any]) -> dict[str, Any]:
    series = found.get("series") or {}
    times = series.get("count") or found.get("deprecatedCount") or found.get("count") or 1
    source = found.get("deprecatedSource") or found.get("source") or {}
    reporter = found.get("reportingController") or found.get("reportingComponent") or source.get("component", "")
    return {
        "reason": str(found.get("reason", "")),
        "note": str(found.get("note") or found.get("message") or ""),
        "count": int(times),
        "at": event_time(found),
        "by": str(reporter),
    }


def document_of(found: Object) -> dict[str, Any]:
    """Return a typed object as a document. Its lists have the order of the API's."""
    document: dict[str, Any] = msgspec.to_builtins(found, enc_hook=str)
    return document
