"""Carries out actions with requests to the API server, and answers each with a `Result`.

A decision of the server is the result: a conflict, a pod that does not exist, a missing permission. A temporary
failure is retried until the action's deadline; after it the result has status 0, and the engine has the object read
again. If an earlier attempt of a binding may have been carried out, a conflict may be with that attempt, so the pod is
read before the conflict is reported.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Protocol

from stowplan.kube import action_requests, claim_requests, prepared_requests
from stowplan.kube.action_requests import ActionRequest, key_of
from stowplan.kube.client import Client
from stowplan.kube.resources import PODS, RESOURCES, ApiResource
from stowplan.kube.responses import RefusedError, Response, UnreachableError
from stowplan.kube.transport import RETRIED
from stowplan.objects import claim_calls, kinds
from stowplan.objects.actions import (
    Action,
    AllocateClaims,
    Ask,
    Bind,
    ClaimAction,
    Create,
    DeallocateClaim,
    Delete,
    Patch,
    PodRef,
    Read,
    ReadObject,
    Record,
    ReleaseClaims,
    RequestEviction,
    written_part,
)
from stowplan.objects.changes import Change, Gone, Put, Result
from stowplan.objects.claim_calls import ClaimAnswer, ClaimOutcome
from stowplan.objects.errors import StowplanError
from stowplan.objects.in_part import read_in_part
from stowplan.objects.meta import Object, ObjectMeta
from stowplan.objects.pods import Pod
from stowplan.objects.resource_claims import ResourceClaim

ANSWER_WITHIN = 30.0  # seconds for an action without a deadline


class Recorder(Protocol):
    def record(self, event: Record) -> None: ...


class ExtenderClient(Protocol):
    async def ask(self, question: Ask) -> Result: ...


class Learner(Protocol):
    def __call__(self, change: Change, document: bytes = b"") -> None: ...


class Writer:
    """`learn` is given what a read finds out (`Reflector.learn`).

    `pod` returns the pod that is known under a key, `known` the object of any kind.

    `clock` is the clock of the actions' deadlines, `now` the wall clock of conditions.
    """

    def __init__(
        self,
        client: Client,
        *,
        learn: Learner,
        recorder: Recorder,
        extenders: ExtenderClient | None = None,
        pod: Callable[[str], Object | None] = lambda _: None,
        known: Callable[[str, str], Object | None] = lambda *_: None,
        resources: Mapping[str, ApiResource] = RESOURCES,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client, self._learn, self._recorder, self.extenders = client, learn, recorder, extenders
        self._pod, self._known, self._clock, self._now = pod, known, clock, now
        self._resources, self._found = dict(resources), dict[str, ApiResource]()  # as given, and as they are served

    def know(self, resources: Mapping[str, ApiResource]) -> None:
        """Write objects of these kinds, too."""
        self._resources.update(resources)
        self._found.clear()

    async def perform(self, action: Action) -> Result:
        """Carry out the action and return its result. Never raises, whatever the server does."""
        left = ANSWER_WITHIN if action.deadline is None else action.deadline - self._clock()
        until = asyncio.get_running_loop().time() + left
        try:
            return await self._perform(action, until)
        except UnreachableError as error:
            return Result(action.id, 0, f"no answer in time: {error}")
        except RefusedError as error:
            return Result(action.id, error.status, error.message)
        except StowplanError as error:
            return Result(action.id, 0, str(error))
        except Exception as error:  # an answer that nobody has thought of
            return Result(action.id, 0, f"{type(error).__name__}: {error}")

    async def _perform(self, action: Action, until: float) -> Result:
        match action:
            case Bind():
                return await self._bind(action, until)
            case Record():
                self._recorder.record(action)
                return Result(action.id, 202)
            case Ask():
                return await self._ask(action, until)
            case Read():
                return await self._read(action, until)
            case ReadObject():
                return await self._read_object(action, until)
            case Patch() | Create() | Delete():
                return await self._write(action, until)
            case RequestEviction():
                return await self._request_eviction(action)
            case AllocateClaims() | DeallocateClaim() | ReleaseClaims():
                return await self._write_claims(action, until)
            case _:
                requests = [*action_requests.for_pod(action, self._pod(key_of(action.pod)), self._now())]
        return _result(action, await self._send(requests, until))

    async def _write(self, action: Patch | Create | Delete, until: float) -> Result:
        """Write an object for a plugin."""
        resource = await self._served(action.kind)
        if resource is None:
            return Result(action.id, 404, f"the server has no {action.kind}")
        response = await self._send([action_requests.for_object(action, resource, self._now())], until)
        if response.status == 404 and resource.brought_by:
            self._found.pop(action.kind, None)  # its CRD may have another version by now, or be gone
            if written_part(action) == "status" and not await self._client.has_status(resource):
                problem = f"{resource.plural}.{resource.group} has no status to write"
                return Result(action.id, 405, f"{problem}: its CRD needs `subresources: {{status: {{}}}}`")
        return _result(action, response)

    async def _write_claims(self, action: ClaimAction, until: float) -> Result:
        """Carry out the calls one after the other. What the server says of a claim is known at once."""
        conversation = claim_calls.calls(action, self._known_claim, self._now())
        answer: ClaimAnswer | None = None
        while True:
            try:
                call = next(conversation) if answer is None else conversation.send(answer)
            except StopIteration as end:
                outcome: ClaimOutcome = end.value
                return Result(action.id, 0 if outcome.status in RETRIED else outcome.status, outcome.message)
            response = await self._client.send(claim_requests.request(call), until=until)
            answer = claim_requests.answer(call, response.status, response.body, response.message)
            if answer.claim is not None:
                self._learn(Put(answer.claim), response.body)

    def _known_claim(self, key: str) -> ResourceClaim | None:
        found = self._known("ResourceClaim", key)
        return found if isinstance(found, ResourceClaim) else None

    async def _request_eviction(self, action: RequestEviction) -> Result:
        """Asked once: 429 is the answer of a disruption budget, too, and the budget may need much time."""
        (request,) = action_requests.for_pod(action, None, self._now())
        response = await self._client.send(request)
        return Result(action.id, response.status, response.message)

    async def _send(self, requests: Iterable[ActionRequest], until: float) -> Response:
        """The response to the last request, or to the first one that failed."""
        for request in requests:
            response = await self._client.send(request, until=until)
            if not response.ok:
                break
        return response

    async def _bind(self, action: Bind, until: float) -> Result:
        prepared = prepared_requests.binding(action)
        if prepared is not None:
            response = await self._client.post(*prepared, until=until)
        else:
            response = await self._send(action_requests.for_pod(action, None, self._now()), until)
        if response.status == 409 and response.maybe_applied and await self._is_bound(action, until):
            return Result(action.id, 201)
        return _result(action, response)

    async def _is_bound(self, action: Bind, until: float) -> bool:
        response = await self._client.get(PODS, key_of(action.pod), until=until)
        if not response.ok:
            return False
        pod = _pod_in(response.body)
        return pod.uid == action.pod.uid and pod.node_name == action.node_name

    async def _read(self, action: Read, until: float) -> Result:
        response = await self._client.get(PODS, key_of(action.pod), until=until)
        if response.ok:
            found = _pod_in(response.body)
            if not found.uid:
                raise UnreachableError("the answer is no pod")
            if found.uid == action.pod.uid:
                self._learn(Put(found), response.body)
                return _result(action, response)
            response = Response(404, [], b'{"message": "a later pod has its name"}')
        if response.status == 404:
            self._learn(Gone(self._last_known(action.pod)))
        return _result(action, response)

    async def _read_object(self, action: ReadObject, until: float) -> Result:
        resource = await self._served(action.kind)
        if resource is None:
            return Result(action.id, 404, f"the server has no {action.kind}")
        response = await self._client.get(resource, action.key, until=until)
        if response.ok:
            self._learn(Put(resource.decode(response.body)), response.body)
        elif response.status == 404 and (known := self._known(action.kind, action.key)) is not None:
            self._learn(Gone(known))
        return _result(action, response)

    async def _ask(self, action: Ask, until: float) -> Result:
        if self.extenders is None:
            return Result(action.id, 0, "no extender is configured")
        left = until - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(left, 0.0)):
                return await self.extenders.ask(action)
        except TimeoutError:
            return Result(action.id, 0, "no answer in time")

    async def _served(self, kind: str) -> ApiResource | None:
        resource = self._found.get(kind) or self._resources.get(kind)
        if resource is None or resource.always_served:
            return resource
        found = await self._client.served(resource)
        if found is not None:
            self._found[kind] = found
        return found

    def _last_known(self, ref: PodRef) -> Object:
        known = self._pod(key_of(ref))
        if known is not None and known.uid == ref.uid:
            return known
        return Pod(metadata=ObjectMeta(name=ref.name, namespace=ref.namespace, uid=ref.uid))


def _pod_in(document: bytes) -> Pod:
    """A pod, or what can be read of it: where it is bound, above all."""
    try:
        return kinds.decode(Pod, document)
    except StowplanError:
        return read_in_part(Pod, document)


def _result(action: Action, response: Response) -> Result:
    if response.status in RETRIED:
        return Result(action.id, 0, f"no answer in time: {response.status} {response.message}")
    return Result(action.id, response.status, response.message)
