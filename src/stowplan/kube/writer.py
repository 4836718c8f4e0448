"""Actions become requests, and how each one went becomes its result.

What the server decides (a conflict, a pod that is not there, no permission) is the result. What is only "not now"
is tried again until the action's deadline; then the result is status 0, and the engine has the object read again.
If an earlier try of a binding may have got through, a conflict is looked into: it may be with ourselves.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from stowplan.kube.client import JSON_PATCH, MERGE, STRATEGIC_MERGE, Client
from stowplan.kube.resources import PODS, RESOURCES, ApiResource
from stowplan.kube.responses import RefusedError, Response, UnreachableError
from stowplan.kube.transport import AGAIN
from stowplan.objects import actions, kinds
from stowplan.objects.actions import Action, PodRef
from stowplan.objects.changes import Change, Gone, Put, Result
from stowplan.objects.errors import StowplanError
from stowplan.objects.meta import Object, ObjectMeta
from stowplan.objects.pods import Pod

ANSWER_WITHIN = 30.0  # seconds for an action that names no deadline


class Recorder(Protocol):
    def record(self, event: actions.Record) -> None: ...


class Asker(Protocol):
    async def ask(self, question: actions.Ask) -> Result: ...


class Learner(Protocol):
    def __call__(self, change: Change, document: bytes = b"") -> None: ...


class Writer:
    """`learn` takes what a Read finds out (`Reflector.learn`), `pod` gives a pod as it is known now, by key.

    `clock` is the clock of the actions' deadlines, `now` the wall clock that goes into conditions.
    """

    def __init__(
        self,
        client: Client,
        *,
        learn: Learner,
        recorder: Recorder,
        extenders: Asker | None = None,
        pod: Callable[[str], Object | None] = lambda _: None,
        resources: Mapping[str, ApiResource] = RESOURCES,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client, self._learn, self._recorder, self.extenders = client, learn, recorder, extenders
        self._pod, self._resources, self._clock, self._now = pod, dict(resources), clock, now
        self._how: dict[type[Any], Callable[[Any, float], Awaitable[Result]]] = {
            actions.Bind: self._bind,
            actions.Evict: self._evict,
            actions.SetCondition: self._set_condition,
            actions.Nominate: self._nominate,
            actions.Patch: self._patch,
            actions.Create: self._create,
            actions.Delete: self._delete,
            actions.Read: self._read,
            actions.Record: self._record,
            actions.Ask: self._ask,
        }

    async def perform(self, action: Action) -> Result:
        """Do it, and say how it went; never raises, whatever a server does."""
        left = ANSWER_WITHIN if action.deadline is None else action.deadline - self._clock()
        until = asyncio.get_running_loop().time() + left
        try:
            return await self._how[type(action)](action, until)
        except UnreachableError as error:
            return Result(action.id, 0, f"no answer in time: {error}")
        except RefusedError as error:
            return Result(action.id, error.status, error.message)
        except StowplanError as error:
            return Result(action.id, 0, str(error))

    # -- one method for each action

    async def _bind(self, action: actions.Bind, until: float) -> Result:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": action.pod.name, "namespace": action.pod.namespace, "uid": action.pod.uid},
            "target": {"kind": "Node", "name": action.node_name},
        }
        answer = await self._client.post(PODS, _key(action.pod), "binding", body, until=until)
        if answer.status == 409 and answer.doubtful and await self._is_bound(action, until):
            return Result(action.id, 201)
        return _result(action, answer)

    async def _is_bound(self, action: actions.Bind, until: float) -> bool:
        answer = await self._client.get(PODS, _key(action.pod), until=until)
        if not answer.fine:
            return False
        pod = kinds.decode(Pod, answer.body)
        return pod.uid == action.pod.uid and pod.node_name == action.node_name

    async def _evict(self, action: actions.Evict, until: float) -> Result:
        """First why, then the deletion, as kube-scheduler does; a pod that is gone needs no second word."""
        condition = self._condition(action.pod, "DisruptionTarget", "True", action.reason, action.message)
        answer = await self._patch_status(action.pod, {"conditions": [condition]}, until)
        if answer.fine:
            answer = await self._client.delete(PODS, _key(action.pod), uid=action.pod.uid, until=until)
        return _result(action, answer)

    async def _set_condition(self, action: actions.SetCondition, until: float) -> Result:
        condition = self._condition(action.pod, "PodScheduled", action.status, action.reason, action.message)
        status: dict[str, Any] = {"conditions": [condition]}
        if action.nominated_node is not None:
            status["nominatedNodeName"] = action.nominated_node or None  # null takes it away
        return _result(action, await self._patch_status(action.pod, status, until))

    async def _nominate(self, action: actions.Nominate, until: float) -> Result:
        status = {"nominatedNodeName": action.node_name or None}
        return _result(action, await self._patch_status(action.pod, status, until))

    async def _patch(self, action: actions.Patch, until: float) -> Result:
        """One of the status alone goes to its subresource: elsewhere a server passes it over."""
        resource = await self._served(action.kind)
        if resource is None:
            return Result(action.id, 404, f"the server has no {action.kind}")
        body: dict[str, Any] | list[dict[str, Any]] = action.body
        subresource, form = "", JSON_PATCH
        if isinstance(body, dict):
            of_status = "status" in body and body.keys() <= {"metadata", "status"}
            subresource, form = "status" if of_status else "", MERGE
            body = self._timed(body) if of_status else body
        answer = await self._client.patch(
            resource, action.key, body, subresource=subresource, content_type=form, until=until
        )
        return _result(action, answer)

    async def _create(self, action: actions.Create, until: float) -> Result:
        resource = await self._served(action.kind)
        if resource is None:
            return Result(action.id, 404, f"the server has no {action.kind}")
        namespace, _, _ = action.key.rpartition("/")
        return _result(action, await self._client.create(resource, namespace, action.body, until=until))

    async def _delete(self, action: actions.Delete, until: float) -> Result:
        resource = await self._served(action.kind)
        if resource is None:
            return Result(action.id, 404, f"the server has no {action.kind}")
        answer = await self._client.delete(
            resource, action.key, uid=action.uid, version=action.resource_version, until=until
        )
        return _result(action, answer)

    def _timed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Plugins know no clock: conditions that come without the time of their last transition turn now."""
        conditions = body["status"].get("conditions")
        if not conditions:
            return body
        now = {"lastTransitionTime": self._now().strftime("%Y-%m-%dT%H:%M:%SZ")}
        return {**body, "status": {**body["status"], "conditions": [now | each for each in conditions]}}

    async def _read(self, action: actions.Read, until: float) -> Result:
        answer = await self._client.get(PODS, _key(action.pod), until=until)
        if answer.fine:
            found = kinds.decode(Pod, answer.body)
            if found.uid == action.pod.uid:
                self._learn(Put(found), answer.body)
                return _result(action, answer)
            answer = Response(404, [], b'{"message": "a later pod has its name"}')
        if answer.status == 404:
            self._learn(Gone(self._last_known(action.pod)))
        return _result(action, answer)

    async def _record(self, action: actions.Record, _until: float) -> Result:
        self._recorder.record(action)
        return Result(action.id, 202)

    async def _ask(self, action: actions.Ask, until: float) -> Result:
        if self.extenders is None:
            return Result(action.id, 0, "no extender is configured")
        left = until - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(left, 0.0)):
                return await self.extenders.ask(action)
        except TimeoutError:
            return Result(action.id, 0, "no answer in time")

    # --

    def _condition(self, ref: PodRef, kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
        """A condition for a merge patch; the time of its last transition stays where its status does."""
        condition: dict[str, Any] = {"type": kind, "status": status, "reason": reason, "message": message}
        known = self._pod(_key(ref))
        if isinstance(known, Pod) and known.uid == ref.uid:
            if known.metadata.generation:
                condition["observedGeneration"] = known.metadata.generation
            old = known.condition(kind)
            if old is not None and old.status == status:
                return condition
        condition["lastTransitionTime"] = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        return condition

    async def _patch_status(self, ref: PodRef, status: Mapping[str, Any], until: float) -> Response:
        body = {"metadata": {"uid": ref.uid}, "status": status}
        return await self._client.patch(
            PODS, _key(ref), body, subresource="status", content_type=STRATEGIC_MERGE, until=until
        )

    async def _served(self, kind: str) -> ApiResource | None:
        resource = self._resources.get(kind)
        if resource is None or resource.sure:
            return resource
        found = await self._client.served(resource)
        if found is not None:
            self._resources[kind] = found
        return found

    def _last_known(self, ref: PodRef) -> Object:
        known = self._pod(_key(ref))
        if known is not None and known.uid == ref.uid:
            return known
        return Pod(metadata=ObjectMeta(name=ref.name, namespace=ref.namespace, uid=ref.uid))


def _key(ref: PodRef) -> str:
    return f"{ref.namespace}/{ref.name}"


def _result(action: Action, answer: Response) -> Result:
    if answer.status in AGAIN:
        return Result(action.id, 0, f"no answer in time: {answer.status} {answer.message}")
    return Result(action.id, answer.status, answer.message)
