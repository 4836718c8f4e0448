"""Who may read what a program serves: the API server is asked, as kube's own components do.

A token is reviewed (TokenReview), and whether its owner may get the path, or do something with an object that a page is
about (SubjectAccessReview). Answers are kept for ten seconds. Who brings no token is system:anonymous.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from stowplan.kube.client import Client
from stowplan.kube.resources import ApiResource
from stowplan.kube.responses import WireError

TOKENS = ApiResource("TokenReview", "tokenreviews", "authentication.k8s.io", namespaced=False)
ACCESS = ApiResource("SubjectAccessReview", "subjectaccessreviews", "authorization.k8s.io", namespaced=False)
KEPT_FOR = 10.0  # seconds
MOST_KEPT = 1000
ANONYMOUS = {"username": "system:anonymous", "groups": ["system:unauthenticated"]}

Refusal = tuple[int, str]
Attributes: TypeAlias = dict[str, str]  # of a resource, as a SubjectAccessReview names them


class Authorizer:
    def __init__(
        self, authentication: Client, authorization: Client, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._authentication, self._authorization, self._clock = authentication, authorization, clock
        self._kept: dict[tuple[Any, ...], tuple[float, Refusal | None]] = {}

    async def refusal(self, authorization: str, path: str, about: Attributes | None = None) -> Refusal | None:
        """Why not, with a status; None if it may. `about` is the object that the right is for, instead of the path."""
        question = (authorization, path, *sorted((about or {}).items()))
        kept = self._kept.get(question)
        if kept is not None and self._clock() - kept[0] < KEPT_FOR:
            return kept[1]
        try:
            answer = await self._judge(authorization, path, about)
        except (WireError, msgspec.MsgspecError) as error:
            return 500, f"the API server cannot be asked: {error}"
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[question] = (self._clock(), answer)
        return answer

    async def _judge(self, authorization: str, path: str, about: Attributes | None) -> Refusal | None:
        user: dict[str, Any] = ANONYMOUS
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and token:
            review = await self._review(self._authentication, TOKENS, {"token": token})
            if not review.get("authenticated"):
                return 401, "Unauthorized"
            user = review.get("user", {})
        spec = {
            "user": user.get("username", ""),
            "groups": user.get("groups", []),
            "uid": user.get("uid", ""),
            "extra": user.get("extra") or {},
        }
        if about is None:
            spec["nonResourceAttributes"] = {"path": path, "verb": "get"}
        else:
            spec["resourceAttributes"] = about
        if (await self._review(self._authorization, ACCESS, spec)).get("allowed"):
            return None
        return 403, f'forbidden: User "{spec["user"]}" cannot {_what(path, about)}'

    @staticmethod
    async def _review(client: Client, resource: ApiResource, spec: dict[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": f"{resource.group}/v1", "kind": resource.kind, "spec": spec}
        answer = await client.create(resource, "", body)
        if not answer.ok:
            raise WireError(f"{resource.kind}: {answer.status} {answer.message}")
        decoded: dict[str, Any] = msgspec.json.decode(answer.body)
        return decoded.get("status", {})  # type: ignore[no-any-return]

    async def close(self) -> None:
        await self._authentication.close()
        await self._authorization.close()


def _what(path: str, about: Attributes | None) -> str:
    if about is None:
        return f'get path "{path}"'
    what = f'resource "{about["resource"]}" in API group "{about["group"]}" in the namespace "{about["namespace"]}"'
    return f"{about['verb']} {what}"
