"""Who sends a request, and whether they may: the headers of authentication and impersonation, and the 401 and 403.

Without RBAC everything is allowed: who sends no token that the server knows is the administrator.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from stowplan.embedded.authorization import access_request, impersonation
from stowplan.embedded.authorization.access_request import AccessRequest
from stowplan.embedded.authorization.authorizer import AccessDecision, RoleAuthorizer
from stowplan.embedded.authorization.role_index import RoleIndex
from stowplan.embedded.authorization.tokens import Authenticator, ServiceAccountTokens
from stowplan.embedded.authorization.users import ADMIN, ANONYMOUS, ApiUser
from stowplan.embedded.errors import ApiError, bad_request, unauthorized
from stowplan.embedded.store import DocumentStore

_EXTRA = "impersonate-extra-"


class AccessControl:
    """`enforced`: by RBAC."""

    def __init__(self, authenticator: Authenticator, authorizer: RoleAuthorizer, *, enforced: bool) -> None:
        self.authenticator, self.authorizer, self.enforced = authenticator, authorizer, enforced

    def admitted(
        self, method: str, path: str, query: Mapping[str, str], headers: list[tuple[str, str]], now: float
    ) -> ApiUser:  # fmt: skip
        """The user as whom a request is carried out. Raises 401 or 403 if it is refused."""
        asked = access_request.of_http(method, path, query)
        headers = [(name, _readable(value)) for name, value in headers]
        user = self._authenticated(headers, now)
        wanted = _impersonated(headers)
        if wanted is not None:
            self._check_impersonation(user, wanted, asked)
            user = impersonation.impersonated(wanted)
        self.check(user, asked)
        return user

    def check(self, user: ApiUser, asked: AccessRequest) -> None:
        """Raise 403 if a user may not do what is asked for."""
        decision = self.decide(user, asked)
        if not decision.allowed:
            raise refused(user, asked, decision.reason)

    def decide(self, user: ApiUser, asked: AccessRequest) -> AccessDecision:
        return self.authorizer.decide(user, asked) if self.enforced else AccessDecision(True)

    def _authenticated(self, headers: list[tuple[str, str]], now: float) -> ApiUser:
        values = [value for name, value in headers if name.lower() == "authorization"]
        scheme, _, token = (values[0] if values else "").strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return ANONYMOUS if self.enforced else ADMIN
        owner = self.authenticator.owner(token.strip(), now)
        if owner is None and self.enforced:
            raise unauthorized()
        return owner.user if owner is not None else ADMIN

    def _check_impersonation(self, user: ApiUser, wanted: ApiUser, asked: AccessRequest) -> None:
        if not self.enforced:
            return
        lacking = impersonation.refusal(self.authorizer, user, wanted, asked)
        if lacking is not None:
            raise refused(user, lacking.request, lacking.reason)


def _readable(value: str) -> str:
    """The value of a header without what is no UTF-8."""
    return value if value.isascii() else value.encode(errors="surrogateescape").decode(errors="replace")


def access_to(store: DocumentStore, secret: bytes, *, enforced: bool) -> AccessControl:
    """The access to the objects of a store. Tokens of ServiceAccounts are signed with the secret."""
    authenticator = Authenticator(ServiceAccountTokens(store, secret))
    return AccessControl(authenticator, RoleAuthorizer(RoleIndex(store)), enforced=enforced)


def refused(user: ApiUser, asked: AccessRequest, reason: str = "") -> ApiError:
    """403, letter for letter that of Kubernetes."""
    why = asked.refusal(user.name) + (f": {reason}" if reason else "")
    if asked.path:
        return ApiError(403, "Forbidden", f"forbidden: {why}", {})
    full = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    name = f' "{asked.name}"' if asked.name else ""
    details = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    return ApiError(
        403, "Forbidden", f"{full}{name} is forbidden: {why}", {key: value for key, value in details.items() if value}
    )  # fmt: skip


def _impersonated(headers: list[tuple[str, str]]) -> ApiUser | None:
    """The user that the headers ask for; None if they ask for none. Raises 400 for a group without a user."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        if name.lower().startswith("impersonate-"):
            found.setdefault(name.lower(), []).append(value)
    if not found:
        return None
    name = found.get("impersonate-user", [""])[0]
    if not name:
        raise bad_request("requested groups, a uid or extra fields without impersonating a user name")
    extra = {unquote(key.removeprefix(_EXTRA)): values for key, values in found.items() if key.startswith(_EXTRA)}
    groups, uid = tuple(found.get("impersonate-group", ())), found.get("impersonate-uid", [""])[0]
    return ApiUser(name, groups, uid, extra)
