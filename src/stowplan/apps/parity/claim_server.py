"""An API server for the resource claims of a record: it answers the scheduler's calls, and writes them down.

The calls go through the embedded API server, so its validation and its resource versions apply. What it stores reaches
the scheduler's state before the answer does. A driver prepares devices the moment their claim is reserved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from stowplan.embedded.api.verbs import Api
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError
from stowplan.embedded.http.handlers import STRATEGIC_PATCH, Handlers
from stowplan.embedded.http.requests import JSON, Request
from stowplan.embedded.http.responses import ApiResponse
from stowplan.embedded.store import StoreChange
from stowplan.objects import claim_calls, kinds
from stowplan.objects.actions import ClaimAction
from stowplan.objects.changes import Change, Gone, Put
from stowplan.objects.claim_calls import ClaimAnswer, ClaimCall, ClaimOutcome
from stowplan.objects.resource_claims import ResourceClaim

NOW = datetime(2050, 1, 1, tzinfo=UTC)  # the records hold for any time from 2027 to 2098
CLAIMS = "resourceclaims.resource.k8s.io"
_METHODS = {"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_PLACE = ("driver", "pool", "device", "shareID")
_DUMP = re.compile(r"Invalid value: \{.*\}: ")  # an object in a text is printed differently by everybody


class ClaimServer:
    """`apply` is called with each change of a claim."""

    def __init__(self, lists: Mapping[str, Any], pods: Iterable[Document], apply: Callable[[Change], object]) -> None:
        self.calls: list[Document] = []
        self._apply, self._created = apply, dict[str, ResourceClaim]()
        self._api = Api()
        self._handlers = Handlers(self._api, NOW.timestamp)
        for namespace in lists.get("namespaces") or ():
            self._store("namespaces", "v1", "Namespace", namespace)
        for pod in pods:
            self._store("pods", "v1", "Pod", pod)
        for claim in lists.get("resourceClaims") or ():
            self._store(CLAIMS, "resource.k8s.io/v1", "ResourceClaim", claim)
        for pair in list(self._api.store.collection(CLAIMS).items.items()):
            self._apply(Put(kinds.convert(ResourceClaim, pair[1].document)))
        self._api.store.listeners.append(self._changed)

    def carry_out(self, action: ClaimAction) -> ClaimOutcome:
        """Answer all calls of an action."""
        conversation = claim_calls.calls(action, self._known, NOW)
        try:
            call = next(conversation)
            while True:
                call = conversation.send(self._answer(call))
        except StopIteration as end:
            outcome: ClaimOutcome = end.value
            return outcome

    def taken(self) -> list[Document]:
        """Return the calls since the last time."""
        calls, self.calls = self.calls, []
        return calls

    def replace(self, claim: Document) -> Callable[[], None]:
        """Let a claim be another one. The result takes that back."""
        key = f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
        before = self._api.store.get(CLAIMS, key)
        self._store(CLAIMS, "resource.k8s.io/v1", "ResourceClaim", claim)
        if before is None:
            return lambda: _ignored(self._api.store.remove(CLAIMS, key))
        return lambda: self._store(CLAIMS, "resource.k8s.io/v1", "ResourceClaim", before)

    def _store(self, collection: str, version: str, kind: str, found: Document) -> None:
        metadata = dict(found["metadata"])
        key = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        self._api.store.put(collection, key, {**found, "apiVersion": version, "kind": kind, "metadata": metadata})

    def _known(self, key: str) -> ResourceClaim | None:
        """Return a claim as the scheduler knows it. One that it has created it knows as it was created."""
        document = self._api.store.get(CLAIMS, key)
        if key in self._created or document is None:
            return self._created.get(key)
        return kinds.convert(ResourceClaim, document)

    # -- one call

    def _answer(self, call: ClaimCall) -> ClaimAnswer:
        row: Document = {"verb": call.verb, "resource": call.resource, "namespace": call.namespace}
        row |= {"subresource": call.subresource} if call.subresource else {}
        row |= {"name": call.name} if call.name else {}
        answer = self._send(call)
        if call.body is not None and (call.verb != "update" or call.subresource or answer.ok):
            row["patch" if call.verb == "patch" else "object"] = json.loads(json.dumps(call.body))
        if not answer.ok:
            row["error"] = without_dumps(answer.message)
        self.calls.append(row)
        return answer

    def _send(self, call: ClaimCall) -> ClaimAnswer:
        body = call.body
        if call.verb == "create" and body is not None:
            body = {**body, "metadata": {**body["metadata"], "name": self._next_name(body)}}
        elif call.verb == "update" and body is not None:
            body = self._updated(call, body)
        root = "/api/v1" if call.resource == "pods" else "/apis/resource.k8s.io/v1"
        path = f"{root}/namespaces/{call.namespace}/{call.resource}"
        path = "/".join(filter(None, (path, call.name, call.subresource)))
        media = STRATEGIC_PATCH if call.verb == "patch" else JSON
        sent = b"" if body is None else json.dumps(body).encode()
        try:
            answer = self._handlers.answer(Request(_METHODS[call.verb], path, content_type=media, body=sent))
        except ApiError as error:
            return ClaimAnswer(error.code, message=error.message)
        assert isinstance(answer, ApiResponse)  # nothing is watched
        if call.resource == "pods" or call.verb == "delete":
            return ClaimAnswer(answer.status)
        claim = kinds.convert(ResourceClaim, json.loads(answer.body))
        if call.verb == "create":
            self._created[claim.key] = claim
        return ClaimAnswer(answer.status, claim)

    def _next_name(self, body: Document) -> str:
        return f"{body['metadata'].get('generateName', '')}new{len(self._created) + 1}"

    def _updated(self, call: ClaimCall, body: Document) -> Document:
        """Return the whole object that an update sends."""
        stored = self._api.store.get(CLAIMS, f"{call.namespace}/{call.name}")
        if stored is None:
            return {"metadata": {"name": call.name}, **body}
        metadata = {**stored["metadata"], **body.get("metadata", {}), "resourceVersion": call.version}
        return {**stored, **body, "metadata": metadata}

    # -- what is stored

    def _changed(self, change: StoreChange) -> None:
        if change.collection != CLAIMS:
            return
        claim = kinds.convert(ResourceClaim, change.document)
        self._apply(Put(claim) if change.now is not None else Gone(claim))
        if change.now is not None and change.before is not None:
            self._prepare_devices(change.before, change.now)

    def _prepare_devices(self, before: Document, now: Document) -> None:
        """Play the driver: when a claim that nobody used is reserved, all conditions of its devices are true."""
        status = now.get("status", {})
        if before.get("status", {}).get("reservedFor") or not status.get("reservedFor") or "allocation" not in status:
            return
        results = status["allocation"]["devices"].get("results", ())
        waiting = [each for each in results if each.get("bindingConditions")]
        if waiting:
            ready = {_place(each): _prepared(each) for each in waiting}
            others = [each for each in status.get("devices", ()) if _place(each) not in ready]
            devices = [*others, *ready.values()]
            self._store(CLAIMS, now["apiVersion"], now["kind"], {**now, "status": {**status, "devices": devices}})


def _prepared(result: Document) -> Document:
    like = {"status": "True", "reason": "Prepared", "message": "", "lastTransitionTime": "2050-01-01T00:00:00Z"}
    conditions = [{"type": name, **like} for name in result["bindingConditions"]]
    return {**{name: result[name] for name in _PLACE if name in result}, "conditions": conditions}


def _place(found: Document) -> tuple[Any, ...]:
    return tuple(found.get(name) for name in _PLACE)


def _ignored(_: object) -> None:
    """Drop a result."""


def without_dumps(text: str) -> str:
    return _DUMP.sub("Invalid value: {...}: ", text)
