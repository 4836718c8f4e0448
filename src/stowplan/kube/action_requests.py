"""The API requests that carry out an action.

Nothing is sent here: `kube.writer` sends the requests over HTTP, a simulation hands them to an API server in the same
process.

| action            | requests                                                        |
|-------------------|-----------------------------------------------------------------|
| Bind              | POST pods/binding                                               |
| Evict             | PATCH pods/status (DisruptionTarget), then DELETE the pod       |
| SetCondition      | PATCH pods/status (PodScheduled, nominatedNodeName)             |
| Nominate          | PATCH pods/status (nominatedNodeName)                           |
| Patch             | PATCH the object, or its status if the patch is of the status   |
| Create, Delete    | POST, DELETE with preconditions                                 |
| RequestEviction   | POST pods/eviction                                              |
| Read              | GET the pod                                                     |
| Record            | POST an Event (`event`)                                         |
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from stowplan.kube.resources import EVENTS, PODS, ApiResource
from stowplan.objects.actions import (
    Bind,
    Create,
    Delete,
    Evict,
    Nominate,
    ObjectRef,
    Patch,
    PodRef,
    Read,
    Record,
    RequestEviction,
    SetCondition,
    written_part,
)
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.texts import MOST_OF_NOTE, shortened

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

Document: TypeAlias = dict[str, Any]
PodAction: TypeAlias = Bind | Evict | SetCondition | Nominate | RequestEviction | Read
ObjectAction: TypeAlias = Patch | Create | Delete


class ActionRequest(msgspec.Struct, frozen=True):
    """One request; `body` is encoded as JSON."""

    method: str
    path: str
    body: Document | list[Document] | None = None
    content_type: str = JSON


def for_pod(action: PodAction, known: Object | None, now: datetime) -> tuple[ActionRequest, ...]:
    """The requests of an action on a pod, in order. Each is sent only if the one before it succeeded.

    `known` is the object that the caller knows under the pod's key, `now` the time that conditions get.
    """
    match action:
        case Bind():
            return (_binding(action),)
        case Evict():
            condition = _condition(action, "DisruptionTarget", "True", known, now)
            return _status_patch(action.pod, {"conditions": [condition]}), delete(
                PODS, key_of(action.pod), action.pod.uid
            )
        case SetCondition():
            status: Document = {"conditions": [_condition(action, "PodScheduled", action.status, known, now)]}
            if action.nominated_node is not None:
                status["nominatedNodeName"] = action.nominated_node or None  # null removes the field
            return (_status_patch(action.pod, status),)
        case Nominate():
            return (_status_patch(action.pod, {"nominatedNodeName": action.node_name or None}),)
        case RequestEviction():
            return (_eviction(action.pod),)
        case Read():
            return (ActionRequest("GET", PODS.path(key_of(action.pod))),)


def for_object(action: ObjectAction, resource: ApiResource, now: datetime) -> ActionRequest:
    """The request of an action on an object of any kind; `resource` is that kind at the version that is served."""
    match action:
        case Patch():
            return _patch(action, resource, now)
        case Create():
            namespace, _, _ = action.key.rpartition("/")
            return ActionRequest("POST", resource.collection(namespace), action.body)
        case Delete():
            return delete(resource, action.key, action.uid, action.resource_version)


def delete(resource: ApiResource, key: str, uid: str = "", version: str = "") -> ActionRequest:
    """Delete an object: with `uid` only if the object has it, with `version` only if it is still at that version."""
    preconditions = {name: value for name, value in (("uid", uid), ("resourceVersion", version)) if value}
    options: Document = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if preconditions:
        options["preconditions"] = preconditions
    return ActionRequest("DELETE", resource.path(key), options)


def event(
    record: Record, *, name: str, at: datetime, host: str, series: Mapping[str, object] | None = None
) -> ActionRequest:
    """Create an Event in the namespace of the object that the record is about."""
    namespace = record.pod.namespace or "default"
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": micro_time(at),
        "reportingController": record.reporting_controller,
        "reportingInstance": f"{record.reporting_controller}-{host}",
        "action": record.action,
        "reason": record.reason,
        "type": record.type,
        "note": shortened(record.note, MOST_OF_NOTE),
        "regarding": _reference(record.pod),
        "series": series,
        "related": None if record.related is None else _reference(record.related),
    }
    present = {field: value for field, value in body.items() if value is not None}
    return ActionRequest("POST", EVENTS.collection(namespace), present)


def key_of(pod: PodRef) -> str:
    return f"{pod.namespace}/{pod.name}"


def micro_time(moment: datetime) -> str:
    """The time (UTC) as Kubernetes writes a MicroTime."""
    return f"{moment.isoformat(timespec='microseconds')[:26]}Z"


def _binding(action: Bind) -> ActionRequest:
    metadata = {"name": action.pod.name, "namespace": action.pod.namespace, "uid": action.pod.uid}
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {**metadata, "annotations": action.annotations} if action.annotations else metadata,
        "target": {"kind": "Node", "name": action.node_name},
    }
    return ActionRequest("POST", PODS.path(key_of(action.pod), "binding"), body)


def _eviction(pod: PodRef) -> ActionRequest:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.uid}},
    }
    return ActionRequest("POST", PODS.path(key_of(pod), "eviction"), body)


def _status_patch(pod: PodRef, status: Document) -> ActionRequest:
    """A patch of the status that applies to the pod with this uid only."""
    body = {"metadata": {"uid": pod.uid}, "status": status}
    return ActionRequest("PATCH", PODS.path(key_of(pod), "status"), body, STRATEGIC_MERGE_PATCH)


def _condition(action: Evict | SetCondition, kind: str, status: str, known: Object | None, now: datetime) -> Document:
    """A condition for a strategic merge patch; while the status stays the same, so does lastTransitionTime."""
    condition: Document = {"type": kind, "status": status, "reason": action.reason, "message": action.message}
    if isinstance(known, Pod) and known.uid == action.pod.uid:
        if known.metadata.generation:
            condition["observedGeneration"] = known.metadata.generation
        old = known.condition(kind)
        if old is not None and old.status == status:
            return condition
    condition["lastTransitionTime"] = _time(now)
    return condition


def _patch(action: Patch, resource: ApiResource, now: datetime) -> ActionRequest:
    """A patch of the status goes to the subresource: the API server ignores a status that is sent elsewhere."""
    body = action.body
    if isinstance(body, list):
        return ActionRequest("PATCH", resource.path(action.key), body, JSON_PATCH)
    if written_part(action) == "status":
        return ActionRequest("PATCH", resource.path(action.key, "status"), _with_times(body, now), MERGE_PATCH)
    return ActionRequest("PATCH", resource.path(action.key), body, MERGE_PATCH)


def _with_times(body: Document, now: datetime) -> Document:
    """Plugins have no clock: conditions without a lastTransitionTime get the time of writing."""
    conditions = body["status"].get("conditions")
    if not conditions:
        return body
    transition = {"lastTransitionTime": _time(now)}
    return {**body, "status": {**body["status"], "conditions": [transition | each for each in conditions]}}


def _reference(about: PodRef) -> dict[str, str]:
    named = {"namespace": about.namespace, "name": about.name, "uid": about.uid}
    if isinstance(about, ObjectRef):
        return {"apiVersion": about.api_version, "kind": about.kind, **named}
    return {"apiVersion": "v1", "kind": "Pod", **named}


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
