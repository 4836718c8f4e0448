"""Carries out the actions of controllers with the verbs of the API, and has their events recorded."""

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
from stowplan.embedded.controllers.controller_events import ControllerEvents
from stowplan.embedded.errors import ApiError
from stowplan.embedded.resources import ServedResource


class ActionRunner:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._resources: dict[str, ServedResource] = {}
        self.events = ControllerEvents(api)

    def perform(self, action: Action, now: float) -> ApiError | None:
        """Carry out an action, and return why it failed, if it did. It succeeds if the object is gone already."""
        try:
            self._perform(action, RequestOptions(now, "Ignore"))
        except ApiError as error:
            if isinstance(action, CreateDocument) and not error.is_transient:
                for event in action.refusals or _failures(action.event):
                    self.events.record(event, event.message.replace("{error}", error.message), now)
            return None if error.code == 404 and not isinstance(action, CreateDocument) else error
        return None

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
                self.events.record(action, action.message, options.now)
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
            self._tell(action.event, created["metadata"]["name"], options.now)

    def _update(self, action: UpdateObject, options: RequestOptions) -> None:
        metadata = action.document["metadata"]
        resource = self._resource(action.collection)
        self._api.update(resource, metadata.get("namespace", ""), metadata["name"], action.document, options)
        if action.event is not None:
            self._tell(action.event, metadata["name"], options.now)

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
            self._tell(action.event, name, options.now)

    def _tell(self, event: RecordEvent, name: str, now: float) -> None:
        self.events.record(event, event.message.replace("{name}", name), now)


def _failures(event: RecordEvent | None) -> tuple[RecordEvent, ...]:
    if event is None:
        return ()
    return (RecordEvent(event.about, "FailedCreate", "Error creating: {error}", event.component, "Warning"),)
