"""Impersonation: a user who may acts as another one (`kubectl --as`).

Kubernetes 1.36 has two ways to allow it: the verb `impersonate` on users, groups and accounts, for all requests; or
`impersonate:MODE` on them together with `impersonate-on:MODE:VERB` on what is asked for. The second, narrower way leads
nobody to `system:masters`, and to a node or an account only as it is, without groups or fields of the sender's choice.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stowplan.embedded.authorization.access_request import AccessRequest
from stowplan.embedded.authorization.authorizer import RoleAuthorizer
from stowplan.embedded.authorization.users import (
    ANONYMOUS,
    AUTHENTICATED,
    SUPERUSERS,
    UNAUTHENTICATED,
    ApiUser,
    account_groups,
    account_of,
    node_of,
)

_GROUP = "authentication.k8s.io"


class MissingRight(msgspec.Struct, frozen=True):
    """What a user lacks to act as another one, and why."""

    request: AccessRequest
    reason: str = ""


def refusal(authorizer: RoleAuthorizer, user: ApiUser, wanted: ApiUser, asked: AccessRequest) -> MissingRight | None:
    """The right that a user lacks to act as another one; None if nothing is lacking."""
    first: MissingRight | None = None
    for rights in (_narrow(wanted, asked), [*_rights(wanted, "impersonate", "")]):
        lacking = next((each for each in rights if not _has(authorizer, user, each)), None)
        if rights and lacking is None:
            return None
        if first is None and lacking is not None:
            first = MissingRight(lacking, _why(authorizer, user, lacking))
    return first


def _narrow(wanted: ApiUser, asked: AccessRequest) -> list[AccessRequest]:
    """The rights of the narrower way; none if it does not lead to that user."""
    is_node, is_account = node_of(wanted.name) is not None, account_of(wanted.name) is not None
    if (is_node or is_account) and (wanted.groups or wanted.uid or wanted.extra):
        return []
    mode = "arbitrary-node" if is_node else "serviceaccount" if is_account else "user-info"
    on = _with_verb(asked, f"impersonate-on:{mode}:{asked.verb}")
    return [on, *_rights(wanted, f"impersonate:{mode}", _GROUP)]


def _has(authorizer: RoleAuthorizer, user: ApiUser, right: AccessRequest) -> bool:
    return not _is_for_superusers(right) and authorizer.allows(user, right)


def _why(authorizer: RoleAuthorizer, user: ApiUser, right: AccessRequest) -> str:
    if _is_for_superusers(right):
        return f"impersonating the {SUPERUSERS} group is not allowed"
    return authorizer.decide(user, right).reason


def _is_for_superusers(right: AccessRequest) -> bool:
    """True for a right to act as somebody who may do everything, in the narrower way."""
    return (right.verb, right.resource, right.name) == ("impersonate:user-info", "groups", SUPERUSERS)


def impersonated(wanted: ApiUser) -> ApiUser:
    """The user as whom the request is carried out: the groups that every user has are added."""
    groups = wanted.groups
    if not groups and (account := account_of(wanted.name)):
        groups = account_groups(account[0])
    whole = UNAUTHENTICATED if wanted.name == ANONYMOUS.name else AUTHENTICATED
    if AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, whole)
    return ApiUser(wanted.name, groups, wanted.uid, wanted.extra)


def _rights(wanted: ApiUser, verb: str, group: str) -> Iterator[AccessRequest]:
    """Kubernetes has users, groups and accounts in the core group, but for the narrower way, which has nodes, too."""
    if account := account_of(wanted.name):
        yield AccessRequest(verb, group, "serviceaccounts", name=account[1], namespace=account[0])
    elif group and (node := node_of(wanted.name)):
        yield AccessRequest(verb, group, "nodes", name=node)
    else:
        yield AccessRequest(verb, group, "users", name=wanted.name)
    for each in wanted.groups:
        yield AccessRequest(verb, group, "groups", name=each)
    for key, values in wanted.extra.items():
        for value in values:
            yield AccessRequest(verb, _GROUP, "userextras", key, value)
    if wanted.uid:
        yield AccessRequest(verb, _GROUP, "uids", name=wanted.uid)


def _with_verb(asked: AccessRequest, verb: str) -> AccessRequest:
    return AccessRequest(
        verb, asked.group, asked.resource, asked.subresource, asked.name, asked.namespace, asked.path
    )  # fmt: skip
