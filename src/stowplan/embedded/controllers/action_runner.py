"""Carries out the actions of controllers with the verbs of the API, and writes their events."""

from __future__ import annotations

from stowplan.embedded.api.request_options import DeleteOptions, RequestOptions
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.controllers.actions import (
    Action,
    CreateDocument,
    DeleteDocument,
    FinalizeNamespace,
    RecordEvent,
    RequeueAfter,
    SetStatus,
    UpdateObject,
)
from stowplan.embedded.errors import ApiError
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.timestamps import stamp

_MAX_SIMILAR = 10  # events with the same reason about one object before they are combined
_SIMILAR_WITHIN = 600.0  # seconds


class ActionRunner:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._resources: dict[str, ServedResource] = {}
        self._last = 0
        self._recorded: dict[tuple[str, str, str, str], tuple[str, int]] = {}  # the name of the event, and its count
        self._similar: dict[tuple[str, str, str], tuple[int, float]] = {}

    def perform(self, action: Action, now: float) -> bool:
        """Carry out an action, and return whether it succeeded. It does if the object is gone already."""
        try:
            self._perform(action, RequestOptions(now, "Ignore"))
        except ApiError as error:
            refused = error.reason not in ("AlreadyExists", "Conflict")
            if isinstance(action, CreateDocument) and action.event is not None and refused:
                self._record_failure(action.event, error, now)
            return error.code == 404 and not isinstance(action, CreateDocument)
        return True

    def _perform(self, action: Action, options: RequestOptions) -> None:
        match action:
            case CreateDocument():
                self._create(action, options)
            case UpdateObject():
                self._update(action, options)
            case SetStatus():
                self._set_status(action, options)
            case DeleteDocument():
                self._delete(action, options)
            case FinalizeNamespace():
                found = self._api.get(self._resource("namespaces"), "", action.name)
                self._api.write(self._resource("namespaces"), {**found, "spec": {}}, options)
            case RecordEvent():
                self._record(action, "", options.now)
            case RequeueAfter():
                pass

    def _resource(self, collection: str) -> ServedResource:
        found = self._resources.get(collection) or self._api.catalogue.by_collection(collection)
        if found is None:
            raise ApiError(404, "NotFound", f"{collection} are not served")
        if not found.custom:
            self._resources[collection] = found
        return found

    def _create(self, action: CreateDocument, options: RequestOptions) -> None:
        created = self._api.create(self._resource(action.collection), action.namespace, action.document, options)
        if action.event is not None:
            self._record(action.event, created["metadata"]["name"], options.now)

    def _update(self, action: UpdateObject, options: RequestOptions) -> None:
        metadata = action.document["metadata"]
        resource = self._resource(action.collection)
        self._api.update(resource, metadata.get("namespace", ""), metadata["name"], action.document, options)
        if action.event is not None:
            self._record(action.event, metadata["name"], options.now)

    def _set_status(self, action: SetStatus, options: RequestOptions) -> None:
        found = self._api.store.get(action.collection, action.key)
        if found is None or found["metadata"]["uid"] != action.uid or found.get("status") == action.status:
            return
        self._api.write(self._resource(action.collection), {**found, "status": action.status}, options)

    def _delete(self, action: DeleteDocument, options: RequestOptions) -> None:
        namespace, _, name = action.key.rpartition("/")
        delete_options = DeleteOptions(action.grace, action.propagation_policy, preconditions={"uid": action.uid})
        self._api.delete(self._resource(action.collection), namespace, name, delete_options, options)
        if action.event is not None:
            self._record(action.event, name, options.now)

    # -- events

    def _record_failure(self, event: RecordEvent, error: ApiError, now: float) -> None:
        self._record(
            RecordEvent(event.about, "FailedCreate", f"Error creating: {error.message}", event.component, "Warning"),
            "",
            now,
        )

    def _record(self, event: RecordEvent, name: str, now: float) -> None:
        """Create an event, or count a repeated one. Many similar events are combined into one."""
        about, message = event.about["metadata"], event.message.replace("{name}", name)
        kind = (about["uid"], event.reason, event.component)
        count, since = self._similar.get(kind, (0, now))
        if now - since > _SIMILAR_WITHIN:
            count, since = 0, now
        self._similar[kind] = count + 1, since
        same = (*kind, message)
        if count >= _MAX_SIMILAR:
            same, message = (*kind, ""), f"(combined from similar events): {message}"
        known, times = self._recorded.get(same, ("", 0))
        key = f"{about.get('namespace', 'default')}/{known}"
        stored = self._api.store.get("events", key) if known else None
        if stored is None:
            self._recorded[same] = self._write_event(event, message, now), 1
            return
        self._recorded[same] = known, times + 1
        more = {"count": times + 1, "lastTimestamp": stamp(now), "message": message}
        self._api.write(self._resource("events"), {**stored, **more}, RequestOptions(now))

    def _write_event(self, event: RecordEvent, message: str, now: float) -> str:
        about = event.about
        metadata = about["metadata"]
        namespace = metadata.get("namespace", "default")
        reference = {
            "kind": about["kind"], "apiVersion": about["apiVersion"], "name": metadata["name"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        }  # fmt: skip
        if "namespace" in metadata:
            reference["namespace"] = metadata["namespace"]
        self._last = max(int(now * 1e9), self._last + 1)  # names sort in the order of the events
        name = f"{metadata['name']}.{self._last:016x}"
        document = {
            "metadata": {"name": name, "namespace": namespace}, "involvedObject": reference, "reason": event.reason,
            "message": message, "source": {"component": event.component}, "reportingComponent": event.component,
            "firstTimestamp": stamp(now), "lastTimestamp": stamp(now), "count": 1, "type": event.type,
        }  # fmt: skip
        try:
            self._api.create(self._resource("events"), namespace, document, RequestOptions(now, "Ignore"))
        except ApiError:  # the namespace is terminating
            return ""
        return name
