"""Connects an engine with an embedded API server in the same process: no sockets, no clock, no random numbers.

    embedded store ── each change, once, in order ──► changes() ──► engine.handle
    embedded API  ◄── the requests of each action ─── perform() ◄── actions of handle and step
                  ── status code and message ───────► Result ─────► engine.handle

Actions become the same requests as over HTTP (`kube.action_requests`), so the API server's rules and status codes
apply: 404 for a pod that is gone, 409 for a second binding. The caller owns the time: it passes `now` to `perform`,
steps the controllers and the engine, and decides in which order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from stowplan.embedded.api import selectors
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError
from stowplan.embedded.http.handlers import Handlers
from stowplan.embedded.http.requests import Request
from stowplan.embedded.http.responses import ApiResponse
from stowplan.embedded.store import StoreChange
from stowplan.kube import action_requests, claim_requests
from stowplan.kube.action_requests import ActionRequest, key_of
from stowplan.kube.resources import RESOURCES, ApiResource
from stowplan.objects import claim_calls, kinds
from stowplan.objects.actions import (
    Action,
    AllocateClaims,
    Ask,
    ClaimAction,
    Create,
    DeallocateClaim,
    Delete,
    Patch,
    Read,
    ReadObject,
    Record,
    ReleaseClaims,
)
from stowplan.objects.changes import Change, Gone, Put, Result
from stowplan.objects.claim_calls import ClaimAnswer, ClaimCall
from stowplan.objects.errors import StowplanError
from stowplan.objects.meta import Object
from stowplan.objects.resource_claims import ResourceClaim

HOST = "simulation"  # the reporting instance of events


class _Watched(msgspec.Struct, frozen=True):
    """A kind that the engine reads, and which of its objects (None: all)."""

    resource: ApiResource
    matches: Callable[[Document], bool] | None


class Bridge:
    """Changes of an API server for an engine, and actions of the engine for the API server.

    `resources` are the kinds that the engine reads. `on_problem` gets one line for each object that cannot be read.
    Without `record_events`, events of the engine are not stored.
    """

    def __init__(
        self,
        api: Api,
        resources: Iterable[ApiResource],
        *,
        record_events: bool = True,
        on_problem: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._api, self._record_events, self._on_problem = api, record_events, on_problem
        self._resources = RESOURCES
        self._watched: dict[str, list[_Watched]] = {}  # by collection; a plugin may read a known kind by its own type
        for resource in resources:
            self._watched.setdefault(_collection(resource), []).append(_watched(resource))
            if resource.kind not in RESOURCES:
                self._resources = {**self._resources, resource.kind: resource}
        self._objects: dict[tuple[str, str], Object] = {}  # the last version that was put, by kind and key
        self._changes: deque[Change] = deque()
        self._now = 0.0
        self._handlers = Handlers(api, lambda: self._now)
        for collection in self._watched:
            for key, stored in list(api.store.collection(collection).items.items()):
                self._store_changed(StoreChange(collection, key, None, stored.document))
        api.store.listeners.append(self._store_changed)

    def close(self) -> None:
        """Stop following the API server."""
        self._api.store.listeners.remove(self._store_changed)

    # -- changes of the cluster

    def changes(self) -> Iterator[Change]:
        """Every change that was not yet returned, in the order in which the API server made them.

        The first call returns the objects that exist already. Changes that happen during the iteration are included.
        """
        while self._changes:
            yield self._changes.popleft()

    def _store_changed(self, change: StoreChange) -> None:
        for watched in self._watched.get(change.collection, ()):
            self._object_changed(watched, change)

    def _object_changed(self, watched: _Watched, change: StoreChange) -> None:
        place = watched.resource.kind, change.key
        document = change.now
        if document is not None and (watched.matches is None or watched.matches(document)):
            found = self._decode(watched.resource, document)
            if found is not None:
                self._objects[place] = found
                self._changes.append(Put(found))
        elif (known := self._objects.pop(place, None)) is not None:
            last = self._decode(watched.resource, _last(change))
            self._changes.append(Gone(known if last is None else last))

    def _decode(self, resource: ApiResource, document: Document) -> Object | None:
        """Through JSON, since the typed decoder is several times faster than a conversion of the dictionary."""
        try:
            return resource.decode(msgspec.json.encode(document))
        except StowplanError as error:
            metadata = document["metadata"]
            key = "/".join(filter(None, (metadata.get("namespace"), metadata.get("name"))))
            self._on_problem(resource.unreadable(error, key))
            return None

    # -- actions of the engine

    def perform(self, action: Action, now: float) -> Result:
        """Carry out the action at the time `now` (seconds since 1970) and return its result."""
        self._now = now
        moment = datetime.fromtimestamp(now, UTC)
        match action:
            case Ask():
                return Result(action.id, 0, "no extender is configured")
            case Record():
                return self._record(action, moment)
            case Read():
                return self._read(action)
            case ReadObject():
                return self._read_object(action)
            case Patch() | Create() | Delete():
                resource = self._served(action.kind)
                if resource is None:
                    return Result(action.id, 404, f"the server has no {action.kind}")
                return self._send(action, [action_requests.for_object(action, resource, moment)])
            case AllocateClaims() | DeallocateClaim() | ReleaseClaims():
                return self._write_claims(action, moment)
            case _:
                known = self._objects.get(("Pod", key_of(action.pod)))
                return self._send(action, action_requests.for_pod(action, known, moment))

    def _send(self, action: Action, requests: Iterable[ActionRequest]) -> Result:
        """The result of the last request, or of the first one that failed."""
        result = Result(action.id)
        for request in requests:
            status, message = self._answer(request)
            result = Result(action.id, status, message)
            if not result.succeeded:
                break
        return result

    def _write_claims(self, action: ClaimAction, moment: datetime) -> Result:
        outcome = claim_calls.carried_out(action, self._known_claim, moment, self._respond_to_claim_call)
        return Result(action.id, outcome.status, outcome.message)

    def _respond_to_claim_call(self, call: ClaimCall) -> ClaimAnswer:
        status, message, body = self._respond(claim_requests.request(call))
        return claim_requests.answer(call, status, body, message)

    def _known_claim(self, key: str) -> ResourceClaim | None:
        document = self._api.store.get("resourceclaims.resource.k8s.io", key)
        return None if document is None else kinds.convert(ResourceClaim, document)

    def _answer(self, request: ActionRequest) -> tuple[int, str]:
        status, message, _ = self._respond(request)
        return status, message

    def _respond(self, request: ActionRequest) -> tuple[int, str, bytes]:
        body = b"" if request.body is None else msgspec.json.encode(request.body)
        try:
            answer = self._handlers.answer(
                Request(request.method, request.path, content_type=request.content_type, body=body)
            )
        except ApiError as error:
            return error.code, error.message, b""
        assert isinstance(answer, ApiResponse)  # only a GET with watch=1 returns a watch
        return answer.status, "", answer.body

    def _read(self, action: Read) -> Result:
        """The status alone: the pod itself is among the changes already, since no change is ever late here."""
        document = self._api.store.get("pods", key_of(action.pod))
        if document is None or document["metadata"]["uid"] != action.pod.uid:
            return Result(action.id, 404, f'pods "{action.pod.name}" not found')
        return Result(action.id)

    def _read_object(self, action: ReadObject) -> Result:
        """The status alone, as in `_read`."""
        resource = self._served(action.kind)
        document = None if resource is None else self._api.store.get(_collection(resource), action.key)
        return Result(action.id) if document is not None else Result(action.id, 404, f"{action.key} not found")

    def _record(self, action: Record, moment: datetime) -> Result:
        """Create an Event. Every event is an object of its own: there are no series."""
        if not self._record_events:
            return Result(action.id, 202)
        name = f"{action.pod.name}.{self._api.store.version:x}"  # unique, since each event raises the version
        return self._send(action, [action_requests.event(action, name=name, at=moment, host=HOST)])

    def _served(self, kind: str) -> ApiResource | None:
        """The kind at the first of its versions that the API server serves."""
        resource = self._resources.get(kind)
        if resource is None:
            return None
        served = self._api.catalogue.versions(resource.group)
        found = (version for version in resource.versions or served if self._serves(resource, version))
        return next((resource.at(version) for version in found), None)

    def _serves(self, resource: ApiResource, version: str) -> bool:
        return self._api.catalogue.find(resource.group, version, resource.plural) is not None


def _collection(resource: ApiResource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _watched(resource: ApiResource) -> _Watched:
    fields = selectors.fields(resource.fields, _collection(resource))
    return _Watched(resource, selectors.matcher(selectors.labels(resource.labels), fields))


def _last(change: StoreChange) -> Document:
    """The last that is told of an object: of one that a selector does not match any more, the version before."""
    if change.now is None or change.before is None:
        return change.document
    version = change.now["metadata"]["resourceVersion"]
    return {**change.before, "metadata": {**change.before["metadata"], "resourceVersion": version}}
