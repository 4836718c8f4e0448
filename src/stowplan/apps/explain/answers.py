"""The answer about a pod: its decision, its diagnosis, who serves it, since when it waits, and the commands to type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from stowplan.apps.explain.kubectl_commands import Owner
from stowplan.apps.explain.schedulers import UNKNOWN, Serving
from stowplan.apps.explain.sources import event_time, moment
from stowplan.diagnosis.causes import extenders_not_asked
from stowplan.diagnosis.diagnosis import Diagnosis, NamedCause, Wait
from stowplan.diagnosis.remedy import ObjectChange, Operation, PatchObject, Remedy
from stowplan.engine.explain import Evictions, Explanation
from stowplan.framework.causes import Cause
from stowplan.framework.config.settings import Extender
from stowplan.framework.extenders import is_interested
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
class FurtherPod:
    """What happens to a further pod that is like the one of an answer: its node, and who is evicted for it.

    explanation   its own, with scores; None if it was not kept
    """

    pod: Pod
    node: str | None = None
    evictions: Evictions | None = None
    explanation: Explanation | None = None


@dataclass(frozen=True)
class Answer:
    """About one pod, or several that are alike and fare alike: all get nodes, or none does.

    commands   those of each remedy
    alike      the further pods; the diagnosis holds for them, too
    tried_for  how many pods the remedies were tried for, one after the other; 0: for the first one alone
    is_node_known   False if the node that the pod is bound to does not exist
    file       the manifest that the pod comes from
    """

    explanation: Explanation
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    serving: Serving = field(default_factory=lambda: Serving("", UNKNOWN))
    waiting: Waiting = field(default_factory=Waiting)
    owner: Owner | None = None
    commands: tuple[tuple[str, ...], ...] = ()
    alike: tuple[FurtherPod, ...] = ()
    bound_to: str = ""
    is_node_known: bool = True
    file: str = ""
    now: float = 0.0
    tried_for: int = 0

    @property
    def pod(self) -> Pod:
        return self.explanation.decision.pod

    @property
    def node(self) -> str | None:
        """Where the pod would go; none if nobody would put it there."""
        return None if self.serving.absent else self.explanation.node

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(each.key for each in self.pods)

    @property
    def pods(self) -> tuple[Pod, ...]:
        return (self.pod, *(each.pod for each in self.alike))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that the pods would get without evictions, each once."""
        found = (self.node, *(each.node for each in self.alike))
        return tuple(dict.fromkeys(each for each in found if each is not None))

    @property
    def evictions(self) -> Evictions | None:
        """All that would be evicted for these pods."""
        own = self.explanation.evictions
        found = [each for each in (own, *(each.evictions for each in self.alike)) if each is not None]
        if len(found) < 2:
            return found[0] if found else None
        victims = {victim.uid: victim for each in found for victim in each.victims}
        nodes = {key: node for each in found for key, node in each.nodes.items()}
        return Evictions(tuple(victims.values()), nodes, sum(each.violations for each in found))


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


def not_asked(pods: Iterable[Pod], extenders: Sequence[Extender]) -> list[str]:
    """Return the HTTP extenders that may reject nodes for one of these pods, or change scores: they are not asked."""
    found = dict[str, None]()
    for pod in pods:
        found |= {str(each.cause.details["url"]): None for each in extenders_not_asked(pod, extenders)}
        scoring = (each for each in extenders if each.prioritize_verb and is_interested(each, pod))
        found |= {each.url_prefix: None for each in scoring}
    return list(found)


def document_of(found: Object) -> dict[str, Any]:
    """Return a typed object as a document. Its lists have the order of the API's."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found, enc_hook=str))  # with lists, not tuples
    return document
