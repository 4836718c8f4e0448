"""The fake API server's side of writing resource claims: it answers the calls of `objects.claim_calls`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from stowplan.objects import claim_calls, kinds
from stowplan.objects.actions import ClaimAction
from stowplan.objects.changes import Result
from stowplan.objects.claim_calls import ClaimAnswer, ClaimCall
from stowplan.objects.meta import Object
from stowplan.objects.resource_claims import ResourceClaim, ResourceClaimStatus

NOT_FOUND = ClaimAnswer(404, message="not found")
CONFLICT = ClaimAnswer(409, message="the object has been modified")


class ClaimWrites:
    """`objects` are all objects by kind and key; `put` and `remove` change them."""

    def __init__(
        self,
        objects: dict[tuple[str, str], Object],
        put: Callable[[Object], None],
        remove: Callable[[Object], None],
    ) -> None:
        self._objects, self._put, self._remove = objects, put, remove
        self._made = 0

    def perform(self, action: ClaimAction, now: datetime) -> Result:
        """Carry out the calls of an action, and return its result."""
        outcome = claim_calls.carried_out(action, self._claim, now, self.answer)
        return Result(action.id, outcome.status, outcome.message)

    def answer(self, call: ClaimCall) -> ClaimAnswer:
        """Do what a call asks for."""
        if call.resource == "pods":
            known = ("Pod", f"{call.namespace}/{call.name}") in self._objects
            return ClaimAnswer(200) if known else NOT_FOUND
        if call.verb == "create":
            return self._create(call)
        claim = self._claim(f"{call.namespace}/{call.name}")
        if claim is None:
            return NOT_FOUND
        match call.verb:
            case "get":
                return ClaimAnswer(200, claim)
            case "delete":
                self._remove(claim)
                return ClaimAnswer(200)
            case "patch":
                leaving = {each["uid"] for each in (call.body or {})["status"]["reservedFor"]}
                kept = tuple(each for each in claim.status.reserved_for if each.uid not in leaving)
                changed = _with_status(claim, msgspec.structs.replace(claim.status, reserved_for=kept))
            case _ if call.version != claim.metadata.resource_version:
                return CONFLICT
            case _:
                changed = _updated(claim, call.body or {})
        self._put(changed)
        return ClaimAnswer(200, self._claim(claim.key))

    def _create(self, call: ClaimCall) -> ClaimAnswer:
        self._made += 1
        body: dict[str, Any] = kinds.without_nulls(call.body)
        name = f"{body['metadata']['generateName']}{self._made}"
        metadata = {**body["metadata"], "name": name, "uid": f"uid-of-{name}"}
        self._put(kinds.convert(ResourceClaim, {**body, "metadata": metadata}))
        return ClaimAnswer(201, self._claim(f"{call.namespace}/{name}"))

    def _claim(self, key: str) -> ResourceClaim | None:
        found = self._objects.get(("ResourceClaim", key))
        return found if isinstance(found, ResourceClaim) else None


def _updated(claim: ResourceClaim, body: dict[str, Any]) -> ResourceClaim:
    if "status" in body:
        return _with_status(claim, kinds.convert(ResourceClaim, {"status": body["status"]}).status)
    metadata = msgspec.structs.replace(claim.metadata, finalizers=tuple(body["metadata"]["finalizers"]))
    return msgspec.structs.replace(claim, metadata=metadata)


def _with_status(claim: ResourceClaim, status: ResourceClaimStatus) -> ResourceClaim:
    return msgspec.structs.replace(claim, status=status)
