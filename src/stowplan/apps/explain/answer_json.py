"""An answer about a pod for programs: `-o json|yaml` and /debug/explain. docs/explain.schema.json describes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from stowplan.apps import json_output
from stowplan.apps.explain.answers import Answer, FurtherPod, Waiting
from stowplan.apps.explain.kubectl_commands import as_json
from stowplan.apps.explain.sentences import sentence
from stowplan.diagnosis.diagnosis import Diagnosis, NamedCause
from stowplan.diagnosis.remedy import AddNodes, CreateObject, DeleteObject, ObjectChange, PatchObject
from stowplan.engine.explain import Evictions, Explanation

Json = dict[str, Any]


def listed(answers: Iterable[Answer]) -> list[Json]:
    """Return an object for each pod of some answers. `alike` differs between answers: "deployment a/web", "… (2)"."""
    found: list[Json] = []
    seen: Counter[str] = Counter()
    for answer in answers:
        name = alike(answer)
        seen[name] += 1
        key = name if seen[name] == 1 else f"{name} ({seen[name]})"
        found += (each | {"alike": key} for each in items(answer))
    return found


def alike(answer: Answer) -> str:
    """Return a name for the pods of an answer: their owner, or the first of them."""
    owner = answer.owner
    return f"pod {answer.pod.key}" if owner is None else f"{owner.kind.lower()} {owner.key}"


def items(answer: Answer) -> list[Json]:
    """Return an object for each pod that the answer is about."""
    first = of(answer)
    return [first, *(first | _of_further(each, answer) for each in answer.alike)]


def _of_further(found: FurtherPod, answer: Answer) -> Json:
    """What differs between a pod and the first one that is like it. A pod that gets a node is scored by itself."""
    own: Json = {"pod": found.pod.key, "uid": found.pod.uid, "preemption": _evictions(found.evictions)}
    if found.explanation is not None:
        return explained(found.explanation) | own
    return own | {"node": found.node, "rejected": {}, "scores": {}} if answer.node is not None else own


def of(answer: Answer) -> Json:
    found = explained(answer.explanation)
    if answer.serving.absent:
        found |= {"node": None, "message": answer.serving.text}
    owner = answer.owner
    return found | {
        "boundTo": answer.bound_to,
        "sentence": sentence(answer),
        "alike": alike(answer),
        "owner": None if owner is None else {"kind": owner.kind, **_named(owner.key)},
        "scheduler": {
            "name": answer.pod.scheduler_name,
            "state": answer.serving.state,
            "by": answer.serving.by,
            "holder": answer.serving.holder,
            "assumedProfile": answer.serving.assumed,
        },
        "waiting": _waiting(answer.waiting),
        "preemption": _evictions(answer.explanation.evictions),
        **diagnosed(answer.diagnosis, answer.commands, answer.tried_for),
    }


def explained(explanation: Explanation) -> Json:
    """Return the decision; that of a pod in a group also has the outcome of the group."""
    found, group = json_output.decision(explanation.decision), explanation.group
    if explanation.decision.gated is not None:
        found["message"] = explanation.why_not
    if group is None:
        return found | {"node": None, "message": explanation.because} if explanation.because else found
    outcome = {"name": group.name, "needed": group.needed, "whole": group.whole, "nodes": group.nodes}
    return found | {"node": explanation.node, "message": explanation.because, "podGroup": outcome}


def diagnosed(diagnosis: Diagnosis, commands: Sequence[tuple[str, ...]], tried_for: int = 0) -> Json:
    """Return causes and remedies. `tried_for`: so many pods that are alike; else it was one pod, or one group."""
    return {
        "podCauses": [cause(each) for each in diagnosis.pod_causes],
        "causes": [
            {"count": len(group.nodes), "nodes": list(group.nodes), "causes": [cause(each) for each in group.causes]}
            for group in diagnosis.groups
        ],
        "remedies": [
            {
                "code": each.code,
                "text": each.text,
                "node": each.node,
                "nodes": dict(each.nodes),
                "helps": len(each.nodes) if each.nodes else 1,
                "triedFor": tried_for if tried_for and each.nodes else max(len(each.nodes), 1),
                "evicted": list(each.evicted),
                "also": list(each.also),
                "changes": changes(each.changes),
                "commands": list(typed),
            }
            for each, typed in zip(diagnosis.remedies, commands, strict=True)
        ],
        "waits": [{"code": each.code, "text": each.text} for each in diagnosis.waits],
        "never": diagnosis.never,
        "bounded": diagnosis.bounded,
    }


def cause(named: NamedCause) -> Json:
    found = named.cause
    return {"plugin": named.plugin, "code": found.code, "text": found.text, "details": _plain(found.details)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def changes(found: Iterable[ObjectChange]) -> list[Json]:
    return [_change(each) for each in found]


def _change(change: ObjectChange) -> Json:
    match change:
        case PatchObject(kind, key, operations):
            return {"type": "patch", "kind": kind, **_named(key), "patch": as_json(operations)}
        case CreateObject(document):
            return {"type": "create", "object": document}
        case DeleteObject(kind, key):
            return {"type": "delete", "kind": kind, **_named(key)}
        case AddNodes(number, like, document):
            return {"type": "addNodes", "number": number, "like": like, "object": document}


def _named(key: str) -> Json:
    namespace, _, name = key.rpartition("/")
    return {"namespace": namespace, "name": name}


def _evictions(found: Evictions | None) -> Json | None:
    if found is None:
        return None
    return {
        "nodes": found.nodes,
        "victims": [{"pod": each.key, "priority": each.priority, "node": each.node_name} for each in found.victims],
        "violations": found.violations,
    }


def _waiting(found: Waiting) -> Json:
    return {
        "since": _time(found.since),
        "condition": None if found.condition is None else {**found.condition, "since": _time(found.condition["since"])},
        "event": None if found.event is None else {**found.event, "at": _time(found.event["at"])},
        "queue": None if found.queue is None else dict(found.queue),
    }


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
