"""Reviews: they are answered, not stored.

There is one user, who has the token of the cluster and may do everything. Any other user (a scheduler asks about the
callers of its own port) is anonymous, and may do nothing.
"""

from __future__ import annotations

import hmac
from typing import Any

from stowplan.embedded.api.decoding import cannot_be_handled, unrecognized
from stowplan.embedded.documents import Document
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.schema import typed

USER: Document = {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}
_ANONYMOUS = "system:anonymous"


def answer(resource: ServedResource, raw: Any, token: str | None) -> Document:
    if not isinstance(raw, dict):
        raise unrecognized(resource, "json: cannot unmarshal into an object")
    try:
        review = typed.decoded(resource.type, raw)
    except typed.WrongTypeError as error:
        raise cannot_be_handled(resource, str(error)) from None
    found = {**review, "apiVersion": resource.api_version, "kind": resource.kind}
    return {**found, "status": _status(resource.kind, review.get("spec", {}), token)}


def _status(kind: str, spec: Document, token: str | None) -> Document:
    match kind:
        case "TokenReview":
            known = token is not None and hmac.compare_digest(spec.get("token", "").encode(), token.encode())
            return {"authenticated": True, "user": USER} if known else {"user": {}, "error": "invalid bearer token"}
        case "SelfSubjectReview":
            return {"userInfo": USER}
        case "SubjectAccessReview":
            return {"allowed": spec.get("user", "") not in ("", _ANONYMOUS)}
        case _:
            return {"allowed": True}
