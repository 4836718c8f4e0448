"""Authorization of a client of the pages, by the API server, as the components of Kubernetes do it.

A TokenReview names the user of the client's token. A SubjectAccessReview says whether that user may get the path, or
has a right to the resource that the page shows. Answers are cached for ten seconds. A client without a token is
system:anonymous.

Anybody can make us ask, so the questions are bounded (`reviews`): how many are asked at once, how many wait, and for
how long. A token that was let in lately has a line of its own: a scraper does not wait behind a crowd of strangers.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

import msgspec

from stowplan.apps.reviews import REVIEW_WITHIN, CrowdedError, RecentAnswers, ReviewLine
from stowplan.kube.client import Client
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import WireError

TOKENS = ApiResource("TokenReview", "tokenreviews", "authentication.k8s.io", namespaced=False)
ACCESS = ApiResource("SubjectAccessReview", "subjectaccessreviews", "authorization.k8s.io", namespaced=False)
CACHED_FOR = 10.0  # seconds
MAX_CACHED = 1000
KNOWN_FOR = 600.0  # seconds for which a token that was let in is no stranger: longer than between two scrapes
MAX_KNOWN = 100

R = TypeVar("R")
Refusal: TypeAlias = tuple[int, str]  # a status and a message
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
UNAUTHORIZED: Refusal = (401, "Unauthorized")


class Authorizer:
    def __init__(
        self, authentication: Client, authorization: Client, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._authentication, self._authorization = authentication, authorization
        self._users = RecentAnswers[User | Refusal](MAX_CACHED, CACHED_FOR, clock)
        self._access = RecentAnswers[bool](MAX_CACHED, CACHED_FOR, clock)
        self._known = RecentAnswers[bool](MAX_KNOWN, KNOWN_FOR, clock)
        self._strangers, self._friends = ReviewLine(), ReviewLine()

    async def user_of(self, authorization: str) -> User | Refusal:
        """Return whose token this is, or why the client is refused whatever it wants."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS
        question = _digest("token", token)

        async def review() -> User | Refusal:
            answer = await _review(self._authentication, TOKENS, {"token": token}, _TokenReview)
            return answer.status.user if answer.status.authenticated else UNAUTHORIZED

        return await self._answered(self._users, question, authorization, review)

    async def refusal(
        self, authorization: str, path: str, resource: ResourceAttributes | None = None
    ) -> Refusal | None:
        """Why the client is refused; None if it is not. `resource`: what it needs a right to, instead of the path."""
        user = await self.user_of(authorization)
        if not isinstance(user, User):
            return user
        wanted: dict[str, object] = (
            {"nonResourceAttributes": {"path": path, "verb": "get"}}
            if resource is None
            else {"resourceAttributes": resource}
        )

        async def review() -> bool:
            groups, extra = user.groups or [], user.extra or {}
            spec = {"user": user.username, "groups": groups, "uid": user.uid, "extra": extra, **wanted}
            return (await _review(self._authorization, ACCESS, spec, _AccessReview)).status.allowed

        question = _digest(
            "access", authorization, path, *(f"{key}={value}" for key, value in (resource or {}).items())
        )
        allowed = await self._answered(self._access, question, authorization, review)
        if isinstance(allowed, tuple):
            return allowed
        if not allowed:
            return 403, f'forbidden: User "{user.username}" cannot {_described(path, resource)}'
        if user is not ANONYMOUS:
            self._known.keep(_digest(authorization), answer=True)
        return None

    async def _answered(
        self, recent: RecentAnswers[R], question: bytes, authorization: str, review: Callable[[], Awaitable[R]]
    ) -> R | Refusal:
        """Return a recent answer, or that of a review, or why there is none."""
        if (found := recent.get(question)) is not None:
            return found
        line = self._strangers if self._known.get(_digest(authorization)) is None else self._friends
        try:
            answer = await line.ask(question, review)
        except CrowdedError:
            return 503, "too many clients wait for the API server to review them: try again later"
        except TimeoutError:
            return 500, f"the API server did not answer: no review within {REVIEW_WITHIN:g} s"
        except (WireError, msgspec.MsgspecError) as error:
            return 500, f"the API server did not answer: {error}"
        recent.keep(question, answer)
        return answer

    async def close(self) -> None:
        self._strangers.close()
        self._friends.close()
        await self._authentication.close()
        await self._authorization.close()


def _digest(*parts: str) -> bytes:
    """Return a short name of a question, which may be long. It tells nobody the token."""
    return hashlib.sha256(msgspec.json.encode(parts)).digest()


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
