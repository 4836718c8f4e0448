"""Users: a name and groups. Kubernetes has no objects for them; a token, or an impersonation, says who they are."""

from __future__ import annotations

import msgspec

from stowplan.embedded.documents import Document

SUPERUSERS = "system:masters"  # may do everything, whatever the roles say
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
ACCOUNTS = "system:serviceaccounts"
_ACCOUNT, _NODE = "system:serviceaccount:", "system:node:"


class ApiUser(msgspec.Struct, frozen=True):
    """`extra` has what an authenticator adds, such as the id of a token."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = msgspec.field(default_factory=dict)

    @property
    def is_superuser(self) -> bool:
        return SUPERUSERS in self.groups

    def info(self) -> Document:
        """The user as reviews show it."""
        found = {"username": self.name, "uid": self.uid, "groups": list(self.groups), "extra": self.extra}
        return {key: value for key, value in found.items() if value}


ADMIN = ApiUser("kubernetes-admin", (SUPERUSERS, AUTHENTICATED))
ANONYMOUS = ApiUser("system:anonymous", (UNAUTHENTICATED,))


def account_name(namespace: str, name: str) -> str:
    """The name of the user that a ServiceAccount is."""
    return f"{_ACCOUNT}{namespace}:{name}"


def account_of(user: str) -> tuple[str, str] | None:
    """The namespace and the name of the ServiceAccount that a user is; None for any other user."""
    namespace, found, name = user.removeprefix(_ACCOUNT).partition(":")
    return (namespace, name) if user.startswith(_ACCOUNT) and found and namespace and name else None


def node_of(user: str) -> str | None:
    """The name of the node whose kubelet a user is; None for any other user."""
    name = user.removeprefix(_NODE)
    return name if user.startswith(_NODE) and name else None


def account_groups(namespace: str) -> tuple[str, ...]:
    return (ACCOUNTS, f"{ACCOUNTS}:{namespace}", AUTHENTICATED)
