"""The requests that carry out the calls of `objects.claim_calls`.

An update becomes a merge patch of the fields that it is about, with the resourceVersion: the server refuses it if the
claim has changed since, as it refuses an update, and fields that we do not know stay as they are.
"""

from __future__ import annotations

from typing import Any

from stowplan.kube.action_requests import JSON, MERGE_PATCH, STRATEGIC_MERGE_PATCH, ActionRequest, Document
from stowplan.kube.resources import RESOURCES, ApiResource
from stowplan.objects import kinds
from stowplan.objects.claim_calls import ClaimAnswer, ClaimCall
from stowplan.objects.errors import StowplanError
from stowplan.objects.resource_claims import ResourceClaim

_BY_PLURAL: dict[str, ApiResource] = {RESOURCES[kind].plural: RESOURCES[kind] for kind in ("Pod", "ResourceClaim")}


def request(call: ClaimCall) -> ActionRequest:
    """Return the request of a call."""
    resource = _BY_PLURAL[call.resource]
    path = resource.path(f"{call.namespace}/{call.name}", call.subresource)
    match call.verb:
        case "get":
            return ActionRequest("GET", path)
        case "create":
            body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **_without_nulls(call.body or {})}
            return ActionRequest("POST", resource.collection(call.namespace), body, JSON)
        case "delete":
            return ActionRequest("DELETE", path)
        case "patch":
            return ActionRequest("PATCH", path, call.body, STRATEGIC_MERGE_PATCH)
        case _:
            return ActionRequest("PATCH", path, _merged(call), MERGE_PATCH)


def _merged(call: ClaimCall) -> Document:
    body = call.body or {}
    metadata = {**body.get("metadata", {}), **({"resourceVersion": call.version} if call.version else {})}
    if call.subresource != "status":
        return {"metadata": metadata}
    said: dict[str, Any] = body["status"]
    status: dict[str, Any] = {"allocation": said.get("allocation"), "reservedFor": said.get("reservedFor")}
    if not said.get("allocation"):
        status["devices"] = None
    return {"metadata": metadata, "status": status}


def _without_nulls(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _without_nulls(value) for key, value in found.items() if value is not None}
    return found


def answer(call: ClaimCall, status: int, body: bytes, message: str) -> ClaimAnswer:
    """Return the answer to a call, with the claim if the server sent one."""
    if not 200 <= status < 300 or call.resource != "resourceclaims" or call.verb == "delete":
        return ClaimAnswer(status, None, message)
    try:
        return ClaimAnswer(status, kinds.decode(ResourceClaim, body), message)
    except StowplanError as error:
        return ClaimAnswer(0, None, f"the answer is no claim: {error}")
