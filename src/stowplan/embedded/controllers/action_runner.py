"""Carries out what controllers want, through the same door as everybody else, and writes their events."""

from __future__ import annotations

from typing import Any, TypeAlias

from stowplan.embedded.api.request_options import DeleteOptions, RequestOptions
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.controllers.actions import (
    Action,
    CheckAgain,
    CreateObject,
    DeleteObject,
    EventNote,
    Finalize,
    SetStatus,
    UpdateObject,
)
from stowplan.embedded.errors import ApiError
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.timestamps import stamp

Document: TypeAlias = dict[str, Any]

_SIMILAR = 10  # events of one kind about one object before they are combined
_WITHIN = 600.0  # seconds


class ActionRunner:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._resources: dict[str, ServedResource] = {}
        self._last = 0
        self._told: dict[tuple[str, str, str, str], tuple[str, int]] = {}  # the event's name, and how often
        self._similar: dict[tuple[str, str, str], tuple[int, float]] = {}

    def perform(self, action: Action, now: float) -> bool:
        """Whether it worked; an object that is gone already needs nothing more."""
        try:
            self._do(action, RequestOptions(now, "Ignore"))
        except ApiError as error:
            refused = error.reason not in ("AlreadyExists", "Conflict")
            if isinstance(action, CreateObject) and action.note is not None and refused:
                self._tell_failure(action.note, error, now)
            return error.code == 404 and not isinstance(action, CreateObject)
        return True

    def _do(self, action: Action, asked: RequestOptions) -> None:
        match action:
            case CreateObject():
                self._create(action, asked)
            case UpdateObject():
                self._update(action, asked)
            case SetStatus():
                self._set_status(action, asked)
            case DeleteObject():
                self._delete(action, asked)
            case Finalize():
                found = self._api.get(self._resource("namespaces"), "", action.name)
                self._api.write(self._resource("namespaces"), {**found, "spec": {}}, asked)
            case EventNote():
                self._tell(action, "", asked.now)
            case CheckAgain():
                pass

    def _resource(self, collection: str) -> ServedResource:
        found = self._resources.get(collection) or self._api.catalogue.by_collection(collection)
        if found is None:
            raise ApiError(404, "NotFound", f"{collection} are not served")
        if not found.custom:
            self._resources[collection] = found
        return found

    def _create(self, action: CreateObject, asked: RequestOptions) -> None:
        created = self._api.create(self._resource(action.collection), action.namespace, action.document, asked)
        if action.note is not None:
            self._tell(action.note, created["metadata"]["name"], asked.now)

    def _update(self, action: UpdateObject, asked: RequestOptions) -> None:
        metadata = action.document["metadata"]
        resource = self._resource(action.collection)
        self._api.update(resource, metadata.get("namespace", ""), metadata["name"], action.document, asked)
        if action.note is not None:
            self._tell(action.note, metadata["name"], asked.now)

    def _set_status(self, action: SetStatus, asked: RequestOptions) -> None:
        found = self._api.store.get(action.collection, action.key)
        if found is None or found["metadata"]["uid"] != action.uid or found.get("status") == action.status:
            return
        self._api.write(self._resource(action.collection), {**found, "status": action.status}, asked)

    def _delete(self, action: DeleteObject, asked: RequestOptions) -> None:
        namespace, _, name = action.key.rpartition("/")
        options = DeleteOptions(action.grace, action.policy, preconditions={"uid": action.uid})
        self._api.delete(self._resource(action.collection), namespace, name, options, asked)
        if action.note is not None:
            self._tell(action.note, name, asked.now)

    # -- events

    def _tell_failure(self, note: EventNote, error: ApiError, now: float) -> None:
        self._tell(
            EventNote(note.about, "FailedCreate", f"Error creating: {error.message}", note.component, "Warning"),
            "",
            now,
        )

    def _tell(self, note: EventNote, name: str, now: float) -> None:
        """A new event, or one more time for the same; many alike become one."""
        about, message = note.about["metadata"], note.message.replace("{name}", name)
        kind = (about["uid"], note.reason, note.component)
        count, since = self._similar.get(kind, (0, now))
        if now - since > _WITHIN:
            count, since = 0, now
        self._similar[kind] = count + 1, since
        same = (*kind, message)
        if count >= _SIMILAR:
            same, message = (*kind, ""), f"(combined from similar events): {message}"
        known, times = self._told.get(same, ("", 0))
        key = f"{about.get('namespace', 'default')}/{known}"
        event = self._api.store.get("events", key) if known else None
        if event is None:
            self._told[same] = self._write_event(note, message, now), 1
            return
        self._told[same] = known, times + 1
        more = {"count": times + 1, "lastTimestamp": stamp(now), "message": message}
        self._api.write(self._resource("events"), {**event, **more}, RequestOptions(now))

    def _write_event(self, note: EventNote, message: str, now: float) -> str:
        about = note.about
        metadata = about["metadata"]
        namespace = metadata.get("namespace", "default")
        reference = {
            "kind": about["kind"], "apiVersion": about["apiVersion"], "name": metadata["name"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        }  # fmt: skip
        if "namespace" in metadata:
            reference["namespace"] = metadata["namespace"]
        self._last = max(int(now * 1e9), self._last + 1)  # names are in the order of events
        name = f"{metadata['name']}.{self._last:016x}"
        event = {
            "metadata": {"name": name, "namespace": namespace}, "involvedObject": reference, "reason": note.reason,
            "message": message, "source": {"component": note.component}, "reportingComponent": note.component,
            "firstTimestamp": stamp(now), "lastTimestamp": stamp(now), "count": 1, "type": note.type,
        }  # fmt: skip
        try:
            self._api.create(self._resource("events"), namespace, event, RequestOptions(now, "Ignore"))
        except ApiError:  # its namespace is being deleted
            return ""
        return name
