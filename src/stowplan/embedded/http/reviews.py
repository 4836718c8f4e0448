"""Reviews: questions about tokens and rights. They are answered, not stored.

Without RBAC everything is allowed, to anybody but those who are nobody (a scheduler asks about the callers of its own
port).
"""

from __future__ import annotations

from typing import Any

import msgspec

from stowplan.embedded.api.decoding import cannot_be_handled, unrecognized
from stowplan.embedded.authorization.access_request import AccessRequest
from stowplan.embedded.authorization.authorizer import AccessDecision, joined
from stowplan.embedded.authorization.rules import EVERYTHING
from stowplan.embedded.authorization.tokens import ISSUER
from stowplan.embedded.authorization.users import ANONYMOUS, ApiUser
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError, StatusCause, bad_request, invalid_value
from stowplan.embedded.http.access_control import AccessControl
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.schema import typed
from stowplan.embedded.timestamps import stamp

_ONE = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


class Reviewer:
    def __init__(self, access: AccessControl) -> None:
        self._access = access

    def answer(self, resource: ServedResource, namespace: str, raw: Any, user: ApiUser, now: float) -> Document:
        """The review with its status. `user` asks."""
        if not isinstance(raw, dict):
            raise unrecognized(resource, "json: cannot unmarshal into an object")
        try:
            review = typed.decoded(resource.type, raw)
        except typed.WrongTypeError as error:
            raise cannot_be_handled(resource, str(error)) from None
        found = {**review, "apiVersion": resource.api_version, "kind": resource.kind}
        if namespace:
            found["metadata"] = {**found["metadata"], "namespace": namespace}
        if resource.kind == "SelfSubjectReview":
            about = {"metadata": {**found["metadata"], "creationTimestamp": stamp(now)}}
            return {**found, **about, "status": {"userInfo": user.info()}}
        return {**found, "status": self._status(resource.kind, namespace, found.get("spec", {}), user, now)}

    def _status(self, kind: str, namespace: str, spec: Document, user: ApiUser, now: float) -> Document:
        match kind:
            case "TokenReview":
                return self._of_token(spec, now)
            case "SelfSubjectRulesReview":
                return self._rules(user, spec.get("namespace", ""))
            case "SelfSubjectAccessReview":
                _check(spec, named=True)
                return _shown(self._access.decide(user, _asked(spec)))
            case _:
                _check(spec, named=bool(spec.get("user") or spec.get("groups")))
                if kind == "LocalSubjectAccessReview":
                    _check_namespace(spec, namespace)
                return _shown(self._of_subject(spec))

    def _of_subject(self, spec: Document) -> AccessDecision:
        groups = tuple(spec.get("groups", ()))
        user = ApiUser(spec.get("user", ""), groups, spec.get("uid", ""), spec.get("extra", {}))
        if self._access.enforced:
            return self._access.decide(user, _asked(spec))
        return AccessDecision(user.name not in ("", ANONYMOUS.name))

    def _of_token(self, spec: Document, now: float) -> Document:
        token = spec.get("token", "")
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        owner = self._access.authenticator.owner(token, now, spec.get("audiences") or (ISSUER,))
        if owner is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": owner.user.info(), "audiences": list(owner.audiences)}

    def _rules(self, user: ApiUser, namespace: str) -> Document:
        if not namespace:
            raise bad_request("no namespace on request")
        everything = [*EVERYTHING], list[str]()
        found, lost = self._access.authorizer.rules(user, namespace) if self._access.enforced else everything
        written = [msgspec.to_builtins(rule) for rule in found]
        status: Document = {
            "resourceRules": [rule for rule in written if "resources" in rule],
            "nonResourceRules": [rule for rule in written if "nonResourceURLs" in rule],
            "incomplete": bool(lost),
        }
        return {**status, "evaluationError": joined(lost)} if lost else status


def _asked(spec: Document) -> AccessRequest:
    if (attributes := spec.get("nonResourceAttributes")) is not None:
        return AccessRequest(attributes.get("verb", ""), path=attributes.get("path", "") or "/")
    attributes = spec["resourceAttributes"]
    fields = ("verb", "group", "resource", "subresource", "name", "namespace")
    return AccessRequest(*(attributes.get(field, "") for field in fields))


def _shown(decision: AccessDecision) -> Document:
    return {"allowed": decision.allowed} | ({"reason": decision.reason} if decision.reason else {})


def _check(spec: Document, *, named: bool) -> None:
    causes = []
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        shown = {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
        why = "cannot be specified in combination with resourceAttributes"
        causes.append(invalid_value("spec.nonResourceAttributes", shown, why))
    elif resource is None and path is None:
        causes.append(invalid_value("spec.resourceAttributes", None, _ONE))
    if not named:
        causes.append(invalid_value("spec.user", "", "at least one of user or group must be specified"))
    if causes:
        raise _invalid(causes)


def _check_namespace(spec: Document, namespace: str) -> None:
    attributes = spec.get("resourceAttributes")
    if attributes is None:
        raise _invalid([invalid_value("spec.nonResourceAttributes", None, "disallowed on this kind of request")])
    if attributes.get("namespace", "") != namespace:
        given = attributes.get("namespace", "")
        raise _invalid([invalid_value("spec.resourceAttributes.namespace", given, "must match metadata.namespace")])


def _invalid(causes: list[StatusCause]) -> ApiError:
    """422. Kubernetes names no kind there."""
    said = [f"{cause.field}: {cause.message}" for cause in causes]
    text = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    details = [{"reason": each.reason, "message": each.message, "field": each.field} for each in causes]
    message = f'.authorization.k8s.io "" is invalid: {text}'
    return ApiError(422, "Invalid", message, {"group": "authorization.k8s.io", "causes": details})
