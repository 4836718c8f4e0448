"""Authorization of a client of the pages, by the API server, as the components of Kubernetes do it.

A TokenReview names the user of the client's token. A SubjectAccessReview says whether that user may get the path, or
has a right to the resource that the page shows. Answers are cached for ten seconds. A client without a token is
system:anonymous.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

import msgspec

from stowplan.kube.client import Client
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import WireError

TOKENS = ApiResource("TokenReview", "tokenreviews", "authentication.k8s.io", namespaced=False)
ACCESS = ApiResource("SubjectAccessReview", "subjectaccessreviews", "authorization.k8s.io", namespaced=False)
CACHED_FOR = 10.0  # seconds
MAX_CACHED = 1000

R = TypeVar("R")
Refusal: TypeAlias = tuple[int, str]  # a status and a message
_Question: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]
ResourceAttributes: TypeAlias = dict[str, str]  # in the words of a SubjectAccessReview


class User(msgspec.Struct):
    """A user, as a TokenReview names it."""

    username: str = ""
    groups: list[str] | None = None
    uid: str = ""
    extra: dict[str, list[str]] | None = None


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: User = msgspec.field(default_factory=User)


class _TokenReview(msgspec.Struct):
    status: _TokenStatus = msgspec.field(default_factory=_TokenStatus)


class _AccessStatus(msgspec.Struct):
    allowed: bool = False


class _AccessReview(msgspec.Struct):
    status: _AccessStatus = msgspec.field(default_factory=_AccessStatus)


ANONYMOUS = User("system:anonymous", ["system:unauthenticated"])


class Authorizer:
    def __init__(
        self, authentication: Client, authorization: Client, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._authentication, self._authorization, self._clock = authentication, authorization, clock
        self._cache: dict[_Question, tuple[float, Refusal | None]] = {}

    async def refusal(
        self, authorization: str, path: str, resource: ResourceAttributes | None = None
    ) -> Refusal | None:
        """Why the client is refused; None if it is not. `resource`: what it needs a right to, instead of the path."""
        question = (authorization, path, tuple(sorted((resource or {}).items())))
        cached = self._cache.get(question)
        if cached is not None and self._clock() - cached[0] < CACHED_FOR:
            return cached[1]
        try:
            answer = await self._review_access(authorization, path, resource)
        except (WireError, msgspec.MsgspecError) as error:
            return 500, f"the API server did not answer: {error}"
        if len(self._cache) >= MAX_CACHED:
            self._cache.clear()
        self._cache[question] = (self._clock(), answer)
        return answer

    async def _review_access(
        self, authorization: str, path: str, resource: ResourceAttributes | None
    ) -> Refusal | None:
        user = ANONYMOUS
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and token:
            review = await _review(self._authentication, TOKENS, {"token": token}, _TokenReview)
            if not review.status.authenticated:
                return 401, "Unauthorized"
            user = review.status.user
        groups, extra = user.groups or [], user.extra or {}
        spec: dict[str, object] = {"user": user.username, "groups": groups, "uid": user.uid, "extra": extra}
        if resource is None:
            spec["nonResourceAttributes"] = {"path": path, "verb": "get"}
        else:
            spec["resourceAttributes"] = resource
        if (await _review(self._authorization, ACCESS, spec, _AccessReview)).status.allowed:
            return None
        return 403, f'forbidden: User "{user.username}" cannot {_described(path, resource)}'

    async def close(self) -> None:
        await self._authentication.close()
        await self._authorization.close()


async def _review(client: Client, resource: ApiResource, spec: Mapping[str, object], review: type[R]) -> R:
    """Create a review; what the API server makes of it."""
    body = {"apiVersion": f"{resource.group}/v1", "kind": resource.kind, "spec": spec}
    answer = await client.create(resource, "", body)
    if not answer.ok:
        raise WireError(f"{resource.kind}: {answer.status} {answer.message}")
    return msgspec.json.decode(answer.body, type=review)


def _described(path: str, wanted: ResourceAttributes | None) -> str:
    if wanted is None:
        return f'get path "{path}"'
    what = f'resource "{wanted["resource"]}" in API group "{wanted["group"]}" in the namespace "{wanted["namespace"]}"'
    return f"{wanted['verb']} {what}"
