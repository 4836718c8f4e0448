"""The subresource `token` of ServiceAccounts: a TokenRequest is answered with a token."""

from __future__ import annotations

from typing import Any

from stowplan.embedded.api import lifecycle
from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.authorization.tokens import BOUND, ISSUER, ServiceAccountTokens
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError, bad_request, conflict, invalid_value, not_found
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.schema import typed
from stowplan.embedded.timestamps import stamp

_TYPE, _KIND, _VERSION = "authentication.v1.TokenRequest", "TokenRequest", "authentication.k8s.io/v1"
_SECONDS, _FEWEST, _MOST = 3600, 600, 1 << 32


class TokenRequests:
    def __init__(self, api: Api, tokens: ServiceAccountTokens) -> None:
        self._api, self._tokens = api, tokens

    def issue(self, resource: ServedResource, namespace: str, name: str, raw: Any, options: RequestOptions) -> Document:
        """The request with its token."""
        spec = _decoded(raw).get("spec", {})
        account = self._api.get(resource, namespace, name)
        seconds = spec.get("expirationSeconds", _SECONDS)
        _check_seconds(seconds)
        reference = spec.get("boundObjectRef")
        bound = self._bound(reference, namespace, name) if reference else None
        audiences = spec.get("audiences") or [ISSUER]
        credential = lifecycle.new_uid(self._api.generator)
        token = self._tokens.issue(account, audiences, options.now, seconds, credential, bound)
        metadata = {"name": name, "namespace": namespace, "uid": account["metadata"]["uid"]}
        return {
            "apiVersion": _VERSION, "kind": _KIND, "metadata": metadata | {"creationTimestamp": stamp(options.now)},
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference},
            "status": {"token": token, "expirationTimestamp": stamp(options.now + seconds)},
        }  # fmt: skip

    def _bound(self, reference: Document, namespace: str, account: str) -> Document:
        """The object that a token is bound to. A pod is one of that account."""
        version, kind, name = (reference.get(field, "") for field in ("apiVersion", "kind", "name"))
        resource = self._api.catalogue.of_kind("v1", kind) if version == "v1" and kind in BOUND else None
        if resource is None:
            raise bad_request(f"cannot bind token to object of type /{version}, Kind={kind}")
        found = self._api.store.get(resource.collection, resource.key(namespace, name))
        if found is None:
            raise not_found(resource, name)
        if kind == "Pod" and found["spec"].get("serviceAccountName") != account:
            why = "to pod running with different serviceaccount name."
            raise bad_request(f'cannot bind token for serviceaccount "{account}" {why}')
        if reference.get("uid") not in (None, "", found["metadata"]["uid"]):
            held = found["metadata"]["uid"]
            why = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record."
            raise conflict(resource, name, f"{why} The object might have been deleted and then recreated ({held})")
        return found


def _decoded(raw: Any) -> Document:
    if not isinstance(raw, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {_KIND})")
    if raw.get("kind") not in (None, "", _KIND):
        raise bad_request(f'{raw["kind"]} in version "v1" cannot be handled as a {_KIND}: unknown conversion')
    try:
        return typed.decoded(_TYPE, raw)
    except typed.WrongTypeError as error:
        raise bad_request(f'{_KIND} in version "v1" cannot be handled as a {_KIND}: {error}') from None


def _check_seconds(seconds: int) -> None:
    if _FEWEST <= seconds <= _MOST:
        return
    few, most = "may not specify a duration less than 10 minutes", "may not specify a duration larger than 2^32 seconds"
    cause = invalid_value("spec.expirationSeconds", seconds, few if seconds < _FEWEST else most)
    details = {"group": "authentication.k8s.io", "kind": _KIND}
    causes = [{"reason": cause.reason, "message": cause.message, "field": cause.field}]
    message = f'{_KIND}.authentication.k8s.io "" is invalid: {cause.field}: {cause.message}'
    raise ApiError(422, "Invalid", message, {**details, "causes": causes})
